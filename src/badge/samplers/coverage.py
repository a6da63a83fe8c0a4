"""Greedy coverage: pick the rows that bring the pool closest to what is labelled. Exact, and without N × N numbers.

The value of a set S of rows is how well it covers the pool,

    f(S) = Σ_j u_j max_{i ∈ S} κ(x_i, x_j)

with weights u ≥ 0 and a kernel κ that falls with distance. Each pick is the row of largest gain in f (Nemhauser, Wolsey &
Fisher 1978: at least 1 − 1/e of the best value). Bae, Noh & Sutherland (ECCV 2024) call this generalised coverage.

Gains only fall as rows are picked, so an old gain is an upper bound (Minoux 1978): only rows whose bound is above the best
gain found so far are worked out again. Two things keep the bounds of all other rows low.

1. Before the first pick nothing is known, and the first picks lower every gain. So the first picks are guessed from a sample
   of rows. One pass over half of all pairs (κ is symmetric) bounds the gains after several numbers of guesses. Let c be the
   coverage by the guesses, and m by the picks. Then (κ − m)⁺ ≤ (κ − c)⁺ + (c − m)⁺, so such a bound holds at any time if
   Σ_j u_j (c_j − m_j)⁺ is added to it. That is 0 once all of these guesses are among the picks.
2. A pick raises the coverage of the rows near it. Only rows that gained there lose, and they lose at least what a sum over
   any part of these rows says. So each pick lowers the bounds of the rows around it at once (`Cover.lower`).

Bounds come from float32 products with their rounding added. What decides is a float64 sum of the pick's own distances.
"""

from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_tensor
from badge.core.threads import one_thread
from badge.errors import InputError
from badge.features import Features
from badge.features.rows import check_same
from badge.samplers.checks import sampler
from badge.samplers.cover import BLOCK, TINY, Cover, sketched
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.kmeanspp import completed

#: Rows that tell whether rows matter to few others. If so, the first bounds work out kernel values above FAR.
PROBED, FAR = 8, 3e-4
#: Gains that differ by less than this share of the larger one are equal: the lowest position wins.
TIE = 1e-9
#: Gains worked out in one pick from which on bounds are made in float64: those in float32 do not tell candidates apart.
PATIENCE = 64
#: Candidates worked out together: the first time in one pick, and at most. A gain at fewer than MANY rows is quick.
FEW, MANY = 16, 4096
#: The first pass works out gains after these numbers of guessed picks.
LEVELS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
#: Steps of a guess, (targets, rows): the gains at these targets leave this number of rows. Whole gains decide among the last.
SHORTLIST = ((512, 4096), (2048, 1024), (8192, 128))
#: Pairs that a guess looks at: no more guesses than passes over all pairs.
GUESS = 2**24
#: A pick that was not guessed lowers bounds above this share of the largest one.
HIGH = 0.1
#: Guesses are right if what they cover and the picks do not is below this share of the largest gain.
GOOD = 0.01


@sampler
def coverage(
    features: Features,
    k: int,
    rng: np.random.Generator,
    kernel: Gauss | Ball,
    weights: Any = None,
    given: Features | None = None,
) -> NDArray[np.int64]:
    """Pick k positions by greedy coverage: each adds most to the part of the pool that is covered.

    Equal gains go to the lowest position. When nothing is left to gain, the rest is drawn uniformly.

    Args:
        features: the pool, as `badge.Dense`, or as `badge.Factored` from `badge.gradient_embedding`.
        k: the number of positions to pick.
        rng: a `numpy.random.Generator`, for the uniform draw at the end.
        kernel: `badge.samplers.Gauss(sigma)` or `badge.samplers.Ball(delta)`.
        weights: the value of covering each row, [N]; None: 1 each.
        given: rows that cover the pool already, such as the labelled examples.

    Returns:
        k distinct positions, int64, in pick order.

    Raises:
        InputError: k is not between 1 and the number of rows, a number is not finite, or a weight is negative.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [0.2], [9.0], [9.1]])
    >>> badge.samplers.coverage(x, 2, np.random.default_rng(0), badge.samplers.Gauss(1.0)).tolist()
    [1, 3]
    """
    if not isinstance(kernel, Gauss | Ball):
        raise InputError(f"kernel must be badge.samplers.Gauss(sigma) or Ball(delta), not {kernel!r:.60}")
    u = torch.ones(len(features), dtype=torch.float64) if weights is None else as_tensor(weights, "weights").double()
    if u.shape != (len(features),) or not bool((u >= 0).all()) or not bool(u.isfinite().all()):
        raise InputError(f"weights must be {len(features)} finite numbers of at least 0")
    with one_thread():
        cover = Cover(features, kernel, u.to(features.device))
        if given is not None:
            check_same(features, given)
            for start in range(0, len(given), MANY):
                cover.add(given.rows(slice(start, start + MANY)).to(features.dtype))
        return completed(greedy(cover, k), len(features), k, rng)


def greedy(cover: Cover, k: int) -> list[int]:
    """k picks, or fewer if nothing is left to gain."""
    picks: list[int] = []
    narrow = cover.narrow(cover.boxes.order[:: len(cover.every) // PROBED + 1])
    levels = {0: (cover.covered, cover.near_bounds(FAR))} if narrow else first_pass(cover, k)
    guessed, bounds = max(levels), levels.pop(0)[1]
    while len(picks) < k:
        pick = best(cover, bounds)
        if pick is None:
            break
        picks.append(pick)
        bounds[pick] = -torch.inf
        before = cover.covered
        cover.pick(pick)
        if guessed < len(picks) < k:
            cover.lower(bounds, before, HIGH)
        for level, (covered, gains) in levels.items():
            missing = float((covered - cover.covered).clamp_(min=0) @ cover.weights)
            bounds = torch.minimum(bounds, gains + missing)
            if level == len(picks) and missing > GOOD * float(bounds.max()):
                guessed = 0
    return picks


def first_pass(cover: Cover, k: int) -> dict[int, tuple[Tensor, Tensor]]:
    """By number of guessed picks: how well they cover each row, and bounds on all gains after them."""
    cover.sketched, n = sketched(cover.features, cover.kernel), len(cover.every)
    guess = copy(cover)
    picks: list[int] = []
    covered = {0: guess.covered}
    about = guess.weights.new_full((n,), torch.inf)
    while len(picks) < min(k - 1, max(LEVELS), n * n // GUESS):
        some = _largest(guess, about, *SHORTLIST[0])
        for targets, left in SHORTLIST[1:]:
            some = some[sampled(guess, some, targets).topk(min(len(some), left)).indices]
        picks.append(int(some[guess.bounds(some).argmax()]))
        about[picks[-1]] = -torch.inf
        guess.add(cover.features.rows(slice(picks[-1], picks[-1] + 1)))
        if len(picks) in LEVELS:
            covered[len(picks)] = guess.covered
    # bounds through sketches are loose, which costs more than it saves when picks follow that were not guessed
    bounds = cover.all_bounds(torch.stack(list(covered.values())), cover.sketched if k <= max(LEVELS) else None)
    return {level: (covered[level], bounds[place]) for place, level in enumerate(covered)}


def _largest(cover: Cover, about: Tensor, targets: int, count: int) -> Tensor:
    """The `count` rows of largest gain at `targets` rows. `about` holds older gains, which are bounds, and is renewed."""
    fresh = torch.zeros(len(about), dtype=torch.bool, device=about.device)
    while True:
        some = about.topk(min(count, len(about))).indices
        stale = some[~fresh[some] & (about[some] > -torch.inf)]
        if not len(stale):
            return some
        about[stale] = sampled(cover, stale, targets)
        fresh[stale] = True


def sampled(cover: Cover, ids: Tensor, count: int) -> Tensor:
    """About what the rows `ids` gain at `count` rows at equal distances in the pool."""
    places = torch.linspace(0, len(cover.every) - 1, min(count, len(cover.every)), device=ids.device)
    return torch.cat([cover.gained(some, places.long(), cover.sketched) for some in torch.split(ids, BLOCK)])


def best(cover: Cover, bounds: Tensor) -> int | None:
    """The row of largest gain, None if no row gains; `bounds` are lowered on the way.

    Candidates are taken by bound, largest first. Stale bounds are renewed in batches that double, unless candidates matter to
    few rows: there a gain takes no longer than a bound. Then gains decide. Bounds that leave too many candidates are renewed
    in float64.
    """
    if cover.whole:
        bounds.floor_()
    fresh = torch.full_like(bounds, cover.narrow(bounds.argmax()[None], MANY), dtype=torch.bool)
    gains = torch.full_like(bounds, -torch.inf)
    batch, leader, first, size = FEW, 0.0, len(bounds), MANY
    some, rest = _highest(bounds, size)  # the others have bounds of at most `rest`
    while True:
        mine = bounds[some]
        # a row that equals the leader at most wins by a lower position alone
        open_ = (mine > leader * (1 + TIE)) | ((mine > leader * (1 - TIE)) & (some < first))
        left = some[open_ & gains[some].isinf()]
        if not len(left):
            if rest <= leader * (1 - TIE):
                return first if leader > 0 else None
            size *= 8
            some, rest = _highest(bounds, size)
            continue
        top = left[bounds[left].sort(descending=True, stable=True).indices[:batch]]
        if not fresh[top[0]]:
            stale = top[fresh[top].cumsum(0) == 0]  # those with a bound above all fresh ones
            renewed = torch.minimum(bounds[stale], cover.bounds(stale))
            bounds[stale] = renewed.floor() if cover.whole else renewed
            fresh[stale] = True
            batch = min(2 * batch, MANY)
        else:
            gains[top[0]] = bounds[top[0]] = gain = cover.gain(int(top[0]))
            leader = max(leader, gain)
            first = int(some[gains[some] >= leader * (1 - TIE)].min())
            if int(gains.isfinite().sum()) == PATIENCE and cover.tiny == TINY:
                cover.widen()
                fresh[:] = False


def _highest(bounds: Tensor, count: int) -> tuple[Tensor, float]:
    """The rows of the `count` largest bounds, ascending, and a bound on all others: 0 if there are none."""
    if count >= len(bounds):
        return torch.arange(len(bounds), device=bounds.device), 0.0
    found = bounds.topk(count)
    return found.indices.sort().values, float(found.values[-1])
