"""The MLP's gradient by hand: the steps of autograd and Adam, and only for the network that it is written for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import ModelError
from badge.training.networks import mlp
from badge.training.trainer import Shallow, _batches, _epoch


def labelled(n: int = 150, columns: int = 6, classes: int = 4) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(n, 2, columns // 2)
    return x, (x.flatten(1) @ torch.randn(columns, classes)).argmax(1)


def twins() -> tuple[nn.Module, nn.Module]:
    nets = mlp(6, 4, hidden=32), mlp(6, 4, hidden=32)
    nets[1].load_state_dict(nets[0].state_dict())
    return nets


def test_its_steps_are_those_of_autograd_and_adam() -> None:
    x, y = labelled()
    ours, theirs = twins()
    shallow = Shallow.of(ours, x, y, 1e-2)
    assert shallow is not None
    adam = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    start = [p.detach().clone() for p in theirs.parameters()]
    for i in range(5):
        torch.manual_seed(i)
        batches = _batches(len(y), 64, y.device)  # 64, 64, 22: the mean is over each batch's own length
        assert shallow.epoch(x, y, batches) == _epoch(theirs, adam, x, y, batches)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    assert all((p - q).abs().max() > 0.05 for p, q in zip(start, ours.parameters(), strict=True))
    assert all(p.is_contiguous() for p in ours.parameters())


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.append(nn.Identity()),
        lambda net: net[1].register_forward_hook(lambda *_: None),
        lambda net: net.register_forward_pre_hook(lambda *_: None),
        lambda net: net[1].weight.register_hook(lambda g: g),
        lambda net: net[1].weight.requires_grad_(False),
        lambda net: net.double(),
        lambda net: setattr(net, "forward", lambda x: x),
        lambda net: nn.utils.parametrizations.weight_norm(net[1]),
        lambda net: net.__setitem__(3, nn.Linear(32, 4)),
        lambda net: net.__setitem__(2, nn.GELU()),
        lambda net: net.__setitem__(3, nn.Linear(32, 2, bias=False)),
        lambda net: net.__setitem__(1, nn.Linear(7, 32)),
    ],
)
def test_another_network_is_left_to_autograd(change: Callable[[nn.Module], object]) -> None:
    x, y = labelled()
    net = mlp(6, 4, hidden=32)
    assert Shallow.of(net, x, y, 1e-2) is not None
    change(net)
    assert Shallow.of(net, x, y, 1e-2) is None


def test_several_inputs_and_labels_are_left_to_autograd() -> None:
    x, y = labelled()
    assert Shallow.of(mlp(6, 4), (x, x), y, 1e-2) is None
    assert Shallow.of(mlp(6, 4), x, nn.functional.one_hot(y), 1e-2) is None


def test_the_trainer_takes_it_and_says_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = labelled()
    by_hand = badge.Trainer(lambda: mlp(6, 4), lr=1e-2)
    model = by_hand.fit(x, y, np.random.default_rng(0))
    assert by_hand.last is not None and by_hand.last.stopped == "accuracy"
    with pytest.raises(ModelError, match="3 outputs, but labels go up to 3"):
        badge.Trainer(lambda: mlp(6, 3), lr=1e-2).fit(x, y, np.random.default_rng(0))
    monkeypatch.setattr(Shallow, "of", lambda *_: None)
    by_autograd = badge.Trainer(lambda: mlp(6, 4), lr=1e-2)
    other = by_autograd.fit(x, y, np.random.default_rng(0))
    assert by_autograd.last is not None and by_autograd.last.epochs == by_hand.last.epochs
    torch.testing.assert_close(model(x), other(x), rtol=1e-3, atol=1e-3)
