"""A small network whose probabilities and embeddings can be computed by hand, for the tests of `badge.predict`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import badge

N, D_IN, D, C = 37, 6, 8, 3
X = torch.randn(N, D_IN, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Body and head by hand, so that what is expected can be computed by hand; `ending` is what is returned."""

    def __init__(self, ending: Callable[[Tensor, Tensor], Any] = lambda z, h: z, classes: int = C) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Sequential(nn.Linear(D_IN, D), nn.BatchNorm1d(D), nn.ReLU(), nn.Dropout(0.5))
        self.fc: nn.Module = nn.Linear(D, classes)
        self.ending = ending
        self.body[1].running_mean = torch.linspace(-1, 1, D)

    def forward(self, x: Tensor) -> Any:
        h = self.body(x)
        return self.ending(self.fc(h), h)


def expected(net: Net) -> tuple[Tensor, Tensor]:
    """Probabilities and embeddings of a Net, from its own parts in eval mode."""
    body, fc = net.body.eval(), net.fc.eval()
    with torch.no_grad():
        h = body(X)
        z = fc(h)
    return (torch.sigmoid(z) if z.shape[1] == 1 else torch.softmax(z, dim=1)), h


def check(net: nn.Module, reference: Net, **options: Any) -> None:
    out = badge.predict(net, X, batch_size=10, **options)
    p, h = expected(reference)
    torch.testing.assert_close(out.probabilities, p)
    torch.testing.assert_close(out.embeddings, h)


def refused(error: type[Exception], message: str, *arguments: Any, **options: Any) -> None:
    """`badge.predict` of these raises that error."""
    with pytest.raises(error, match=message):
        badge.predict(*arguments, **options)
