"""Furthest-first traversal for k-center (Gonzalez 1985; the sampler of Coreset, Sener & Savarese 2018), exact and lazy.

Each pick is the row furthest from its nearest centre. Old distances are upper bounds, because new centres only lower them.
So a round brings only the rows with the largest bounds up to date, and picks among them while the best is ahead of every
bound outside. Near ties are decided in float64, equal distances by the lowest position. The picks are those of the plain
greedy loop, over any number of shards.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from badge.core.rows import Shards, shards
from badge.core.threads import one_thread
from badge.features import Exact, Features, Rows
from badge.features.rows import check_same
from badge.samplers.checks import sampler
from badge.samplers.driver import Driver
from badge.samplers.nearest import Tuning
from badge.samplers.shard import SETTLED, Shard, Top

#: The relative error of a squared distance from a product in float64 is below this.
ROUNDING = 256 * np.finfo(np.float64).eps


@sampler
def kcenter(features: Features, k: int, rng: np.random.Generator, given: Features | None = None) -> NDArray[np.int64]:
    """Pick k positions by furthest-first traversal (greedy k-center).

    Each pick is the row furthest from all earlier picks and from `given`. Without `given`, the first pick is drawn
    uniformly. Ties go to the lowest position; distances are compared in float64.

    Args:
        features: the pool, as `badge.Dense`, or as `badge.Factored` from `badge.gradient_embedding`.
        k: the number of positions to pick.
        rng: a `numpy.random.Generator`; the same state gives the same picks.
        given: rows that count as picked already, such as the labelled examples.

    Returns:
        k distinct positions, int64, in pick order.

    Raises:
        InputError: k is not between 1 and the number of rows, or a number is not finite.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [1.0], [5.0], [9.0]])
    >>> badge.samplers.kcenter(x, 2, np.random.default_rng(0), given=badge.Dense([[0.0]])).tolist()
    [3, 2]
    """
    if given is not None:
        check_same(features, given)
    centres = None if given is None else given.rows(slice(None)).to(features.dtype)
    with one_thread():
        return kcenter_over(shards(features, Shard), k, rng, centres)


def kcenter_over(
    shards: Shards, k: int, rng: np.random.Generator, given: Rows | None = None, tuning: Tuning | None = None
) -> NDArray[np.int64]:
    """`kcenter` over shards, after the centres `given`."""
    pool = Driver(shards, tuning or Tuning())
    picks: list[int] = []
    if given is not None and len(given):
        pool.add(given, np.full(len(given), -1))
    else:
        picks.append(int(rng.integers(pool.size)))
        pool.add(pool.rows(np.array(picks)), np.array(picks))
    # Distances among the rows of all shards are computed here: where there are many shards, each sends fewer rows.
    size = max(min(pool.tuning.top, 2 * SETTLED), pool.tuning.top // len(pool.heard))
    while len(picks) < k:
        top = together(pool.tell(Shard.top, [(size,)] * len(pool.heard)))
        if float(top.sq_dists.max()) <= 0 >= top.outside:  # all that is left coincides with a centre: in order
            left = np.setdiff1d(np.arange(pool.size), picks)
            return np.concatenate([picks, left[: k - len(picks)]]).astype(np.int64)
        chosen = furthest(top, k - len(picks))
        pool.add(top.rows[torch.tensor(chosen, dtype=torch.int64)], top.position[chosen])
        picks += top.position[chosen].tolist()
    return np.array(picks, dtype=np.int64)


def together(tops: list[Top]) -> Top:
    """The rows of all shards, in order of position, and the first of all that are outside."""
    outside = min(tops, key=lambda top: (-top.outside, top.outside_position))
    return Top(
        np.concatenate([t.position for t in tops]),
        Rows.cat([t.rows for t in tops]),
        torch.cat([t.sq_dists for t in tops]),
        outside.outside,
        outside.outside_position,
    )


def furthest(top: Top, most: int) -> list[int]:
    """Places of picks, in order, for as long as the furthest row is ahead of what is outside.

    Distances among the rows come from one product, with an error below `clear`; where that could matter the rows concerned
    are compared with the picks in float64.
    """
    exact = Exact.of(top.rows)
    among, clear = estimated(top.rows)
    now = top.sq_dists.numpy().copy()
    known = now.copy()  # as far as it is exact: with the first `compared` of the picks
    compared = np.zeros(len(now), dtype=np.int64)
    picks: list[int] = []
    while len(picks) < most:
        best = int(now.argmax())  # the lowest position of equal ones
        near = now >= now[best] - 2 * clear
        if np.count_nonzero(near) > 1 or now[best] <= top.outside + clear:
            close = np.flatnonzero(near)
            for i in close[compared[close] < len(picks)]:
                others = torch.tensor(picks[compared[i] :])
                known[i] = min(known[i], float(exact.sq_dists(torch.full_like(others, i), exact, others).min()))
                compared[i] = len(picks)
            now[close] = known[close]
            best = int(close[now[close].argmax()])
        value = now[best]
        ahead = value > top.outside or (value == top.outside and top.position[best] < top.outside_position)
        if value <= 0 or not ahead:
            break
        picks.append(best)
        np.minimum(now, among[best], out=now)
        now[best] = known[best] = -np.inf
    return picks


def estimated(rows: Rows) -> tuple[NDArray[np.float64], float]:
    """Squared distances among rows from one product in float64, and a bound on their error."""
    exact = rows.double()
    if len(exact.factors) == 1:  # from one of them: a common offset costs no precision
        exact = Rows((exact.factors[0] - exact.factors[0][0],))
    return exact.sq_dists(exact).numpy(), 2 * ROUNDING * float(exact.sq_norms().max())
