"""Rows scaled to length 1."""

from __future__ import annotations

import torch
from torch import Tensor

from badge.core.rows import RowSource, small
from badge.features.dense import Dense

__all__ = ["unit_rows"]


class Unit(Dense):
    """Vectors that are scaled to length 1 when they are read; rows of zeros stay."""

    def derived(self, *factors: Tensor) -> tuple[Tensor, ...]:
        return (scaled(factors[0]),)


def scaled(x: Tensor) -> Tensor:
    """Rows of length 1, in float32 or float64."""
    wide = x.double()
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    unit: Tensor = wide / length.masked_fill_(length == 0, 1.0)
    return unit if x.dtype == torch.float64 else unit.float()


def unit_rows(rows: RowSource) -> Dense:
    """Features whose rows have length 1.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).as_matrix().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    return Dense.trusted(scaled(rows[:])) if small(rows) else Unit.trusted(rows)
