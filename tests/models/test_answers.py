"""Models that return several tensors: the logits are told by the head, and where two could be meant it is asked for."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import badge
from badge.errors import ModelError

N = 23
X = torch.randn(N, 6, generator=torch.Generator().manual_seed(0))


class Heads(nn.Module):
    """Two heads on bodies of their own; `ending` is what is returned."""

    def __init__(self, ending: Callable[..., Any], colours: int = 3) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.other = nn.Linear(6, 8), nn.Linear(6, 7)
        self.shape, self.colour = nn.Linear(8, 3), nn.Linear(7, colours)
        self.ending = ending

    def forward(self, x: Tensor) -> Any:
        h, g = self.body(x).relu(), self.other(x).tanh()
        return self.ending(self.shape(h), self.colour(g), h)


@dataclass
class Both:
    shape: Tensor
    colour: Tensor


Named = namedtuple("Named", ["shape", "colour"])

ENDINGS: dict[str, Callable[..., Any]] = {
    "tuple": lambda s, c, h: (s, c),
    "list": lambda s, c, h: [s, c],
    "dict": lambda s, c, h: {"shape": s, "colour": c},
    "dict with other things": lambda s, c, h: {"shape": s, "colour": c, "h": h, "loss": s.sum(), "map": h[:, :, None]},
    "the other one is called logits": lambda s, c, h: {"logits": s, "colour": c},
    "dataclass": lambda s, c, h: Both(s, c),
    "namedtuple": lambda s, c, h: Named(s, c),
    "probabilities": lambda s, c, h: (s.softmax(1), c.softmax(1)),
    "both forms": lambda s, c, h: (s, c.log_softmax(1), c),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("colours", [3, 5])
def test_the_named_head_decides_embedding_and_probabilities(ending: Callable[..., Any], colours: int) -> None:
    net = Heads(ending, colours).eval()
    with torch.no_grad():
        h, g = net.body(X).relu(), net.other(X).tanh()
        shape, colour = net.shape(h).softmax(1), net.colour(g).softmax(1)
    for head, embeddings, p in (("colour", g, colour), (net.colour, g, colour), ("shape", h, shape)):
        out = badge.predict(net, X, head=head, batch_size=10)
        torch.testing.assert_close(out.embeddings, embeddings)
        torch.testing.assert_close(out.probabilities, p)


@pytest.mark.parametrize("colours", [3, 5])
@pytest.mark.parametrize("name", ["tuple", "dict", "dataclass", "dict with other things"])
def test_two_heads_ask_for_one(name: str, colours: int) -> None:
    with pytest.raises(ModelError, match=r"cannot be told: .*'shape'\), .*'colour'\).*Pass head="):
        badge.predict(Heads(ENDINGS[name], colours), X)


def test_a_head_whose_scores_are_not_returned_is_refused() -> None:
    net = Heads(lambda s, c, h: s)
    with pytest.raises(ModelError, match=r"head='colour' does not give what the model returned: that is .* 'shape'"):
        badge.predict(net, X, head="colour")
    scaled = Heads(lambda s, c, h: (s / 2, c / 3), colours=5)  # told by their width
    out = badge.predict(scaled, X, head="colour")
    torch.testing.assert_close(out.probabilities, (scaled.eval()(X)[1]).softmax(1).detach())
    with pytest.raises(ModelError, match="head='colour' gives none of the 2 outputs"):
        badge.predict(Heads(lambda s, c, h: (s / 2, c / 3)), X, head="colour")


class Projecting(nn.Module):
    """A projection for a contrastive loss beside the logits."""

    def __init__(self, ending: Callable[..., Any], width: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.projection, self.fc = nn.Linear(6, 8), nn.Linear(8, width), nn.Linear(8, 3)
        self.ending = ending

    def forward(self, x: Tensor) -> Any:
        h = self.body(x).relu()
        return self.ending(self.projection(h), self.fc(h), h)


def logits_and_embedding(net: Projecting) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        h = net.eval().body(X).relu()
        return net.fc(h).softmax(1), h


@pytest.mark.parametrize("width", [3, 4, 8])
def test_a_projection_is_not_taken_for_the_logits(width: int) -> None:
    endings: tuple[Callable[..., Any], ...] = (
        lambda p, z, h: (p, z),
        lambda p, z, h: (z, p),
        lambda p, z, h: (F.normalize(p), z),
        lambda p, z, h: {"projection": p, "scores": z},
    )
    for ending in endings:
        net = Projecting(ending, width)
        p, h = logits_and_embedding(net)
        out = badge.predict(net, X, head="fc")
        torch.testing.assert_close((out.probabilities, out.embeddings), (p, h))
        try:
            out = badge.predict(net, X)
        except ModelError as error:
            assert "Pass head=" in str(error)
        else:  # as wide as the embedding: it is no doubt no head's scores
            assert width == 8
            torch.testing.assert_close((out.probabilities, out.embeddings), (p, h))


def test_what_stands_beside_the_logits_and_does_no_harm() -> None:
    endings: tuple[Callable[..., Any], ...] = (
        lambda p, z, h: (z, h),
        lambda p, z, h: (h, z),
        lambda p, z, h: (z, F.normalize(h)),
        lambda p, z, h: (F.normalize(h), z),
        lambda p, z, h: (z, z.sum(dim=1)),
        lambda p, z, h: (z, z.softmax(1)),
        lambda p, z, h: {"p": z.softmax(1), "h": h, "z": z},
        lambda p, z, h: (z, h[:, :, None].expand(-1, -1, 5), None, [h]),
    )
    for ending in endings:
        net = Projecting(ending, 5)
        p, h = logits_and_embedding(net)
        out = badge.predict(net, X, batch_size=10)
        torch.testing.assert_close((out.probabilities, out.embeddings), (p, h))
