"""Ranges of a pool that travel by reference: a shard is told where its rows are, and opens them itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import RowSource
from badge.features import Dense, Factored, Features
from badge.features.factored import Residual
from badge.outputs.parts import PartRows

__all__ = ["Remaining", "Without", "narrowed"]


class Remaining:
    """The positions that are left of n when `excluded` ones (ascending) are taken out, without a list of them.

    >>> left = Remaining(6, np.array([0, 3]))
    >>> len(left), left.positions(np.arange(4)).tolist()
    (4, [1, 2, 4, 5])
    """

    def __init__(self, n: int, excluded: NDArray[np.int64]) -> None:
        self.n, self.excluded = n, excluded
        self._skipped = excluded - np.arange(len(excluded))  # how many are left below each excluded one

    def __len__(self) -> int:
        return self.n - len(self.excluded)

    def positions(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in the pool, from ranks among those that are left."""
        return ranks + np.searchsorted(self._skipped, ranks, side="right")


class Without:
    """A source of rows without the excluded ones."""

    def __init__(self, base: RowSource, left: Remaining) -> None:
        self.base, self.left = base, left
        self.shape, self.dtype, self.device = torch.Size((len(left), base.shape[1])), base.dtype, base.device

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, rows: slice) -> Tensor:
        return self.index_select(0, torch.arange(*rows.indices(len(self))))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self.base.index_select(0, torch.from_numpy(self.left.positions(index.numpy())))


def narrowed(rows: Any, start: int, stop: int) -> Any:
    """The rows `start` to `stop` of features or of a source of rows, as the same kind of thing; nothing is read."""
    if isinstance(rows, Features):
        first, *rest = (narrowed(f, start, stop) for f in rows.factors)
        if isinstance(rows, Factored):
            return Factored.trusted(first, rest[0], rows.bias, rows.multilabel)
        return Dense.trusted(first)
    if isinstance(rows, Residual):
        return Residual(narrowed(rows.p, start, stop), rows.logistic)
    if isinstance(rows, Without):
        first, last = rows.left.positions(np.array([start, stop - 1])).tolist()
        inside = rows.left.excluded[(rows.left.excluded >= first) & (rows.left.excluded <= last)] - first
        return Without(narrowed(rows.base, first, last + 1), Remaining(last + 1 - first, inside))
    return rows.narrowed(start, stop) if isinstance(rows, PartRows) else rows[start:stop].clone()
