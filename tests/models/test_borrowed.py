"""`badge.predict` leaves a PyTorch model as it was: mode, gradients, hooks, device, and the global generators."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import InputError, ModelError
from badge.models import borrowed
from small_nets import Net, X


def fingerprint_of_state(net: nn.Module) -> Any:
    return (
        [m.training for m in net.modules()],
        [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        {k: v.clone() for k, v in net.state_dict().items()},
        [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in net.modules()],
        [(p.device, p.requires_grad, id(p)) for p in net.parameters()],
        torch.get_rng_state(),
        np.random.get_state(legacy=False)["state"]["key"].copy(),  # noqa: NPY002
        random.getstate(),
    )


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


class Noisy(Net):
    """A forward pass that draws from every global generator; `fail` is raised on the second batch."""

    fail: type[BaseException] | None = None
    batches = 0

    def forward(self, x: Tensor) -> Any:
        torch.rand(1)
        np.random.rand()  # noqa: NPY002
        random.random()
        assert not torch.is_grad_enabled()
        assert not any(m.training for m in self.modules())
        self.batches += 1
        if self.fail is not None and self.batches == 2:
            raise self.fail
        return super().forward(x)


@pytest.mark.parametrize("fail", [None, KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_model_is_left_as_it_was(fail: type[BaseException] | None, device: str | None) -> None:
    net = Noisy()
    super(Noisy, net).forward(X).sum().backward()
    net.train()
    net.body[1].eval()  # frozen statistics inside a model in training
    net.fail = fail
    before = fingerprint_of_state(net)
    if fail is None:
        badge.predict(net, X, batch_size=10, device=device)
    else:
        with pytest.raises(ModelError if fail is RuntimeError else fail):
            badge.predict(net, X, batch_size=10, device=device)
    assert net.batches == (4 if fail is None else 2)
    assert same(before, fingerprint_of_state(net))


@pytest.mark.parametrize("fail", [None, KeyboardInterrupt])
def test_the_model_goes_to_the_device_and_comes_back(
    fail: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no second device here: the one that loses all numbers is the hardest to come back from."""
    monkeypatch.setattr(borrowed, "usable_device", torch.device)
    net = Net()
    net(X).sum().backward()
    before, tensors = fingerprint_of_state(net), list(net.parameters())
    with pytest.raises(fail) if fail else nullcontext(), borrowed.on_device(net, "meta") as place:
        assert place.type == net.fc.weight.device.type == net.body[1].running_mean.device.type == "meta"
        if fail:
            raise fail
    assert same(before, fingerprint_of_state(net))
    assert all(a is b for a, b in zip(tensors, net.parameters(), strict=True))
    assert all(p.grad is not None and p.grad.device.type == "cpu" for p in net.parameters())


def test_a_model_keeps_its_weights_when_the_device_has_no_numbers() -> None:
    net = Net()
    before = fingerprint_of_state(net)
    with pytest.raises(InputError, match="device='meta' cannot be used: it holds no numbers"):
        badge.predict(net, X, device="meta")
    assert same(before, fingerprint_of_state(net))


def test_a_model_on_two_devices_stays_there() -> None:
    spread = Net()
    spread.fc.to("meta")
    with pytest.raises(InputError, match=r"spread over \['cpu', 'meta'\]"), borrowed.on_device(spread, "cpu"):
        pass


def test_the_check_of_state_can_fail() -> None:
    net = Net()
    before = fingerprint_of_state(net)
    net.body[3].eval()
    assert not same(before, fingerprint_of_state(net))
