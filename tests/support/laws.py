"""What tests of laws share: thresholds, two samples, and samplers with another tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import badge
from badge.features import Features, Rows
from badge.samplers.kcenter import kcenter_over
from badge.samplers.kmeanspp import kmeanspp_over
from badge.samplers.nearest import Tuning
from badge.samplers.nearest.sketch import Sketch
from badge.testing.laws import p_value
from local_shards import LocalShards

#: A right sampler with a fixed seed is accepted above, a wrong one rejected below; nothing may fall in between.
ACCEPTED, REJECTED = 1e-3, 1e-6


def two_sample(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """p-value of the hypothesis that two rows of counts over the same cells come from one law."""
    table = np.array([x, y], dtype=float)
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    assert expected.min() >= 5, "pool the small cells"
    return p_value(table, expected, table.shape[1] - 1)


#: Everything as small as it goes: blocks of 3 events, 2 rows at a time, one centre in a product, two rows to pick among.
TINY = Tuning(at_once=0, block=3, first_block=3, tile=2, part=1, top=2, young=1, few=1, anchors=1)


def tuned(function: Any, tuning: Tuning, cuts: Sequence[int] = ()) -> Callable[..., NDArray[np.int64]]:
    """`kmeanspp` or `kcenter` with any tuning, over shards that begin at `cuts`."""
    over: Any = {badge.samplers.kmeanspp: kmeanspp_over, badge.samplers.kcenter: kcenter_over}[function]

    def sampler(
        features: Features, k: int, rng: np.random.Generator, *, given: Features | None = None, **options: Any
    ) -> NDArray[np.int64]:
        centres = None if given is None else given.rows(slice(None)).to(features.dtype)
        with torch.inference_mode():  # as at the door of every sampler
            return over(LocalShards(features, cuts, tuning), k, rng, given=centres, tuning=tuning, **options)

    return sampler


def force_sketch(monkeypatch: pytest.MonkeyPatch, rank: int = 1, outside: float = 1.0) -> None:
    """Sketches of so few dimensions wherever one is tried; `outside` other than 1 makes them wrong ones."""

    class Forced(Sketch):
        def __call__(self, rows: Rows, sq_norms: Tensor | None = None) -> Tensor:
            sketch = super().__call__(rows, sq_norms)
            sketch[:, -1] *= outside
            return sketch

    monkeypatch.setattr("badge.samplers.nearest.centres.useful_sketch", lambda rows: Forced.of(rows, rank))
