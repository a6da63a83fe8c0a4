"""Furthest-first traversal for k-center (Gonzalez 1985; the sampler of Coreset, Sener & Savarese 2018), exact and lazy.

Each pick is the row furthest from its nearest centre. Stale distances are upper bounds, so only the rows with the largest
ones need to be brought up to date, and picks can be made among these for as long as the best of them is clearly ahead of
every stale value outside. Where it is not, all contenders are brought up to date and compared in float64; ties go to the
lowest position. The picks are those of the plain greedy loop, one for one.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Features
from badge.samplers.checks import sampler
from badge.samplers.nearest.nearest import Nearest

__all__ = ["kcenter"]

#: Rows that are picked among at a time.
BLOCK = 384
#: What a block costs beside its distances, in distances.
OVERHEAD = 2**18


@sampler
def kcenter(features: Features, k: int, rng: np.random.Generator, given: Features | None = None) -> NDArray[np.int64]:
    """k distinct positions by furthest-first traversal, in pick order.

    Conditioned on the features in `given`; without them the first pick is uniform by the rng. Ties go to the lowest
    position, decided in float64.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [1.0], [5.0], [9.0]])
    >>> badge.samplers.kcenter(x, 2, np.random.default_rng(0), given=badge.Dense([[0.0]])).tolist()
    [3, 2]
    """
    near = Nearest(features, k, given)
    picks: list[int] = []
    if near.count == 0:
        picks = [int(rng.integers(len(features)))]
        near.add(features.rows(torch.tensor(picks, device=features.device)))
    near.start()
    near.bounds[picks] = -1  # never again
    spent = 0
    while len(picks) < k:
        if float(near.bounds.max()) <= 0:  # all that is left coincides with a centre: every tie, in order of position
            left = (near.bounds >= 0).nonzero()[:, 0].tolist()
            return np.array(picks + left[: k - len(picks)], dtype=np.int64)
        new, tied = clear_picks(near, k - len(picks))
        if not new and tied:
            new = [furthest(near)]
        near.bounds[new] = -1
        picks += new
        # A glance at the whole pool pays once looking at single rows has cost as much.
        spent += BLOCK * (near.count - near.glanced) + OVERHEAD
        if spent >= len(features) * max(near.count - near.glanced, 16):
            near.glance()
            spent = 0
    return np.array(picks, dtype=np.int64)


def clear_picks(near: Nearest, most: int) -> tuple[list[int], bool]:
    """Picks among the rows of largest bounds, while the best is ahead of all others by more than rounding.

    And whether that ended in a near tie.
    """
    bounds, ids = near.bounds.topk(min(BLOCK + 1, len(near.bounds)))
    outside = float(bounds[BLOCK]) if len(bounds) > BLOCK else -1.0
    ids = ids[:BLOCK]
    rows = near.update(ids, torch.full_like(bounds[:BLOCK], outside))
    now, exact = near.bounds[ids].cpu().numpy(), rows.double()
    among = exact.sq_dists(exact).cpu().numpy()
    clear = 256 * np.finfo(np.float64).eps * float(exact.sq_norms().max() + near.centre_sq_norms[: near.count].max())
    picks: list[int] = []
    tied = False
    while len(picks) < most:
        best = int(now.argmax())
        value, now[best] = now[best], -1.0
        if value <= outside + clear or value <= now.max() + clear:
            tied = bool(value >= outside - clear)
            break
        picks.append(best)
        np.minimum(now, among[best], out=now)  # what was picked stays below 0
    chosen = torch.tensor(picks, dtype=torch.int64, device=ids.device)
    near.add(rows[chosen])
    return [int(i) for i in ids[chosen]], tied


def furthest(near: Nearest) -> int:
    """The one row that is furthest, the lowest position among equals; it becomes a centre."""
    while True:
        fresh = near.seen == near.count
        best = float(near.bounds[fresh].max()) if bool(fresh.any()) else -1.0
        contenders = ((near.bounds >= max(best, 0.0)) & ~fresh).nonzero()[:, 0]
        if not len(contenders):
            pick = lowest_of_largest(near.bounds)
            near.add(near.features.rows(torch.tensor([pick], device=near.bounds.device)))
            return pick
        # The most promising first: they may rule out the others.
        ids = contenders[near.bounds[contenders].topk(min(16 * BLOCK, len(contenders))).indices]
        near.update(ids, torch.full_like(near.bounds[ids], -torch.inf))


def lowest_of_largest(sq_dists: Tensor) -> int:
    """The position of the largest squared distance (in float64), the lowest where several are equal."""
    return int((sq_dists == sq_dists.max()).nonzero()[0, 0])
