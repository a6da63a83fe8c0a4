"""A large pool made smaller: a sparse matrix in a few columns (latent semantic analysis), and some of its rows."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.threads import one_thread

IntArray = NDArray[np.int64]

#: extra columns of the iteration, and its rounds
MORE, ROUNDS = 10, 3
#: squared share of the largest singular value below which a column counts as empty
EMPTY = 1e-10


def reduction(counts: Any, columns: int) -> Tensor:
    """The first right singular vectors [V, columns] of a sparse matrix [n, V], fewer where its rank is less.

    Randomised subspace iteration (Halko, Martinsson & Tropp 2011), as in scikit-learn, with eigenvectors of small Gram
    matrices in place of LU, QR and SVD of tall ones. These took most of the time, and ten times as long on two threads of a
    busy machine.
    """
    width = min(columns + MORE, *counts.shape)
    start = np.random.default_rng(0).normal(size=(counts.shape[1], width)).astype(np.float32)
    with one_thread():
        rows = _orthonormal(torch.from_numpy(counts @ start))
        for _ in range(ROUNDS):
            rows = _orthonormal(torch.from_numpy(counts @ (counts.T @ rows.numpy())))
        return _orthonormal(torch.from_numpy(counts.T @ rows.numpy()))[:, :columns].contiguous()


def _orthonormal(x: Tensor) -> Tensor:
    """An orthonormal basis of the columns of a tall matrix, along its singular vectors, the largest first."""
    wide = x.double()
    values, vectors = torch.linalg.eigh(wide.T @ wide)
    values, vectors = values.flip(0), vectors.flip(1)
    kept = values > EMPTY * values[0]
    basis: Tensor = wide @ (vectors[:, kept] / values[kept].sqrt())
    return basis.float()


def spread(length: int, count: int, also: IntArray | None = None) -> IntArray:
    """Positions of `count` evenly spaced rows of a pool and of at most `count` of `also`, ascending.

    >>> spread(9, 3, np.array([1, 8])).tolist()
    [0, 1, 4, 8]
    """
    others = np.empty(0, np.int64) if also is None else also
    if len(others) > count:
        others = others[spread(len(others), count)]
    return np.union1d(np.linspace(0, length - 1, count).astype(np.int64), others)
