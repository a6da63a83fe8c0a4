"""The plain one-centre-at-a-time loops: short, slow, obviously right. The fast samplers are tested against them."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Features, Rows
from badge.samplers.coverage import TIE
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.kmeanspp import completed


def plain_kmeanspp(
    features: Features,
    k: int,
    rng: np.random.Generator,
    first: Literal["uniform", "max-norm"] = "uniform",
    given: Features | None = None,
) -> NDArray[np.int64]:
    """k-means++ as appendix A of the paper states it: one pass over the pool per centre.

    >>> import badge, numpy as np
    >>> len(plain_kmeanspp(badge.Dense([[0.0], [1.0], [5.0]]), 2, np.random.default_rng(0)))
    2
    """
    n = len(features)
    pool, sq_norms = features.rows(slice(None)), features.sq_norms
    picks: list[int] = []
    if given is None:
        picks.append(int(rng.integers(n)) if first == "uniform" else int(sq_norms.argmax()))
        sq_dists = pool.sq_dists(pool[picks[0] : picks[0] + 1])[:, 0]
    else:
        sq_dists = features.sq_dists(given).amin(dim=1)
    left = torch.ones(n, dtype=torch.bool, device=features.device)
    left[picks] = False
    while len(picks) < k:
        mass = torch.where(left, sq_dists, 0).double().cpu().numpy()
        if not mass.any():
            mass = left.double().cpu().numpy()
        pick = int(rng.choice(n, p=mass / mass.sum()))
        picks.append(pick)
        left[pick] = False
        sq_dists = torch.minimum(sq_dists, pool.sq_dists(pool[pick : pick + 1])[:, 0])
    return np.array(picks, dtype=np.int64)


def plain_kcenter(
    features: Features, k: int, rng: np.random.Generator, given: Features | None = None
) -> NDArray[np.int64]:
    """Furthest-first traversal, one pass over the pool per pick; near ties are decided in float64.

    >>> import badge, numpy as np
    >>> plain_kcenter(badge.Dense([[0.0], [1.0], [5.0]]), 1, np.random.default_rng(0), badge.Dense([[0.0]])).tolist()
    [2]
    """
    pool, sq_norms = features.rows(slice(None)), features.sq_norms
    rounding = 2 * torch.finfo(features.dtype).eps * (4 + features.width**0.5)
    centres = [] if given is None else [given.rows(slice(None))]
    largest = 0.0 if given is None else float(given.sq_norms.max())
    picks: list[int] = []
    sq_dists = torch.full_like(sq_norms, torch.inf) if given is None else features.sq_dists(given).amin(dim=1)
    while len(picks) < k:
        if not centres:
            pick = int(rng.integers(len(features)))
        else:
            error = rounding * (sq_norms + largest)
            lowest = torch.where(sq_dists >= 0, sq_dists - error, -torch.inf).max()
            close = ((sq_dists >= 0) & (sq_dists + error >= lowest)).nonzero()[:, 0]
            pick = int(close[0] if len(close) == 1 else close[_exact(pool[close], centres).argmax()])
        picks.append(pick)
        centres.append(pool[pick : pick + 1])
        largest = max(largest, float(sq_norms[pick]))
        sq_dists = torch.minimum(sq_dists, pool.sq_dists(centres[-1])[:, 0])
        sq_dists[picks] = -1
    return np.array(picks, dtype=np.int64)


def plain_coverage(
    features: Features,
    k: int,
    rng: np.random.Generator,
    kernel: Gauss | Ball,
    weights: Tensor | None = None,
    given: Features | None = None,
) -> NDArray[np.int64]:
    """Greedy coverage from the whole matrix of kernel values, in float64; gains equal up to TIE go to the lowest position.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [0.2], [9.0], [9.1]])
    >>> plain_coverage(x, 2, np.random.default_rng(0), Gauss(1.0)).tolist()
    [1, 3]
    """
    x = features.as_matrix().double()
    u = torch.ones(len(x), dtype=torch.float64) if weights is None else weights.double()
    kappa = kernel(_sq_dists(x, x))
    covered = torch.zeros(len(x), dtype=torch.float64)
    if given is not None:
        covered = kernel(_sq_dists(x, given.as_matrix().double())).amax(dim=1)
    picks: list[int] = []
    while len(picks) < k:
        gains = (kappa - covered).clamp(min=0) @ u
        gains[picks] = -torch.inf
        largest = float(gains.max())
        if largest <= 0:
            return completed(picks, len(x), k, rng)
        picks.append(int((gains >= largest * (1 - TIE)).nonzero()[0]))
        covered = torch.maximum(covered, kappa[picks[-1]])
    return np.array(picks, dtype=np.int64)


def plain_covered(
    features: Features,
    picks: NDArray[np.int64],
    kernel: Gauss | Ball,
    weights: Tensor | None = None,
    given: Features | None = None,
) -> float:
    """What `plain_coverage` raises by each pick: Σ_j u_j max_i κ(x_i, x_j) over picks and given rows i.

    >>> import badge
    >>> plain_covered(badge.Dense([[0.0], [1.0], [9.0]]), np.array([0]), Ball(2.0))
    2.0
    """
    x = features.as_matrix().double()
    centres = [x[torch.from_numpy(picks)]] + ([] if given is None else [given.as_matrix().double()])
    if not sum(map(len, centres)):
        return 0.0
    nearest = kernel(_sq_dists(x, torch.cat(centres))).amax(dim=1)
    return float(nearest.sum() if weights is None else nearest @ weights.double())


def plain_lloyd(
    features: Features, first: Tensor, iterations: int = 50, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Lloyd's iteration: every row against every centre, in float64, until no row changes its cluster.

    >>> import badge
    >>> plain_lloyd(badge.Dense([[0.0], [1.0], [9.0]]), torch.tensor([[0.0], [9.0]]))[1].tolist()
    [[0.5], [9.0]]
    """
    x, centres = features.as_matrix().double(), first.double().clone()
    mass = torch.ones(len(x), dtype=torch.float64) if weights is None else weights.double()
    cluster = torch.full((len(x),), -1)
    for _ in range(iterations):
        sq_dists = (x[:, None] - centres).square().sum(dim=2)
        nearest = torch.from_numpy(sq_dists.numpy().argmin(axis=1))  # the lowest of equal ones
        if bool((nearest == cluster).all()):
            break
        cluster = nearest
        for c in torch.unique(cluster).tolist():
            mine = cluster == c
            if float(mass[mine].sum()) > 0:
                centres[c] = (x[mine] * mass[mine, None]).sum(dim=0) / mass[mine].sum()
    return cluster, centres


def plain_bait(
    blocks: NDArray[np.float64], known: NDArray[np.float64] | None, k: int, penalty: float
) -> NDArray[np.int64]:
    """BAIT with whole matrices, as in the authors' code: `blocks` are the V_i [N, r, m], `known` those of labelled examples.

    >>> plain_bait(np.array([[[1.0, 0.0]], [[0.9, 0.0]], [[0.0, 0.8]]]), None, 2, penalty=0.1).tolist()
    [0, 2]
    """
    m, done = blocks.shape[2], 0 if known is None else len(known)
    fisher = np.einsum("nyi,nyj->ij", blocks, blocks)
    inverse = penalty * np.eye(m)
    if known is not None:
        seen = np.einsum("nyi,nyj->ij", known, known)
        fisher, inverse = fisher + seen, inverse + seen / (done + k)
    fisher = fisher / (len(blocks) + done)
    inverse = np.linalg.inv(inverse).astype(np.float64)
    v = blocks * np.sqrt(k / (done + k))
    eye = np.eye(v.shape[1])
    picks: list[int] = []

    def scores(x: NDArray[np.float64], sign: int) -> Any:
        inner = np.linalg.inv(sign * eye + x @ inverse @ x.transpose(0, 2, 1))
        return np.trace(x @ inverse @ fisher @ inverse @ x.transpose(0, 2, 1) @ inner, axis1=1, axis2=2)

    def changed(x: NDArray[np.float64], sign: int) -> Any:
        w = inverse @ x.T
        return inverse - w @ np.linalg.inv(sign * eye + x @ w) @ w.T

    while len(picks) < min(2 * k, len(v)):
        forward = scores(v, +1)
        forward[picks] = -np.inf
        picks.append(int(np.flatnonzero(forward >= forward.max() * (1 - 1e-10))[0]))
        inverse = changed(v[picks[-1]], +1)
    while len(picks) > k:
        losses = -scores(v[picks], -1)
        inverse = changed(v[picks.pop(int(np.flatnonzero(losses <= losses.min() * (1 + 1e-10))[0]))], -1)
    return np.array(picks, dtype=np.int64)


def plain_variance(
    blocks: NDArray[np.float64], known: NDArray[np.float64] | None, picks: Any, k: int, penalty: float
) -> float:
    """What `plain_bait` lowers by each pick of a batch of k: tr(M⁻¹F).

    >>> plain_variance(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]), None, [0], 1, penalty=1.0)
    0.75
    """
    m, done = blocks.shape[2], 0 if known is None else len(known)
    fisher, start = np.einsum("nyi,nyj->ij", blocks, blocks), penalty * np.eye(m)
    if known is not None:
        seen = np.einsum("nyi,nyj->ij", known, known)
        fisher, start = fisher + seen, start + seen / (done + k)
    some = blocks[picks]
    start = start + np.einsum("nyi,nyj->ij", some, some) * k / (done + k)
    return float(np.trace(np.linalg.inv(start) @ fisher) / (len(blocks) + done))


def _sq_dists(x: Tensor, y: Tensor) -> Tensor:
    """[N, M] squared distances. Squares of rounded distances could lie on the other side of a ball's radius."""
    return torch.stack([(row - y).square().sum(dim=1) for row in x])


def _exact(rows: Rows, centres: list[Rows]) -> Tensor:
    """Squared distances of the rows to their nearest centres in float64."""
    every = Rows.cat(centres)
    pairs = torch.cartesian_prod(torch.arange(len(rows)), torch.arange(len(every))).to(rows.factors[0].device)
    i, j = pairs.unbind(1)
    return Exact.of(rows).sq_dists(i, Exact.of(every), j).view(len(rows), -1).amin(dim=1)
