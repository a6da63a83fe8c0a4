"""K-means clustering by Lloyd's iteration, from centres that k-means++ chose: exact, with few comparisons.

Lloyd (1982): each row goes to its nearest centre, each centre to the (weighted) mean of its rows, until no row changes its
cluster. Each row keeps an upper bound on the distance to its own centre, and lower bounds on the distances to 32 groups of
the others (Elkan 2003; groups as in Ding et al. 2015, "Yinyang K-means"). When a centre moves, the bounds move by the same
distance. A row is compared only if one of the groups may hold a nearer centre: with the centres that moved, if these are
few, then with all. Bounds and products in float32 propose and float64 decides, so the clusters are those of the plain loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from badge.core.threads import threads_for
from badge.features import Dense, Exact, Features, Rows
from badge.features.rows import resolution
from badge.samplers.checks import sampler
from badge.samplers.kmeanspp import kmeanspp
from badge.samplers.nearest.lens import View
from badge.samplers.nearest.lowest import GROUPS, Lowest

#: Rows at a time: they and their distances stay in cache.
ROWS = 2048
#: Rows whose means are found first, and the share by which rounding may change a mean.
PROBES, ROUNDED = 16, 1e-4
#: Up to this many rows all their distances are found at once, else this many distances at a time.
WHOLE, STRIPE = 1024, 2**18
#: If at most this share of the centres moved, rows are compared with these first.
SHARE = 0.7
#: Below any mass.
TINY = torch.finfo(torch.float64).tiny


@sampler
def lloyd(features: Features, k: int, rng: np.random.Generator) -> Tensor:
    """The cluster of every row, a number below k, [N], as `lloyd_from` has it.

    The first centres are k rows by k-means++. A centre without rows stays.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [9.0], [9.1]])
    >>> found = lloyd(x, 2, np.random.default_rng(0)).tolist()
    >>> found[0] == found[1], found[2] == found[3], found[0] == found[2]
    (True, True, False)
    """
    first = features.rows(torch.from_numpy(kmeanspp(features, k, rng)).to(features.device))
    return lloyd_from(features, first.as_matrix())[0]


def lloyd_from(
    features: Features, first: Tensor, iterations: int = 50, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """(cluster of every row [N], centres [k, D] in float64) from the centres `first`; `weights` count in the means.

    Stops when no row changes its cluster, or after `iterations`.
    """
    n, k, device, dtype = len(features), len(first), features.device, features.dtype
    mass = torch.ones(n, dtype=torch.float64, device=device) if weights is None else weights.double()
    # Sums of float32 numbers in float64 are exact: rows can be taken out again. Other sums are made again.
    exact = weights is None and dtype == torch.float32
    # Distances do not depend on the origin, and lose their digits far from it. As a row of `dtype` it costs one rounding.
    origin = first.double().mean(dim=0).to(dtype)
    means = first.double()
    centres = means - origin
    sums, masses = torch.zeros_like(centres), centres.new_zeros(k)
    cluster = torch.full((n,), -1, device=device)
    upper = torch.full((n,), torch.inf, dtype=dtype, device=device)  # distance to its own centre at most
    lower = torch.zeros((n, GROUPS), dtype=dtype, device=device)  # to the other centres of each group at least
    sq_norms = torch.empty(n, dtype=dtype, device=device)  # seen from the origin
    for tile in features.tiles():
        sq_norms[tile] = Rows((features.rows(tile).as_matrix() - origin,)).sq_norms()
    slack = resolution(dtype) * (8 + len(origin))
    room = torch.full((min(n, ROWS), k + -k % GROUPS), torch.inf, dtype=dtype, device=device)

    def wide(ids: Tensor, some: Tensor) -> Tensor:
        return features.rows(ids[some]).as_matrix().double()

    def add(ids: Tensor, to: Tensor, sign: int = 1) -> None:
        for some, where in zip(torch.split(ids, ROWS), torch.split(to, ROWS), strict=True):
            rows = features.rows(some).as_matrix().double()
            sums.index_add_(0, where, rows.mul_(mass[some, None]), alpha=sign)
            masses.index_add_(0, where, mass[some], alpha=sign)

    moves, furthest = centres.new_zeros(k, dtype=dtype), lower.new_zeros(GROUPS)
    for number in range(iterations):
        before, least, near = cluster.clone(), lower.amin(dim=1), Rows((centres.to(dtype),))
        view = View(near, near.sq_norms())
        moved = _moved(view, moves) if number else None
        for ids in torch.split((upper >= least).nonzero()[:, 0], ROWS):
            x = features.rows(ids).as_matrix().sub_(origin)
            if moved is not None and len(ids):  # as near as before to those that stand still
                still = (lower[ids] + furthest * (1 - 2 * slack)).mul_(1 - slack)
                apart = moved.apart(x, sq_norms[ids], cluster[ids], room[: len(ids)])
                lower[ids] = torch.minimum(still, apart)
                open_ = (upper[ids] >= lower[ids].amin(dim=1)).nonzero()[:, 0]
                ids, x = ids[open_], x.index_select(0, open_)
            if len(ids):
                found = _nearest(x, sq_norms[ids], view, means, partial(wide, ids), room[: len(ids)])
                cluster[ids], upper[ids], lower[ids] = found
        changed = (cluster != before).nonzero()[:, 0]
        if not len(changed):
            break
        now, old = cluster[changed], before[changed]
        if exact:
            add(changed, now)
            add(changed[old >= 0], old[old >= 0], -1)
        else:
            touched = torch.zeros(k, dtype=torch.bool, device=device)
            touched[now] = touched[old[old >= 0]] = True
            sums[touched], masses[touched] = 0, 0
            ids = touched[cluster].nonzero()[:, 0]
            add(ids, cluster[ids])
        last, there = centres, masses > 0
        means = torch.where(there[:, None], sums / masses.clamp(min=TINY)[:, None], means)
        centres = means - origin
        moves = (centres - last).square_().sum(dim=1).sqrt_().mul_(1 + slack).to(dtype)
        upper += moves[cluster] + slack * upper
        furthest = torch.nn.functional.pad(moves, (0, -k % GROUPS)).view(-1, GROUPS).amax(dim=0)
        lower.sub_(furthest).mul_(1 - slack)
    return cluster, means


def _nearest(
    x: Tensor, sq_norms: Tensor, near: View, means: Tensor, wide: Callable[[Tensor], Tensor], room: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest centre of each row, the lowest number of equal ones, and its bounds: (cluster, upper, lower).

    `near` are the centres in the dtype of `x`, seen from the origin like `x`. `means`, the same centres, and `wide(places)`,
    some of the rows, are in float64 and as given: what is equally far stays so. The columns of `room` behind those of the
    centres are inf.
    """
    low = Lowest(_estimates(x, near, room))
    error = _error(x, sq_norms, near.sq_norms.max())
    now = low.places(torch.arange(len(x), device=x.device))
    limit = low.values + 2 * error
    room.scatter_(1, now[:, None], torch.inf)
    minima = low.groups.amin(dim=1)
    open_ = (minima.amin(dim=1) <= limit).nonzero()[:, 0]  # the others have one candidate
    if len(open_):
        room[open_, now[open_]] = low.values[open_]
        i, j = (room[open_] <= limit[open_, None]).nonzero(as_tuple=True)
        found = Exact.of(Rows((wide(open_),))).sq_dists(i, Exact.of(Rows((means,))), j)
        least = found.new_full((len(open_),), torch.inf).scatter_reduce(0, i, found, "amin")
        equal = found == least[i]
        now[open_] = now.new_full((len(open_),), len(means)).scatter_reduce(0, i[equal], j[equal], "amin")
        room[open_, now[open_]] = torch.inf
        minima[open_] = low.groups[open_].amin(dim=1)
    upper = (low.values + sq_norms + 2 * error).clamp_(min=0).sqrt_().mul_(1 + 8 * resolution(x.dtype))
    return now, upper, _at_least(minima, sq_norms, error)


@dataclass(frozen=True)
class Moved:
    """The centres that moved, each in its group; `place` of each centre, −1 of those that stand still."""

    view: View
    place: Tensor
    longest: Tensor  # squared norm

    def apart(self, x: Tensor, sq_norms: Tensor, own: Tensor, room: Tensor) -> Tensor:
        """Lower bounds on the distances of rows to the centres of each group that moved, except their own."""
        room = room[:, : len(self.view.rows)]
        d, place = _estimates(x, self.view, room), self.place[own]
        mine = (place >= 0).nonzero()[:, 0]
        d[mine, place[mine]] = torch.inf
        return _at_least(Lowest(d).minima, sq_norms, _error(x, sq_norms, self.longest))


def _moved(near: View, moves: Tensor) -> Moved | None:
    """None if too many moved: a table with GROUPS columns, in which each has its group, saves little."""
    which = (moves > 0).nonzero()[:, 0]
    group = which % GROUPS
    in_group = (group[:, None] == torch.arange(GROUPS, device=moves.device)).cumsum(dim=0)
    size = GROUPS * int(in_group.max()) if len(which) else 0
    if not 0 < size <= SHARE * len(moves):
        return None
    place = torch.full_like(moves, -1, dtype=torch.int64)
    place[which] = (in_group.gather(1, group[:, None])[:, 0] - 1) * GROUPS + group
    y = near.rows.factors[0]
    rows, sq_norms = y.new_zeros(size, y.shape[1]), near.sq_norms.new_full((size,), torch.inf)
    rows[place[which]], sq_norms[place[which]] = y[which], near.sq_norms[which]
    return Moved(View(Rows((rows,)), sq_norms), place, near.sq_norms.max())


def _estimates(x: Tensor, near: View, room: Tensor) -> Tensor:
    """‖c‖² − 2⟨x, c⟩, in the first columns of `room`: squared distances without ‖x‖²."""
    y = near.rows.factors[0]
    d = room[:, : len(y)]
    with threads_for(len(x) * y.numel()):
        torch.add(near.sq_norms, torch.mm(x, y.T, out=d), alpha=-2, out=d)
    return room


def _error(x: Tensor, sq_norms: Tensor, longest: Tensor) -> Tensor:
    """The most that rounding changes a squared distance of each row."""
    return resolution(x.dtype) * (8 + x.shape[1] / 2) * (sq_norms + longest)


def _at_least(minima: Tensor, sq_norms: Tensor, error: Tensor) -> Tensor:
    """Distances from estimates, not above the true ones."""
    return (minima + (sq_norms - error)[:, None]).clamp_(min=0).sqrt_().mul_(1 - 8 * resolution(minima.dtype))


def least_mean_distance(features: Dense, rows: Tensor, neighbours: int, squared: bool = False) -> int:
    """The place in `rows` of the one with the least mean (squared) distance to its nearest others; the first of equals.

    Finding the nearest rows takes most of the time. The mean of K of the distances d is at least t − Σ (t − d)⁺ / K for any
    t. Rows whose bound is above the mean of a row that was tried are left out.
    """
    given = features.rows(rows).as_matrix()
    wide = given.double()
    x = Rows(((wide - wide.mean(dim=0)).to(given.dtype),))  # from the mean: a common offset costs no precision
    sq_norms, every = x.sq_norms(), torch.arange(len(x), device=features.device)
    step = len(x) if len(x) <= WHOLE else max(8 * PROBES, STRIPE // len(x))
    room = sq_norms.new_empty(step * len(x))

    def sq_dists(block: slice | Tensor, begin: int = 0) -> Tensor:
        """Squared distances from the rows of a block to all rows from `begin` on; inf from a row to itself."""
        found = x[block].gram(x[begin:], room)
        torch.add(sq_norms[block, None], found, alpha=-2, out=found).add_(sq_norms[begin:])
        itself = every[: len(found)], every[block] - begin
        return found.clamp_(min=0).index_put_(itself, found.new_tensor(torch.inf))

    def nearest(sq_dists: Tensor) -> Tensor:
        found = sq_dists.topk(neighbours, dim=1, largest=False).values.double()
        return found if squared else found.sqrt_()

    closest = sq_norms.topk(min(PROBES, len(x)), largest=False).indices  # to the mean
    probes = nearest(sq_dists(closest))
    first = int(probes.mean(dim=1).argmin())
    limit, t = float(probes[first].mean()) * (1 + ROUNDED), float(probes[first].max())
    sums = torch.zeros_like(sq_norms)
    for start in range(0, len(x), step):  # each pair once
        block = sq_dists(slice(start, start + step), start)
        below = (block - t if squared else block.sqrt().sub_(t)).clamp_(max=0)  # −(t − d)⁺
        sums[start : start + step] -= below.sum(dim=1)
        sums[start + step :] -= below[:, step:].sum(dim=0)
    bounds = t - sums / neighbours
    bounds[closest[first]] = -torch.inf  # of equal rows rounding can leave no bound below a mean that was found
    open_ = (bounds <= limit).nonzero()[:, 0]
    again = partial(block.index_select, 0) if len(x) <= WHOLE else sq_dists
    means = [nearest(again(some)).mean(dim=1) for some in torch.split(open_, step)]
    return int(open_[torch.cat(means).argmin()])
