"""Plain vectors: features of one factor."""

from __future__ import annotations

from typing import Any

from badge.core.arrays import as_tensor, check_finite
from badge.core.rows import RowSource
from badge.errors import InputError
from badge.features.rows import Features, index_of
from badge.outputs import Outputs
from badge.outputs.checks import check_scale

__all__ = ["Dense"]


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
        if x.ndim != 2 or 0 in x.shape:
            raise InputError(
                f"features must be a matrix with at least one row and column, not of shape {tuple(x.shape)}"
            )
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
        """The embeddings of outputs, with their norms where these are known."""
        self = cls.trusted(outputs.embeddings)
        self.norms = outputs.norms
        return self

    def __getitem__(self, ids: Any) -> Dense:
        return Dense.trusted(self.rows(index_of(ids, len(self), self.device)).factors[0])
