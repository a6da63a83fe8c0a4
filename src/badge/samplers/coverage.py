"""Greedy coverage: pick the rows that bring the pool closest to what is labelled. Exact, and without N × N numbers.

The value of a set S of rows is how well it covers the pool,

    f(S) = Σ_j u_j max_{i ∈ S} κ(x_i, x_j)

with weights u ≥ 0 and a kernel κ that falls with distance. Each pick is the row of largest gain in f (Nemhauser, Wolsey &
Fisher 1978: at least 1 − 1/e of the best value). Bae, Noh & Sutherland (ECCV 2024) call this generalised coverage.

Gains only fall as rows are picked, so an old gain is an upper bound (Minoux 1978): only rows whose bound is above the best
gain found so far are worked out again. Two more facts save most of the work. Let c be the centre (pick or given row)
nearest to row j.

1. Row i adds nothing at j unless it is nearer to j than c is. By the triangle inequality that needs d(i, c) < 2 d(c, j).
2. κ is below TINY beyond some distance r. So j matters to i only if d(i, c) − d(c, j) < r.

Before the first centre neither helps, and the first picks lower every gain. There the first picks are guessed from a sample
of rows, and one pass, which needs half of a product because κ is symmetric, gives the gains before and after some of the
guesses. These are bounds for as long as the picks are the guessed ones.

Bounds come from float32 products with their rounding added. What decides is a float64 sum of the pick's own distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.errors import InputError
from badge.features import Exact, Features, Rows
from badge.features.rows import check_same, resolution
from badge.samplers.checks import sampler
from badge.samplers.kmeanspp import uniform_rest

__all__ = ["Ball", "Gauss", "coverage"]

#: Kernel values below this are left out of bounds; their sum is added back.
TINY = 1e-7
#: Gains that differ by less than this share of the larger one are equal: the lowest position wins.
TIE = 1e-9
#: Candidates worked out together: the first time in one pick, and at most.
FEW, MANY = 32, 4096
#: Candidates in one product, and targets: the block of kernel values stays in cache.
GROUP, BLOCK, PIVOTS = 256, 1024, 32
#: The numbers of picks whose gains the first pass works out; rows that guesses are made from, and candidates for one.
LEVELS, SAMPLE, TRIED = (0, 1, 4, 8), 512, 256


@dataclass(frozen=True)
class Gauss:
    """κ = exp(−d²/σ²).

    >>> round(Gauss(2.0)(torch.tensor([4.0])).item(), 4)
    0.3679
    """

    sigma: float

    def __call__(self, sq_dists: Tensor) -> Tensor:
        smallest = math.log(torch.finfo(sq_dists.dtype).tiny) / 2  # denormal numbers are ten times slower
        return sq_dists.div(-(self.sigma**2)).clamp_(min=smallest).exp_()

    @property
    def reach(self) -> float:
        """The distance beyond which κ < TINY."""
        return self.sigma * math.sqrt(-math.log(TINY))


@dataclass(frozen=True)
class Ball:
    """κ = 1 where d < δ, else 0.

    >>> Ball(2.0)(torch.tensor([3.9, 4.0])).tolist()
    [1.0, 0.0]
    """

    delta: float

    def __call__(self, sq_dists: Tensor) -> Tensor:
        return (sq_dists < self.delta**2).to(sq_dists.dtype)

    @property
    def reach(self) -> float:
        return self.delta


@sampler
def coverage(
    features: Features,
    k: int,
    rng: np.random.Generator,
    kernel: Gauss | Ball,
    weights: Tensor | None = None,
    given: Features | None = None,
) -> NDArray[np.int64]:
    """k distinct positions by greedy coverage, in pick order; equal gains go to the lowest position.

    `weights` are the u_j (1 each if None). Rows in `given` cover the pool already. When nothing is left to gain, the rest is
    drawn uniformly.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [0.2], [9.0], [9.1]])
    >>> coverage(x, 2, np.random.default_rng(0), Gauss(1.0)).tolist()
    [1, 3]
    """
    u = torch.ones(len(features), dtype=torch.float64) if weights is None else weights.double()
    if u.shape != (len(features),) or not bool((u >= 0).all()) or not bool(u.isfinite().all()):
        raise InputError(f"weights must be {len(features)} finite numbers of at least 0")
    cover = Cover(features, kernel, u.to(features.device))
    if given is not None and len(given):
        check_same(features, given)
        for start in range(0, len(given), MANY):
            cover.add(given.rows(slice(start, start + MANY)).to(features.dtype))
    picks: list[int] = []
    guesses, levels = first_pass(cover, k) if cover.centres is None else ([], {0: cover.bounds(cover.every)})
    bounds = levels[0]
    while len(picks) < k:
        if len(picks) in levels and picks == guesses[: len(picks)]:
            bounds = torch.minimum(bounds, levels[len(picks)])
        pick = best(cover, bounds)
        if pick is None:
            return np.concatenate([picks, uniform_rest(picks, len(features), k, rng)]).astype(np.int64)
        picks.append(pick)
        bounds[pick] = -torch.inf
        cover.add(features.rows(slice(pick, pick + 1)))
    return np.array(picks, dtype=np.int64)


def first_pass(cover: Cover, k: int) -> tuple[list[int], dict[int, Tensor]]:
    """Guessed picks, and bounds on all gains after some numbers of them."""
    guess = Cover(cover.features, cover.kernel, cover.weights)
    sample = torch.linspace(0, len(cover.every) - 1, min(SAMPLE, len(cover.every)), device=cover.every.device).long()
    picks: list[int] = []
    covered = {0: guess.covered}
    while len(picks) < min(k - 1, max(LEVELS)):
        near = torch.cat([guess.group(ids, sample) for ids in torch.split(cover.every, BLOCK)])
        near[picks] = -torch.inf
        some = near.topk(min(TRIED, len(near))).indices
        picks.append(int(some[guess.bounds(some).argmax()]))
        guess.add(cover.features.rows(slice(picks[-1], picks[-1] + 1)))
        if len(picks) in LEVELS:
            covered[len(picks)] = guess.covered
    found = cover.all_bounds(torch.stack(list(covered.values())))
    return picks, dict(zip(covered, found, strict=True))


def best(cover: Cover, bounds: Tensor) -> int | None:
    """The row of largest gain, None if no row gains; `bounds` are lowered on the way.

    Candidates are taken by bound, largest first. Stale bounds are renewed in batches that double, then gains decide.
    """
    fresh = torch.zeros(len(bounds), dtype=torch.bool, device=bounds.device)
    gains = torch.full_like(bounds, -torch.inf)
    batch, leader = FEW, 0.0
    while True:
        left = ((bounds > leader * (1 - TIE)) & gains.isinf()).nonzero()[:, 0]
        if not len(left):
            return int((gains >= leader * (1 - TIE)).nonzero()[0]) if leader > 0 else None
        top = left[bounds[left].topk(min(batch, len(left))).indices]
        stale = top[~fresh[top]]
        if not fresh[top[0]]:
            bounds[stale] = torch.minimum(bounds[stale], cover.bounds(stale))
            fresh[stale] = True
            batch = min(2 * batch, MANY)
        else:
            gains[top[0]] = gain = cover.gain(int(top[0]))
            leader = max(leader, gain)


class Cover:
    """How well the centres so far cover each row, and what one more centre would add."""

    def __init__(self, features: Features, kernel: Gauss | Ball, weights: Tensor) -> None:
        n = len(features)
        self.features, self.kernel, self.weights = features, kernel, weights
        self.every = torch.arange(n, device=features.device)
        self.sq_norms = features.sq_norms
        self.sq_near = torch.full((n,), torch.inf, dtype=torch.float64, device=features.device)  # to the nearest centre
        self.covered = torch.zeros(n, dtype=torch.float64, device=features.device)  # κ of that
        self.centre = torch.zeros(n, dtype=torch.int64, device=features.device)  # its number
        self.near = self.sq_near.to(features.dtype)  # the distance to it, rounded
        self.centres: Rows | None = None
        #: the error of a squared distance from a product is below this times the sum of the squared norms
        self.rounding = resolution(features.dtype) * (4 + features.width / 2)
        self.largest = float(self.sq_norms.max())

    def error(self, sq_norms: float) -> float:
        return self.rounding * (self.largest + sq_norms) + torch.finfo(self.features.dtype).tiny

    def add(self, rows: Rows) -> None:
        """More centres. Distances that a centre may lower are worked out in float64."""
        number = 0 if self.centres is None else len(self.centres)
        self.centres = rows if self.centres is None else Rows.cat([self.centres, rows])
        sq_norms = rows.sq_norms()
        error, exact = self.error(float(sq_norms.max())), Exact.of(rows)
        for tile in self.features.tiles(beside=len(rows)):
            x = self.features.rows(tile)
            estimate = sq_dists(x, self.sq_norms[tile], rows, sq_norms)
            lowest = torch.minimum(estimate.amin(dim=1) + error, self.sq_near[tile].to(estimate.dtype))
            i, j = (estimate <= (lowest + error)[:, None]).nonzero(as_tuple=True)
            if not len(i):
                continue
            found = Exact.of(x).sq_dists(i, exact, j)
            near, centre = self.sq_near[tile], self.centre[tile]
            near.scatter_reduce_(0, i, found, "amin")
            mine = found <= near[i]
            centre[i[mine]] = number + j[mine]
        self.covered = self.kernel(self.sq_near)
        self.near = self.sq_near.sqrt().to(self.near.dtype)

    def bounds(self, ids: Tensor) -> Tensor:
        """Upper bounds on the gains of the rows `ids`, in float64. Rows that are near each other go together."""
        found = torch.empty(len(ids), dtype=torch.float64, device=ids.device)
        for places in torch.split(self._order(ids), GROUP):
            found[places] = self.group(ids[places])
        return found + TINY * float(self.weights.sum())

    def all_bounds(self, covered: Tensor) -> Tensor:
        """Upper bounds on the gains of all rows for several states of coverage [levels, N], without centres."""
        dtype, levels = self.features.dtype, len(covered)
        total, covered, weights = torch.zeros_like(covered), covered.to(self.features.dtype), self.weights.to(dtype)
        tiles = [slice(s, min(s + BLOCK, len(self.every))) for s in range(0, len(self.every), BLOCK)]
        error = self.error(self.largest)
        for i, one in enumerate(tiles):
            rows = self.features.rows(one)
            for other in tiles[i:]:
                estimate = sq_dists(rows, self.sq_norms[one], self.features.rows(other), self.sq_norms[other])
                kappa = self.kernel(estimate.sub_(error).clamp_(min=0))
                for level in range(levels):
                    more = torch.sub(kappa, covered[level, other], out=estimate).clamp_(min=0)
                    total[level, one] += more @ weights[other]
                    if other is not one:
                        more = torch.sub(kappa, covered[level, one, None], out=estimate).clamp_(min=0)
                        total[level, other] += weights[one] @ more
        return total * (1 + BLOCK * resolution(dtype))

    def _order(self, ids: Tensor) -> Tensor:
        """Places of `ids` such that neighbours are near each other: by the centre, and centres by the nearest of a few."""
        if self.centres is None:
            return torch.arange(len(ids), device=ids.device)
        count = len(self.centres)
        pivots = self.centres[torch.linspace(0, count - 1, min(count, PIVOTS), device=ids.device).long()]
        key = self.centres.sq_dists(pivots).argmin(dim=1) * count + torch.arange(count, device=ids.device)
        return key[self.centre[ids]].argsort()

    def group(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Bounds for rows that are near each other; with `targets`, of what they gain there."""
        rows, sq_norms = self.features.rows(ids), self.sq_norms[ids]
        total = torch.zeros(len(ids), dtype=torch.float64, device=ids.device)
        live = self._live(rows, sq_norms) if targets is None else targets
        error = self.error(float(sq_norms.max()))
        dtype = self.features.dtype
        for some in torch.split(live, BLOCK):
            estimate = sq_dists(rows, sq_norms, self.features.rows(some), self.sq_norms[some])
            kappa = self.kernel(estimate.sub_(error).clamp_(min=0))
            more = kappa.sub_(self.covered[some].to(dtype)).clamp_(min=0)
            total += more @ self.weights[some].to(dtype)
        return total * (1 + BLOCK * resolution(dtype))

    def _live(self, rows: Rows, sq_norms: Tensor) -> Tensor:
        """The rows at which one of `rows` may add something: facts 1 and 2."""
        left = self.weights > 0
        if self.centres is None:
            return left.nonzero()[:, 0]
        of = self.centres.sq_norms()
        away = sq_dists(rows, sq_norms, self.centres, of).amin(dim=0).sub_(self.error(float(of.max())))
        least = away.clamp_(min=0).sqrt_().mul_(1 - 4 * resolution(away.dtype))
        least = torch.maximum(least / 2, least - self.kernel.reach)  # what a row must be away from its centre
        return (left & (self.near >= least[self.centre])).nonzero()[:, 0]

    def gain(self, i: int) -> float:
        """What row i adds, in float64."""
        one = torch.tensor([i], device=self.weights.device)
        rows, sq_norms = self.features.rows(one), self.sq_norms[one]
        live = self._live(rows, sq_norms)
        x = self.features.rows(live)
        error = self.error(float(sq_norms))
        estimate = sq_dists(x, self.sq_norms[live], rows, sq_norms)[:, 0]
        nearer = (estimate < self.sq_near[live] + error).nonzero()[:, 0]
        found = Exact.of(x).sq_dists(nearer, Exact.of(rows), torch.zeros_like(nearer))
        j = live[nearer]
        return float((self.kernel(found) - self.covered[j]).clamp_(min=0) @ self.weights[j])


def sq_dists(x: Rows, x_norms: Tensor, y: Rows, y_norms: Tensor) -> Tensor:
    """‖x_i − y_j‖² from one product, [n, m]."""
    return x.gram(y).mul_(-2).add_(x_norms[:, None]).add_(y_norms)
