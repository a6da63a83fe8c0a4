"""How far every row is from its nearest centre, worked out only where it matters.

Adding a centre can only lower a row's squared distance to its nearest centre. So the distance that a row had when it was
last looked at is an upper bound for ever, and the two samplers that need distances, k-means++ and furthest-first, can
work from upper bounds: they bring the few rows that they consider up to date and leave the others alone. Nothing is
approximate: what `update` writes is the squared distance in float64, whatever the dtype and the blocking of the products
that found it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from badge.features import Features, Rows, check_same

__all__ = ["Nearest", "exact_pairs"]

#: Rows of a tile, the unit in which the pool is brought up to date. The rows of a tile have similar norms.
TILE = 1024
#: Centres per product: a tile's distances to this many stay in cache.
CENTRES = 1024
#: Pairs of rows whose distance is worked out in float64 at a time.
PAIRS = 2**14
#: How many of the given centres the first upper bounds look at.
ANCHORS = 8


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
        # Rounding of one product of rows x and c is below `rounding` · (‖x‖² + ‖c‖²).
        self.rounding = torch.finfo(dtype).eps * (4 + math.sqrt(features.width))
        self.order = torch.argsort(self.sq_norms)
        self.tile_of = torch.empty(n, dtype=torch.int32, device=device)
        self.tile_of[self.order] = (torch.arange(n, device=device) // TILE).to(torch.int32)
        tiles = -(-n // TILE)
        self.tile_seen = torch.zeros(tiles, dtype=torch.int64, device=device)
        self.spent = torch.zeros(tiles, dtype=torch.int64, device=device)
        if given is not None:
            check_same(features, given)
            for part in given.tiles():
                self.add(given.rows(part))

    def add(self, rows: Rows) -> None:
        """More centres. No row is brought up to date: what is known of them stays an upper bound."""
        end = self.count + len(rows)
        for buffer, factor in zip(self.centres.factors, rows.factors, strict=True):
            buffer[self.count : end] = factor
        self.centre_sq_norms[self.count : end] = rows.sq_norms()
        self.exact_centre_sq_norms[self.count : end] = rows.paired(rows)
        self.count = end

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

    def update(self, ids: Tensor, enough: Tensor | None = None) -> Rows:
        """Bring the rows `ids` up to date with all centres; returns them.

        With `enough` these are single rows of interest: one whose bound has come down to its `enough` is not followed
        further, and what they cost is charged to their tiles (see `settle`).
        """
        rows = self.features.rows(ids)
        # Rows that have seen about as many centres go together: ages within a factor of two.
        ages = (self.count - self.seen[ids]).clamp_(min=1)
        groups = ages.double().log2_().long()
        unknown = self.exact_sq_norms[ids].isnan().nonzero()[:, 0]
        if len(unknown):
            some = rows if len(unknown) == len(ids) else rows[unknown]
            self.exact_sq_norms[ids[unknown]] = some.paired(some)
        for group in torch.unique(groups).tolist():
            members = (groups == group).nonzero()[:, 0]
            whole = len(members) == len(ids)
            least = enough if enough is None or whole else enough[members]
            self._lower(rows if whole else rows[members], ids if whole else ids[members], least)
        return rows

    def _lower(self, rows: Rows, ids: Tensor, enough: Tensor | None) -> None:
        """Lower the bounds of the rows `ids` to the exact squared distances to the centres they have not seen."""
        best, sq_norms, exact_sq_norms = self.bounds[ids], self.sq_norms[ids], self.exact_sq_norms[ids]
        centres, centre_sq_norms, exact_centre_sq_norms = self._within_reach(best, sq_norms, int(self.seen[ids].min()))
        for start in reversed(range(0, len(centres), CENTRES)):  # the newest first: they rule more rows out
            part = slice(start, start + CENTRES)
            some, some_sq_norms = centres[part], centre_sq_norms[part]
            # Lower estimates of the distances less ‖x‖²; most rows are done when the lowest is not below `best`.
            if enough is not None:
                self.spent.index_add_(0, self.tile_of[ids], torch.full_like(ids, len(some)))
            d = rows.gram(some).mul_(-2).add_(some_sq_norms, alpha=1 - self.rounding)
            low = d.amin(dim=1).add_(sq_norms, alpha=1 - self.rounding)
            left = (low < best).nonzero()[:, 0]
            if not len(left):
                continue
            d, x = d.index_select(0, left), sq_norms[left]
            # The nearest centre is among those whose lower estimate is not above the lowest upper estimate.
            upper = (d + some_sq_norms * (2 * self.rounding)).amin(dim=1).add_(x, alpha=1 + self.rounding)
            limit = torch.minimum(upper.double(), best[left]).sub_(x.double(), alpha=1 - self.rounding)
            near = (d <= torch.nextafter(limit.to(d.dtype), d.new_tensor(torch.inf))[:, None]).nonzero()
            i = left[near[:, 0]]
            exact = exact_pairs(rows, i, some, near[:, 1], exact_sq_norms, exact_centre_sq_norms[part])
            best.scatter_reduce_(0, i, exact, "amin")
            if enough is not None and start > 0:
                follow = (best > enough).nonzero()[:, 0]
                if len(follow) < 0.7 * len(ids):
                    self.bounds[ids] = best
                    rows, ids, best, enough = rows[follow], ids[follow], best[follow], enough[follow]
                    sq_norms, exact_sq_norms = sq_norms[follow], exact_sq_norms[follow]
        self.bounds[ids] = best
        self.seen[ids] = self.count

    def _within_reach(self, best: Tensor, sq_norms: Tensor, first: int) -> tuple[Rows, Tensor, Tensor]:
        """Centres from `first` on that could be nearer than `best` to some row: |‖c‖ − ‖x‖| < D(x)."""
        part = slice(first, self.count)
        centres, sq, exact = self.centres[part], self.centre_sq_norms[part], self.exact_centre_sq_norms[part]
        reach = float(best.max().sqrt())
        low, high = float(sq_norms.min().sqrt()) - reach, float(sq_norms.max().sqrt()) + reach
        norms = sq.sqrt()
        kept = ((norms > low - 1e-5 * abs(low)) & (norms < high * (1 + 1e-5))).nonzero()[:, 0]
        if len(kept) > 0.8 * len(centres):
            return centres, sq, exact
        return centres[kept], sq[kept], exact[kept]

    def settle(self, everything: bool = False) -> None:
        """Bring those tiles up to date whose rows have cost half as much one by one as the whole tile costs at once."""
        size = self.order[:TILE].numel()
        due = (2 * self.spent >= size * (self.count - self.tile_seen)) & (self.tile_seen < self.count)
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
