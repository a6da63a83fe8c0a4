"""k-means++ seeding (Arthur & Vassilvitskii 2007; appendix A of the paper), exact, in less time than one matrix product.

The law: the first centre is uniform, each next one is drawn with probability proportional to D²(x), the squared distance
to the nearest centre so far. One centre at a time that costs one pass over the pool per centre. Here D² is replaced by
what is known of it from earlier, an upper bound U ≥ D², and corrected by rejection:

    draw candidates i.i.d. in proportion to U; go through them in order; accept x with probability D²(x) / U(x)

which makes the accepted sequence have exactly the law of k-means++. Only candidates are compared with centres; they keep
what was found as their new U, so that what was rejected is not proposed again in vain. A tile of the pool is brought up to
date as a whole (`Nearest.settle`) once its candidates have cost as much as that. How many candidates a block has is fixed
before it is drawn, and nothing looks at candidates not yet gone through: else the law would be bent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.errors import InputError
from badge.features import Features
from badge.samplers.checks import sampler
from badge.samplers.nearest.nearest import Nearest

__all__ = ["kmeanspp"]

#: At most this many candidates in a block.
BLOCK = 1024


@sampler
def kmeanspp(
    features: Features,
    k: int,
    rng: np.random.Generator,
    first: Literal["uniform", "max-norm"] = "uniform",
    given: Features | None = None,
) -> NDArray[np.int64]:
    """k distinct positions by k-means++ seeding, in pick order.

    `first="uniform"` is the paper's, `"max-norm"` what the authors' code does. Features in `given` count as centres
    already (labelled points); then the first pick is weighted by distance too and `first` is ignored. Where all remaining
    distances are 0 the rest is drawn uniformly from what is left.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0, 0.0], [0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> sorted(badge.samplers.kmeanspp(x, 3, np.random.default_rng(0)).tolist())[-2:]
    [2, 3]
    """
    if first not in ("uniform", "max-norm"):
        raise InputError(f"first must be 'uniform' or 'max-norm', not {first!r}")
    near = Nearest(features, k, given)
    picks: list[int] = []
    if near.count == 0:
        picks = [int(rng.integers(len(features))) if first == "uniform" else int(near.sq_norms.argmax())]
        near.add(features.rows(torch.tensor(picks, device=features.device)))
    near.start()
    near.bounds[picks] = 0
    rate, most = 0.5, min(64, BLOCK)
    while len(picks) < k:
        size = min(most, int(1.25 * (k - len(picks)) / rate) + 8)
        candidates = draw(near.bounds, size, rng)
        if candidates is None:
            return np.concatenate([picks, uniform_rest(picks, len(features), k, rng)]).astype(np.int64)
        accepted = go_through(near, candidates, k - len(picks), rng)
        picks += accepted
        near.settle(everything=not accepted)
        near.shrink()
        rate, most = max(len(accepted), 1) / size, min(2 * most, BLOCK)
    return np.array(picks, dtype=np.int64)


def draw(bounds: Tensor, size: int, rng: np.random.Generator) -> Tensor | None:
    """`size` positions i.i.d. in proportion to `bounds`; None where there is no mass."""
    mass = torch.cumsum(bounds, 0)
    total = float(mass[-1])
    if total <= 0:
        return None
    at = torch.from_numpy(rng.random(size)).to(bounds.device) * total
    last = torch.searchsorted(mass, mass[-1:])  # rounding must not lead behind the last row that has mass
    return torch.minimum(torch.searchsorted(mass, at, right=True), last)


def go_through(near: Nearest, candidates: Tensor, most: int, rng: np.random.Generator) -> list[int]:
    """Accept each candidate in turn with probability D²/U, until `most` are; accepted ones become centres."""
    threshold = near.bounds[candidates] * torch.from_numpy(rng.random(len(candidates))).to(candidates.device)
    rows = near.update(candidates, threshold, decide=True)
    # Only what survives the centres from before this block can be accepted; the survivors also face each other.
    alive = (near.bounds[candidates] > threshold).nonzero()[:, 0]
    ids, rows = candidates[alive], rows[alive]
    i, j = near.within(rows, ids, threshold[alive])
    accepted = accept(len(ids), zip(i.tolist(), j.tolist(), strict=True), most)
    chosen = torch.tensor(accepted, dtype=torch.int64, device=candidates.device)
    near.add(rows[chosen])
    near.bounds[ids[chosen]] = 0
    return [int(x) for x in ids[chosen].tolist()]


def accept(size: int, pairs: Iterable[tuple[int, int]], most: int) -> list[int]:
    """Places in the block that are accepted: those that no accepted one before them has brought below their threshold.

    >>> accept(4, [(1, 0), (2, 1), (3, 0)], most=9)
    [0, 2]
    """
    near: dict[int, list[int]] = {}
    for i, j in pairs:
        near.setdefault(i, []).append(j)
    accepted: set[int] = set()
    for i in range(size):
        if len(accepted) < most and not any(j in accepted for j in near.get(i, ())):
            accepted.add(i)
    return sorted(accepted)


def uniform_rest(picks: list[int], n: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """What is missing to k, uniformly from the positions not picked."""
    left = np.setdiff1d(np.arange(n), picks)
    return rng.permutation(left)[: k - len(picks)].astype(np.int64)
