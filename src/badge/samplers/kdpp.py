"""k-DPP sampling: k rows with probability proportional to the determinant of their Gram matrix (Kulesza & Taskar 2011).

`method="mcmc"` is the paper's (appendix G): the swap chain of Kang (2013), in `swap_chain.py`. `method="exact"` draws from
the true law through the eigendecomposition of the Gram matrix, or of the dual kernel where that is smaller.
"""

import math
from functools import reduce
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.errors import InputError, RankError
from badge.features import Features
from badge.samplers.checks import sampler
from badge.samplers.draw import in_proportion
from badge.samplers.swap_chain import swap_chain

#: `exact` decomposes a matrix of this size at most: 128 MB in float64, well under a minute.
EXACT_LIMIT = 4096


@sampler
def kdpp(
    features: Features,
    k: int,
    rng: np.random.Generator,
    method: Literal["mcmc", "exact"] = "mcmc",
    steps: int | None = None,
    start: Literal["uniform", "cholesky"] = "uniform",
) -> NDArray[np.int64]:
    """Sample k positions from a k-DPP: a set S has probability ∝ det⟨g_i, g_j⟩ over i, j in S.

    "mcmc" runs a swap chain for ⌊5 k ln k⌋ steps (at least 1), as in the paper. The chain does not mix fully, so its sample
    depends on its `start`. "uniform" (Kang) starts from a uniform set; if its determinant is 0, linearly dependent rows are
    replaced by the next rows of the same random order. "cholesky" starts from a set with a large determinant, found by
    pivoting. "exact" has no such bias. It needs min(N, C·D) of at most 4,096.

    The Gram matrix has rank at most min(N, (C−1)·(D+bias)), because the rows of p − e_ŷ sum to 0. A k above the rank raises
    `RankError`, unless k = N.

    Args:
        features: the pool, as `badge.Dense`, or as `badge.Factored` from `badge.gradient_embedding`.
        k: the number of positions to pick.
        rng: a `numpy.random.Generator`; the same state gives the same picks.
        method: "mcmc" or "exact".
        steps: the number of steps of the chain; None: the paper's number.
        start: the start of the chain, "uniform" or "cholesky".

    Returns:
        k distinct positions, int64, in pick order.

    Raises:
        InputError: k is not between 1 and the number of rows, or a number is not finite.
        RankError: k is above the rank of the features.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> 2 in badge.samplers.kdpp(x, 2, np.random.default_rng(0), method="exact")
    True
    """
    if method not in ("mcmc", "exact"):
        raise InputError(f"method must be 'mcmc' or 'exact', not {method!r}")
    if steps is not None and (method == "exact" or steps < 1):
        raise InputError(f"steps={steps} with method={method!r}: steps is for 'mcmc' and at least 1")
    if start not in ("uniform", "cholesky"):
        raise InputError(f"start must be 'uniform' or 'cholesky', not {start!r}")
    if k == len(features):
        return np.arange(k, dtype=np.int64)
    if k > features.rank_bound:
        raise RankError(
            f"asked for {k} points of a kernel of rank at most {features.rank_bound} (min(N, (C−1)·(D+bias)) for "
            "gradient embeddings): every determinant is 0; lower k, or use kmeanspp"
        )
    if method == "exact":
        return exact(features, k, rng)
    if k == 1:  # the law is ‖g‖², drawn exactly
        if not bool((features.sq_norms > 0).any()):
            raise RankError("asked for 1 point of a kernel of rank 0: all features are 0")
        return np.array([in_proportion(features.sq_norms.cpu(), rng)])
    steps = max(1, math.floor(5 * k * math.log(k))) if steps is None else steps
    return swap_chain(features, k, rng, steps, start)


def exact(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A k-DPP sample by eigendecomposition: choose k eigenvectors, then sample the projection DPP that they span."""
    n, dim = len(features), math.prod(f.shape[1] for f in features.rows(slice(0, 1)).factors)
    if min(n, dim) > EXACT_LIMIT:
        raise InputError(
            f"method='exact' decomposes a matrix of size min(N, C·D) = min({n}, {dim}), above the limit {EXACT_LIMIT}: "
            "use method='mcmc', or fewer rows"
        )
    primal = n <= dim
    if primal:
        rows = features.rows(slice(None)).double()
        kernel = rows.gram(rows)
    else:
        tiles = (features.rows(tile).double().as_matrix() for tile in features.tiles())
        kernel = reduce(torch.add, (x.T @ x for x in tiles))
    values, vectors = torch.linalg.eigh(kernel)
    values = torch.where(values > 10 * len(values) * torch.finfo(torch.float64).eps * values[-1], values, 0.0)
    rank = int((values > 0).sum())
    if rank < k:
        raise RankError(f"asked for {k} points of a kernel of rank {rank}: lower k, or use kmeanspp")
    chosen = torch.from_numpy(choose_eigenvectors(values.cpu().numpy(), k, rng)).to(values.device)
    basis = vectors[:, chosen]
    if not primal:  # eigenvectors of X Xᵀ from those of Xᵀ X
        basis /= values[chosen].sqrt()
        basis = torch.cat([features.rows(tile).double().as_matrix() @ basis for tile in features.tiles()])
    return sample_projection(basis, rng)


def log_elementary_symmetric(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """ln e_l(λ_1 … λ_m) for l = 0 … k and m = 0 … n, [k + 1, n + 1]: sums of products of l distinct eigenvalues.

    >>> np.exp(log_elementary_symmetric(np.array([2.0, 3.0]), 2)[:, -1]).round(6).tolist()
    [1.0, 5.0, 6.0]
    """
    n = len(values)
    table = np.full((k + 1, n + 1), -np.inf)
    table[0] = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    for m in range(1, n + 1):
        table[1:, m] = np.logaddexp(table[1:, m - 1], logs[m - 1] + table[:-1, m - 1])
    return table


def choose_eigenvectors(values: NDArray[np.float64], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """k indices J with probability ∝ the product of their eigenvalues (Kulesza & Taskar 2011, algorithm 8)."""
    table = log_elementary_symmetric(values, k)
    chosen: list[int] = []
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    for m in range(len(values), 0, -1):
        left = k - len(chosen)
        if left == 0:
            break
        if rng.random() < np.exp(logs[m - 1] + table[left - 1, m - 1] - table[left, m]):
            chosen.append(m - 1)
    return np.array(chosen, dtype=np.int64)


def sample_projection(basis: Tensor, rng: np.random.Generator) -> NDArray[np.int64]:
    """A sample of the projection DPP on the span of orthonormal columns [N, k]: k chain-rule draws."""
    n, k = basis.shape
    left = basis.square().sum(dim=1)  # ∝ the probability of each row given those drawn, k times over
    found = basis.new_zeros(n, k)
    picks: list[int] = []
    for t in range(k):
        pick = in_proportion(left.clamp(min=0).cpu(), rng)
        residual = basis @ basis[pick] - found[:, :t] @ found[pick, :t]
        found[:, t] = residual / residual[pick].sqrt()
        left -= found[:, t].square()
        left[[*picks, pick]] = 0
        picks.append(pick)
    return np.array(picks, dtype=np.int64)
