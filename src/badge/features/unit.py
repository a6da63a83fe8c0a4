"""Rows scaled to length 1, block by block."""

from __future__ import annotations

import torch
from torch import Tensor

from badge.core.arrays import CHUNK_BYTES, RowSource
from badge.features.dense import Dense

__all__ = ["unit_rows"]


class Unit:
    """A matrix whose rows are scaled to length 1 when they are read; rows of zeros stay."""

    def __init__(self, rows: RowSource) -> None:
        self.base, self.shape, self.device = rows, rows.shape, rows.device
        self.dtype = torch.float64 if rows.dtype == torch.float64 else torch.float32

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: slice) -> Tensor:
        return self._scaled(self.base[rows])

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self._scaled(self.base.index_select(dim, index))

    def _scaled(self, x: Tensor) -> Tensor:
        wide = x.double()
        length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
        return wide.div_(length.masked_fill_(length == 0, 1.0)).to(self.dtype)


def unit_rows(rows: RowSource) -> Dense:
    """Features whose rows have length 1.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).as_matrix().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    unit: RowSource = Unit(rows)
    if unit.shape.numel() * 4 <= CHUNK_BYTES:
        unit = unit[:]  # small: work it out once
    return Dense.trusted(unit)
