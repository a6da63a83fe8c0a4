"""Small steps of a selection run on one thread, large products on all; the caller's number of threads is restored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.core.threads import one_thread, threads_for
from badge.errors import InputError


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("sampler", [badge.samplers.kmeanspp, badge.samplers.kcenter])
def test_threads_of_a_selection(sampler: Any, two_threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    multiply = torch.mm

    def noted(*factors: Any, **options: Any) -> Any:
        seen.add(torch.get_num_threads())
        return multiply(*factors, **options)

    monkeypatch.setattr(torch, "mm", noted)
    x = badge.Dense(np.random.default_rng(0).normal(size=(3_000, 8)))
    small = sampler(x, 50, np.random.default_rng(1))
    assert seen == {1} and torch.get_num_threads() == 2
    monkeypatch.setattr("badge.core.threads.PAYS", 2_000)
    assert sampler(x, 50, np.random.default_rng(1)).tolist() == small.tolist()
    assert seen == {1, 2} and torch.get_num_threads() == 2


def test_restored_after_an_error(two_threads: None) -> None:
    with pytest.raises(InputError), one_thread(), threads_for(2**60):
        raise InputError("why")
    assert torch.get_num_threads() == 2
    with threads_for(2**60):  # outside of `one_thread` nothing changes
        assert torch.get_num_threads() == 2
