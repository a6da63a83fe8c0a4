"""How far every row is from its nearest centre, worked out only where it matters.

Adding a centre can only lower a row's squared distance to its nearest centre. So the distance that a row had when it was
last looked at is an upper bound for ever, and the two samplers that need distances, k-means++ and furthest-first, can
work from upper bounds: they bring the few rows that they consider up to date and leave the others alone. Nothing is
approximate: products only rule centres out, with all their rounding allowed for, and what decides is a squared distance
in float64, whatever the dtype and the blocking of the products that found it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from badge.features import Features, Rows
from badge.features.rows import check_norms, check_same, resolution
from badge.samplers.nearest.lowest import Lowest
from badge.samplers.nearest.sketch import Sketch, useful_sketch

__all__ = ["Nearest", "among", "exact_pairs"]

#: Rows of a tile, the unit in which the pool is brought up to date. The rows of a tile have similar norms.
TILE = 1024
#: Centres per product: a tile's distances to this many stay in cache.
CENTRES = 1024
#: Pairs of rows whose distance is worked out in float64 at a time.
PAIRS = 2**10
#: How many of the given centres the first upper bounds look at.
ANCHORS = 8
#: With so many centres it is tried whether a sketch of the features is of use.
SKETCH = 1024
#: Rows that lack fewer centres than this are brought up to date together.
YOUNG = 512


class Nearest:
    """Upper bounds on squared distances to the nearest centre.

    The smaller of `bounds[i]` and the distances to the centres from number `seen[i]` on is the exact squared distance:
    a bound is either what the first `seen[i]` centres give, or not below what a later centre gives.
    """

    def __init__(self, features: Features, capacity: int, given: Features | None = None) -> None:
        n, device, dtype = len(features), features.device, features.dtype
        self.features = features
        self.sq_norms = features.sq_norms
        self.norms = self.sq_norms.double().sqrt()  # not in place: float64 features share it
        self.bounds = torch.full((n,), torch.inf, dtype=torch.float64, device=device)
        self.seen = torch.zeros(n, dtype=torch.int32, device=device)
        capacity += 0 if given is None else len(given)
        widths = [f.shape[1] for f in features.rows(slice(0, 1)).factors]
        self.centres = Rows(tuple(torch.empty(capacity, w, dtype=dtype, device=device) for w in widths))
        self.centre_sq_norms = torch.empty(capacity, dtype=dtype, device=device)
        self.exact_centre_sq_norms = torch.empty(capacity, dtype=torch.float64, device=device)
        self.exact_sq_norms = torch.full((n,), torch.nan, dtype=torch.float64, device=device)  # filled where needed
        self.count = self.glanced = 0
        self.scratch = torch.empty(0, dtype=dtype, device=device)  # for products: fresh memory each time is slow
        self.sketch: Sketch | None = None
        self.views = self.centres  # what estimates of distances are made from: the centres, or their sketches
        # The rounding of an estimated ‖x − c‖² is below `rounding` · (‖x‖² + ‖c‖²), in whatever order a product sums.
        self.rounding = resolution(dtype) * (4 + features.width / 2)
        self.order = torch.argsort(self.sq_norms)
        self.tile_of = torch.empty(n, dtype=torch.int32, device=device)
        self.tile_of[self.order] = (torch.arange(n, device=device) // TILE).to(torch.int32)
        tiles = -(-n // TILE)
        self.tile_seen = torch.zeros(tiles, dtype=torch.int64, device=device)
        self.spent = torch.zeros(tiles, dtype=torch.int64, device=device)
        if given is not None:
            check_same(features, given)
            for part in given.tiles():
                self.add(given.rows(part).to(dtype))
            check_norms(self.centre_sq_norms[: self.count])

    def add(self, rows: Rows) -> None:
        """More centres. No row is brought up to date: what is known of them stays an upper bound."""
        end = self.count + len(rows)
        for buffer, factor in zip(self.centres.factors, rows.factors, strict=True):
            buffer[self.count : end] = factor
        self.centre_sq_norms[self.count : end] = rows.sq_norms()
        self.exact_centre_sq_norms[self.count : end] = rows.paired(rows)
        begin, self.count = self.count, end
        if begin < SKETCH <= end:
            self.sketch, begin = useful_sketch(self.centres[:end]), 0
            if self.sketch is not None:
                self.views = Rows((self.centre_sq_norms.new_empty(len(self.centre_sq_norms), self.sketch.width),))
                self.rounding *= 4
        if self.sketch is not None:
            self.views.factors[0][begin:end] = self.sketch(self.centres[begin:end])

    def shrink(self) -> None:
        """D(x) ≤ ‖x‖ + ‖c‖ for the shortest centre c: a bound that costs no product, and tells where norms are skewed."""
        shortest = self.centre_sq_norms[: self.count].min().double().sqrt()
        torch.minimum(self.bounds, (self.norms + shortest).square_().mul_(1 + 4 * self.rounding), out=self.bounds)

    def start(self) -> None:
        """First upper bounds for the whole pool, from one centre or a few of those given."""
        anchors = torch.linspace(0, self.count - 1, min(self.count, ANCHORS), device=self.seen.device).long()
        self._glance(self.centres[anchors], self.centre_sq_norms[anchors])
        self.glanced = self.count if self.count <= ANCHORS else 0

    def glance(self) -> None:
        """Lower all bounds by the centres since the last glance: one pass over the pool, to within rounding."""
        for start in range(self.glanced, self.count, CENTRES):
            part = slice(start, min(start + CENTRES, self.count))
            self._glance(self.centres[part], self.centre_sq_norms[part])
        self.glanced = self.count

    def _glance(self, centres: Rows, sq_norms: Tensor) -> None:
        """Upper estimates of the distances to some centres. No row counts as having seen them."""
        sq_norms = sq_norms * (1 + self.rounding)
        for tile in self.features.tiles():
            d = self.features.rows(tile).gram(centres).mul_(-2).add_(sq_norms).amin(dim=1)
            d.add_(self.sq_norms[tile], alpha=1 + self.rounding).clamp_(min=0)
            torch.minimum(self.bounds[tile], d.double(), out=self.bounds[tile])

    def update(self, ids: Tensor, enough: Tensor | None = None, decide: bool = False) -> Rows:
        """Bring the rows `ids` up to date with all centres; returns them.

        With `enough` these are single rows of interest: one whose bound has come down to its `enough` is not followed
        further, and what they cost is charged to their tiles (see `settle`). With `decide` all that matters is whether a
        row's squared distance is above its `enough`; then so is its bound in the end, and else it is not.
        """
        rows = self.features.rows(ids)
        unknown = self.exact_sq_norms[ids].isnan().nonzero()[:, 0]
        if len(unknown):
            some = rows if len(unknown) == len(ids) else rows[unknown]
            self.exact_sq_norms[ids[unknown]] = some.paired(some)
        # Rows that have seen about as many centres go together: ages within a factor of two, or below `YOUNG`.
        ages = (self.count - self.seen[ids]).clamp_(min=YOUNG)
        groups = ages.double().log2_().long()
        for group in torch.unique(groups).tolist():
            members = (groups == group).nonzero()[:, 0]
            whole = len(members) == len(ids)
            least = enough if enough is None or whole else enough[members]
            self._lower(rows if whole else rows[members], ids if whole else ids[members], least, decide)
        return rows

    def _lower(self, rows: Rows, ids: Tensor, enough: Tensor | None, decide: bool) -> None:
        """Lower the bounds of the rows `ids` by the centres they have not seen, part by part.

        Estimates, which are never above the distances, rule out most centres; the others are compared in float64.
        """
        best, sq_norms, exact_sq_norms = self.bounds[ids], self.sq_norms[ids], self.exact_sq_norms[ids]
        x = minus_twice(self._view(rows))
        decide = decide and self.sketch is not None  # else what is exact costs nothing more
        for part in self._within_reach(best, sq_norms, int(self.seen[ids].min())):
            low = Lowest(self._estimates(x, self.views[part], self.centre_sq_norms[part]))
            if enough is not None:
                self.spent.index_add_(0, self.tile_of[ids], torch.full_like(ids, low.columns))
            # The most promising centre of each row first, then those that still may be nearer.
            limit = self._limits(goal(best, enough, decide), sq_norms)
            left = (low.values < limit).nonzero()[:, 0]
            if not len(left):
                continue
            first = low.places(left)
            best[left] = torch.minimum(best[left], self._exact(rows, left, exact_sq_norms, part, first))
            i, j = low.below(left, self._limits(goal(best, enough, decide), sq_norms)[left])
            other = (j != first[i]).nonzero()[:, 0]
            i, j = left[i[other]], j[other]
            best.scatter_reduce_(0, i, self._exact(rows, i, exact_sq_norms, part, j), "amin")
            if enough is None:
                continue
            follow = (best > enough).nonzero()[:, 0]
            if len(follow) < 0.7 * len(ids):
                self.bounds.scatter_reduce_(0, ids, best, "amin")
                rows, x, ids, best, enough = rows[follow], x[follow], ids[follow], best[follow], enough[follow]
                sq_norms, exact_sq_norms = sq_norms[follow], exact_sq_norms[follow]
                if not len(ids):
                    break
        self.bounds.scatter_reduce_(0, ids, best, "amin")  # a row may be there more than once
        if not decide:
            self.seen[ids if enough is None else ids[best > enough]] = self.count

    def within(self, rows: Rows, ids: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
        """Pairs (i, j) of the rows `ids` with j before i and a squared distance of at most `reach[i]`."""
        sq_norms, exact_sq_norms = self.sq_norms[ids], self.exact_sq_norms[ids]
        view = self._view(rows)
        d = self._estimates(minus_twice(view), view, sq_norms)
        i, j = (d < self._limits(reach, sq_norms)[:, None]).tril_(-1).nonzero(as_tuple=True)
        near = (exact_pairs(rows, i, rows, j, exact_sq_norms, exact_sq_norms) <= reach[i]).nonzero()[:, 0]
        return i[near], j[near]

    def _view(self, rows: Rows) -> Rows:
        """What estimates are made from: the rows, or their sketches."""
        return rows if self.sketch is None else Rows((self.sketch(rows),))

    def _estimates(self, x: Rows, y: Rows, y_sq_norms: Tensor) -> Tensor:
        """Lower estimates of squared distances, less (1 − `rounding`) ‖x‖², from −2 times a view of x and one of y."""
        size = len(x) * len(y)
        if len(self.scratch) < size:
            self.scratch = self.scratch.new_empty(size)
        d = x.gram(y, out=self.scratch[:size].view(len(x), len(y)))
        return d.add_(y_sq_norms, alpha=1 - self.rounding)

    def _limits(self, goal: Tensor, sq_norms: Tensor) -> Tensor:
        """What an estimate must be below for a squared distance of at most `goal`."""
        limit = goal.sub(sq_norms.double(), alpha=1 - self.rounding).to(sq_norms.dtype)
        return torch.nextafter(limit, limit.new_tensor(torch.inf))

    def _exact(self, rows: Rows, i: Tensor, sq_norms: Tensor, part: slice | Tensor, j: Tensor) -> Tensor:
        """Squared distances in float64 of the rows i to the centres j of a part."""
        j = j + part.start if isinstance(part, slice) else part[j]
        return exact_pairs(rows, i, self.centres, j, sq_norms, self.exact_centre_sq_norms)

    def _within_reach(self, best: Tensor, sq_norms: Tensor, first: int) -> list[slice] | list[Tensor]:
        """Parts of the centres from `first` on that could be nearer than `best` to some row: |‖c‖ − ‖x‖| < D(x).

        The newest come first: they rule more rows out.
        """
        norms = self.centre_sq_norms[first : self.count].sqrt()
        reach = float(best.max().sqrt())
        low, high = float(sq_norms.min().sqrt()) - reach, float(sq_norms.max().sqrt()) + reach
        kept = ((norms > low - 1e-5 * high) & (norms < high * (1 + 1e-5))).nonzero()[:, 0]
        if len(kept) > 0.8 * len(norms):
            return [slice(max(end - CENTRES, first), end) for end in range(self.count, first, -CENTRES)]
        return [kept[max(end - CENTRES, 0) : end] + first for end in range(len(kept), 0, -CENTRES)]

    def settle(self, everything: bool = False) -> None:
        """Bring those tiles up to date whose rows have cost as much one by one as the whole tile costs at once."""
        size = self.order[:TILE].numel()
        due = (self.spent >= size * (self.count - self.tile_seen)) & (self.tile_seen < self.count)
        for t in range(len(due)) if everything else due.nonzero()[:, 0].tolist():
            ids = self.order[t * TILE : (t + 1) * TILE]
            ids = ids[self.bounds[ids] > 0]
            if len(ids):
                self.update(ids)
            self.tile_seen[t], self.spent[t] = self.count, 0


def exact_pairs(x: Rows, i: Tensor, y: Rows, j: Tensor, x_sq_norms: Tensor, y_sq_norms: Tensor) -> Tensor:
    """Squared distances of the pairs (x_i, y_j) in float64, from float64 squared norms, a bounded number at a time."""
    parts = [x[i[s : s + PAIRS]].paired(y[j[s : s + PAIRS]]) for s in range(0, len(i), PAIRS)]
    inner = torch.cat(parts) if parts else x_sq_norms.new_empty(0)
    return (x_sq_norms[i] + y_sq_norms[j]).sub_(inner, alpha=2).clamp_(min=0)


def among(rows: Rows) -> Tensor:
    """Squared distances among some rows in float64, exactly 0 between equal rows."""
    exact = rows.double()
    d = exact.sq_dists(exact)
    sq_norms = rows.paired(rows)
    i, j = (d <= 1e-9 * (sq_norms[:, None] + sq_norms)).nonzero(as_tuple=True)
    d[i, j] = exact_pairs(rows, i, rows, j, sq_norms, sq_norms)
    return d


def minus_twice(rows: Rows) -> Rows:
    first, *rest = rows.factors
    return Rows((-2 * first, *rest))


def goal(best: Tensor, enough: Tensor | None, decide: bool) -> Tensor:
    """What squared distances matter to rows of which `best` is known."""
    if enough is None:
        return best
    return (torch.minimum(best, enough) if decide else best).masked_fill(best <= enough, -torch.inf)
