"""Embeddings that are mostly zeros, such as counts of words: kept sparse, made dense one block of rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import SINGLE_WHOLE
from badge.core.rows import Remaining


class SparseRows:
    """The rows of a matrix of scipy in its row form (CSR). `rows[a:b]` and `index_select` give tensors.

    >>> import scipy.sparse
    >>> rows = SparseRows.of(scipy.sparse.csr_matrix([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]]))
    >>> rows.shape, rows[1:3].tolist()
    (torch.Size([3, 2]), [[1.0, 0.0], [0.0, 0.0]])
    """

    device = torch.device("cpu")

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = torch.Size(matrix.shape)
        self.dtype = torch.float64 if matrix.dtype == np.float64 else torch.float32

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """In float32, unless whole numbers are too large for it. The places of the entries are shared with `matrix`."""
        csr = matrix.tocsr()
        exact = not csr.nnz or max(float(csr.data.max()), -float(csr.data.min())) <= SINGLE_WHOLE
        data = csr.data.astype(np.float32 if exact else np.float64)
        return cls(type(csr)((data, csr.indices, csr.indptr), shape=csr.shape))

    @classmethod
    def stacked(cls, parts: list[SparseRows]) -> SparseRows:
        """The rows of all parts, in order."""
        import scipy.sparse

        return parts[0] if len(parts) == 1 else cls(scipy.sparse.vstack([part.matrix for part in parts], format="csr"))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        which = rows if isinstance(rows, slice) else rows.numpy()
        return torch.from_numpy(self.matrix[which].toarray())

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self[index]

    def narrowed(self, ids: Remaining) -> SparseRows:
        return SparseRows(self.matrix[ids.positions(np.arange(len(ids)))])

    def numpy(self, force: bool = False) -> NDArray[Any]:
        """All rows as one dense array."""
        dense: NDArray[Any] = self.matrix.toarray()
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.numpy().astype(dtype or self.matrix.dtype, copy=False)
