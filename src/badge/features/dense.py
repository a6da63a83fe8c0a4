"""Plain vectors: features of one factor, as they are or scaled to length 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from badge.core.arrays import as_tensor, check_finite
from badge.core.rows import RowSource, small
from badge.features.rows import Features, check_norms, index_of
from badge.outputs import Outputs
from badge.outputs.checks import check_matrix, check_scale


class Dense(Features):
    """Plain vectors [N, D] with the interface of gradient embeddings.

    Args:
        matrix: [N, D], numpy or torch; memory-mapped arrays stay on disk.

    Raises:
        InputError: it is not a matrix of finite numbers.

    >>> import badge
    >>> badge.Dense([[0.0, 0.0], [3.0, 4.0]]).sq_norms.tolist()
    [0.0, 25.0]
    """

    def __init__(self, matrix: Any) -> None:
        x = as_tensor(matrix, "features")
        check_matrix(x, "features")
        check_finite(x, "features")
        check_scale(x, "features")
        self.factors = (x,)

    @property
    def rank_bound(self) -> int:
        return min(self.factors[0].shape)

    @classmethod
    def trusted(cls, matrix: RowSource) -> Dense:
        """Features of a matrix that was validated before (or that is read row block by row block); nothing is read."""
        self = cls.__new__(cls)
        self.factors = (matrix,)
        return self

    @classmethod
    def embeddings(cls, outputs: Outputs) -> Dense:
        """The embeddings of outputs, with their norms where these are known.

        Args:
            outputs: what a model says about a pool.
        """
        self = cls.trusted(outputs.embeddings)
        self.norms = outputs.norms
        return self

    def __getitem__(self, ids: Any) -> Dense:
        return Dense.trusted(self.rows(index_of(ids, len(self), self.device)).factors[0])


class Unit(Dense):
    """Vectors that are scaled to length 1 when they are read; rows of zeros stay."""

    def derived(self, *factors: Tensor) -> tuple[Tensor, ...]:
        return (scaled(factors[0]),)


def scaled(x: Tensor) -> Tensor:
    """Rows of length 1, in float32 or float64."""
    unit = x.to(torch.float64, copy=True)
    length = torch.linalg.vector_norm(unit, dim=1, keepdim=True)
    if x.dtype == torch.float64 and len(x):  # squares of other numbers do not overflow
        longest = float(length.max())
        check_norms(longest * longest, x.dtype)
    unit.div_(length.masked_fill_(length == 0, 1.0))  # in place: fresh memory takes longer
    return unit if x.dtype == torch.float64 else unit.float()


def unit_rows(rows: RowSource) -> Dense:
    """Features whose rows have length 1.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).as_matrix().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    return Dense.trusted(scaled(rows[:])) if small(rows) else Unit.trusted(rows)
