"""How well picks cover a pool, and bounds on what one more pick would add (`coverage.py` says what for).

Row i adds something at row j only if it is nearer to j than every centre (pick or given row) is, and κ is next to nothing
beyond some distance. So most pairs are left out before their product is taken (`boxes.py`).
"""

import math
from functools import partial
from threading import Lock

import torch
from torch import Tensor

from badge.core.threads import in_threads
from badge.features import Exact, Features, Rows
from badge.features.rows import resolution
from badge.samplers.boxes import Boxes, Limits
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.nearest.sketch import sketches

#: Bounds leave out kernel values times weights below TINY (bounds in float64: TINIER). Their sum is added back, and so is the
#: rounding of coverage.
TINY, TINIER = 1e-7, 1e-15
#: Candidates in one product, and targets: the block of kernel values stays in cache.
GROUP, BLOCK = 256, 1024
#: If candidates matter to less than this share of the rows, the first bounds need no guesses. They are made for SPAN
#: neighbours together, and PART of them are multiplied with the same rows.
LOCAL, SPAN, PART = 0.05, 2048, 64
#: What a gain leaves out: kernel values times weights below this share of the largest weight, far below any doubt in float64.
FAINT = 1e-30
#: If more than this share of the rows matters, all of them are gone through.
MOST = 0.75
#: Sketches of rows of WIDE numbers or more hold a quarter or half of these, if that is at most half of the SAMPLE rows that
#: they are made from. They are used if their mean error is below the share LOOSE of the squared distance at which κ is 1/e.
PIECES, WIDE, SAMPLE, LOOSE = (4, 2), 256, 2048, 0.15
#: After a pick, losses are first estimated at TOLD rows, for CHUNK candidates at a time. Where they seem to be above
#: the share SHARE of the largest bound they are worked out.
TOLD, CHUNK, SHARE = 64, 8192, 0.01


class Cover:
    """How well the centres so far cover each row, and what one more centre would add."""

    def __init__(self, features: Features, kernel: Gauss | Ball, weights: Tensor) -> None:
        n = len(features)
        self.kernel, self.weights = kernel, weights
        self.heaviest = float(weights.max())
        self.every = torch.arange(n, device=features.device)
        self.tiles = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        self.sq_near = torch.full((n,), torch.inf, dtype=torch.float64, device=features.device)  # to the nearest centre
        self.covered = torch.zeros(n, dtype=torch.float64, device=features.device)  # κ of that
        self.limits: dict[float, Limits] = {}  # by the least kernel value that matters
        #: the best candidate so far: its gain, its number, the rows that it is nearer to, and the squared distances to these
        self.known: tuple[float, int, Tensor, Tensor] | None = None
        #: gains are whole numbers, and many are equal
        self.whole = isinstance(kernel, Ball) and bool((weights == weights.round()).all())
        self._read(features, TINY)

    def _read(self, features: Features, tiny: float) -> None:
        """Make bounds from these rows, without kernel values times weights below `tiny`."""
        self.features, self.tiny = features, tiny
        self.left_out = tiny * (self.heaviest * len(features) + float(self.weights.sum()))  # of a bound
        self.sq_norms = features.sq_norms
        self.boxes = Boxes(features)
        #: the error of a squared distance from a product is below this times the sum of the squared norms
        self.rounding = resolution(features.dtype) * (4 + features.width / 2)
        self.largest = float(self.sq_norms.max())
        reach = self.kernel.sq_reach(torch.full_like(self.sq_norms, tiny)) + self.error(self.sq_norms, self.boxes)
        #: what κ reaches from a row: None is everything
        self.reached = None if float(reach[0]) > 4 * self.largest else self.boxes.limits(reach)
        self.sketched: Rows | None = None  # where the kernel is wide: see `sketched`
        self.room = self.sq_norms.new_empty(len(features.factors) * max(BLOCK * BLOCK, TOLD * CHUNK))

    def widen(self) -> None:
        """Make bounds in float64 from now on: far tighter, and several times slower."""
        self.limits = {}
        self._read(self.features.double(), TINIER)

    def narrow(self, ids: Tensor, most: float = math.inf) -> bool:
        """Whether each of these rows matters to a small part of the pool only, and to fewer than `most` rows."""
        return all(len(self._live(one)) < min(LOCAL * len(self.every), most) for one in torch.split(ids, 1))

    def error(self, sq_norms: Tensor, through: object = None) -> float:
        """How far off a squared distance to such rows can be; a sketch has the errors of three products."""
        times = self.rounding * (1 if through is None else 4)
        return times * (self.largest + float(sq_norms.max())) + torch.finfo(self.features.dtype).tiny

    def rows(self, ids: slice | Tensor, through: Rows | None) -> Rows:
        return self.features.rows(ids) if through is None else through[ids]

    def add(self, rows: Rows) -> None:
        """More centres. Distances that a centre may lower are worked out in float64."""
        self.sq_near = self.sq_near.clone()  # a copy of this has its own
        sq_norms = rows.sq_norms()
        error, exact = self.error(sq_norms), Exact.of(rows)
        for tile in self.features.tiles(beside=len(rows)):
            x = self.features.rows(tile)
            estimate = sq_dists(x, self.sq_norms[tile], rows, sq_norms)
            lowest = torch.minimum(estimate.amin(dim=1) + error, self.sq_near[tile].to(estimate.dtype))
            i, j = (estimate <= (lowest + error)[:, None]).nonzero(as_tuple=True)
            if len(i):
                self.sq_near[tile].scatter_reduce_(0, i, Exact.of(x).sq_dists(i, exact, j), "amin")
        self._added()

    def pick(self, i: int) -> None:
        """Make row i a centre. Its distances are known if its gain is the largest that was worked out."""
        if self.known is None or self.known[1] != i:
            self.add(self.features.rows(slice(i, i + 1)))
        else:
            j, found = self.known[2:]
            self.sq_near[j] = torch.minimum(self.sq_near[j], found)
            self._added()

    def _added(self) -> None:
        self.covered = self.kernel(self.sq_near)
        self.limits, self.known = {}, None

    def bounds(self, ids: Tensor) -> Tensor:
        """Upper bounds on the gains of the rows `ids`, in float64. Rows that are near each other go together."""
        order, size = self.boxes.place[ids].argsort(), GROUP
        if self.narrow(ids[:1]):  # those that lie in about SPAN neighbouring rows go together
            size = min(GROUP, max(1, SPAN * len(ids) // len(self.every)))
        parts = [self.gained(group, self._live(group)) for group in torch.split(ids[order], size)]
        return torch.cat(parts)[order.argsort()] + self.left_out

    def near_bounds(self, far: float) -> Tensor:
        """Upper bounds on all gains if rows matter to few others. Kernel values below `far` are bounded through sketches."""
        limits = [self.limited(least) for least in (self.tiny, far / 10, far)]
        parts = in_threads(partial(self._near, limits=limits), torch.split(self.boxes.order, SPAN), self.every.device)
        return torch.cat(parts)[self.boxes.place] + self.left_out

    def _near(self, ids: Tensor, limits: list[Limits]) -> Tensor:
        """Bounds on the gains of neighbours, but for what is left out.

        Three tests follow each other, each at the rows that the one before has left: box against box, row against box, row
        against PART rows. What may be gained at the rows that the last two leave out follows from their distances.
        """
        places = self.boxes.around(ids, limits[0])
        outside = self.boxes.outside(ids, places)
        left = (outside < limits[0].each[places]).nonzero()[:, 0]
        places, outside = places[left], outside[left]
        targets, limit = self.boxes.order[places], limits[1].each[places]
        rest, close = self._rest(targets, outside[None], limit), (outside < limit).nonzero()[:, 0]
        places, targets = places[close], targets[close]
        apart, limit = self.boxes.nearest(ids, places, min(PART, len(ids))), limits[2].each[places]
        rest = rest + self._rest(targets, apart, limit)
        used = (apart.amin(dim=0) < limit).nonzero()[:, 0]
        targets, apart = targets[used], apart[:, used] < limit[used]
        kept = Rows.cat([self.features.rows(some) for some in torch.split(targets, BLOCK)]) if len(apart) > 1 else None
        totals, room = [], self.sq_norms.new_empty(len(self.features.factors) * PART * BLOCK)
        for some, close, total in zip(torch.split(ids, PART), apart, rest.double(), strict=True):
            rows, sq_norms = self.features.rows(some), self.sq_norms[some]
            sq_norms, total = sq_norms - self.error(sq_norms), total.expand(len(some))
            for block in torch.split(close.nonzero()[:, 0], BLOCK):
                other = self.features.rows(targets[block]) if kept is None else kept[block]
                total = total + self._sum(rows.gram(other, room), sq_norms, targets[block])
            totals.append(total)
        return torch.cat(totals) * (1 + BLOCK * resolution(self.features.dtype))

    def _rest(self, targets: Tensor, sq_dists: Tensor, limits: Tensor) -> Tensor:
        """Bounds on what is gained at the targets beyond their limits, [parts], for distances [parts, targets]."""
        kappa = self.kernel((sq_dists - self.error(self.sq_norms, self.boxes)).clamp_(min=0))
        kappa.sub_(self.covered[targets].to(kappa.dtype)).clamp_(min=0).mul_(sq_dists >= limits)
        return kappa @ self.weights[targets].to(kappa.dtype) * (1 + len(targets) * resolution(kappa.dtype))

    def gained(self, ids: Tensor, targets: Tensor, through: Rows | None = None) -> Tensor:
        """Bounds on what the rows `ids` gain at the rows `targets`, but for what is left out."""
        rows, sq_norms, dtype = self.rows(ids, through), self.sq_norms[ids], self.features.dtype
        sq_norms = sq_norms - self.error(sq_norms, through)
        total = torch.zeros(len(ids), dtype=torch.float64, device=ids.device)
        for some in self.tiles if targets is self.every else torch.split(targets, BLOCK):
            total += self._sum(rows.gram(self.rows(some, through), self.room), sq_norms, some)
        return total * (1 + BLOCK * resolution(dtype))

    def _sum(self, products: Tensor, sq_norms: Tensor, targets: slice | Tensor) -> Tensor:
        """What rows of these norms gain at a block of targets, from their products."""
        kappa = self.kernel.upper(products, sq_norms, self.sq_norms[targets])
        return kappa.sub_(self.covered[targets].to(kappa.dtype)).clamp_(min=0) @ self.weights[targets].to(kappa.dtype)

    def all_bounds(self, covered: Tensor, through: Rows | None = None) -> Tensor:
        """Upper bounds on all gains for states of coverage [levels, N]. Each pair of tiles is multiplied once."""
        dtype = self.features.dtype
        empty = (covered == 0).all(dim=1).tolist()  # there κ itself is gained
        total, covered, weights = torch.zeros_like(covered), covered.to(dtype), self.weights.to(dtype)
        lower, lock = self.sq_norms - self.error(self.sq_norms, through), Lock()

        def add(i: int) -> None:
            one, rows, mine = self.tiles[i], self.rows(self.tiles[i], through), torch.zeros_like(total)
            room, rest = torch.empty_like(self.room), torch.empty_like(self.room)
            for other in self.tiles[i:]:
                products = rows.gram(self.rows(other, through), room)
                kappa = self.kernel.upper(products, lower[one], self.sq_norms[other])
                more = rest[: kappa.numel()].view(kappa.shape)
                for level, at in enumerate(covered):
                    new = kappa if empty[level] else torch.sub(kappa, at[other], out=more).clamp_(min=0)
                    mine[level, one] += new @ weights[other]
                    if other is not one:
                        new = kappa if empty[level] else torch.sub(kappa, at[one, None], out=more).clamp_(min=0)
                        mine[level, other] += weights[one] @ new
            with lock:
                total.add_(mine)

        in_threads(add, range(len(self.tiles)), covered.device)
        return total * (1 + BLOCK * resolution(dtype)) + 2 * self.tiny * float(self.weights.sum())

    def lower(self, bounds: Tensor, before: Tensor, share: float) -> None:
        """Lower the bounds of the rows that lose most by the newest centre; coverage was `before`.

        Only bounds above this share of the largest one are lowered.
        """
        rise = self.weights * (self.covered - before)
        changed = (rise > 0).nonzero()[:, 0]
        if not len(changed):
            return
        changed = changed[rise[changed].argsort()]
        some = changed[torch.linspace(0, len(changed) - 1, min(TOLD, len(changed)), device=changed.device).long()]
        largest = float(bounds.max())
        around = self.every if self.reached is None else self.boxes.near(some, self.reached)
        high = around[bounds[around] > share * largest]
        enough = SHARE * largest * float(rise[some].sum() / rise.sum())
        ids = [ids[self.lost(ids, some, before, self.sketched) > enough] for ids in torch.split(high, CHUNK)]
        for group in torch.split(torch.cat(ids), BLOCK):
            bounds[group] -= self.lost(group, changed, before)

    def lost(self, ids: Tensor, changed: Tensor, before: Tensor, through: Rows | None = None) -> Tensor:
        """What the gains of the rows `ids` lost at the rows `changed` at least (through a sketch: about)."""
        if not len(ids):
            return self.weights[ids]
        rows, sq_norms, dtype = self.rows(ids, through), self.sq_norms[ids], self.features.dtype
        sq_norms = sq_norms + self.error(sq_norms, through)
        total = torch.zeros(len(ids), dtype=torch.float64, device=ids.device)
        for some in torch.split(changed, BLOCK):
            kappa = self.kernel.upper(rows.gram(self.rows(some, through), self.room), sq_norms, self.sq_norms[some])
            rise = torch.minimum(kappa, self.covered[some].to(dtype), out=kappa).sub_(before[some].to(dtype))
            total += rise.clamp_(min=0) @ self.weights[some].to(dtype)
        rounding = 4 * resolution(dtype) * float(self.weights[changed].sum())
        return (total * (1 - BLOCK * resolution(dtype)) - rounding).clamp_(min=0)

    def _live(self, ids: Tensor, least: float | None = None) -> Tensor:
        """The rows at which one of the rows `ids` may add something, but for what is below `least` (`limited`)."""
        found = self.boxes.near(ids, self.limited(self.tiny if least is None else least))
        return found if len(found) < MOST * len(self.every) else self.every  # slices are faster than gathered rows

    def limited(self, least: float) -> Limits:
        """Squared distances within which a row adds something: κ times the weight there is above `least` · the largest."""
        if least not in self.limits:
            reach = self.kernel.sq_reach(least * self.heaviest / self.weights)
            nearer = torch.minimum(self.sq_near, reach).to(self.sq_norms.dtype)
            nearer += self.error(self.sq_norms, self.boxes)
            self.limits[least] = self.boxes.limits(nearer.masked_fill_(self.weights == 0, -torch.inf))
        return self.limits[least]

    def gain(self, i: int) -> float:
        """What row i adds, in float64."""
        one = torch.tensor([i], device=self.weights.device)
        rows, sq_norms = self.features.rows(one), self.sq_norms[one]
        live = self._live(one, FAINT)
        x = self.features.rows(slice(None) if live is self.every else live)
        estimate = sq_dists(x, self.sq_norms[live], rows, sq_norms)[:, 0]
        nearer = (estimate < self.sq_near[live] + self.error(sq_norms)).nonzero()[:, 0]
        found = Exact.of(x).sq_dists(nearer, Exact.of(rows), torch.zeros_like(nearer))
        j = live[nearer]
        gain = float((self.kernel(found) - self.covered[j]).clamp_(min=0) @ self.weights[j])
        if self.known is None or gain > self.known[0]:
            self.known = gain, i, j, found
        return gain


def sq_dists(x: Rows, x_norms: Tensor, y: Rows, y_norms: Tensor) -> Tensor:
    """‖x_i − y_j‖² from one product, [n, m]."""
    return x.gram(y).mul_(-2).add_(x_norms[:, None]).add_(y_norms)


def sketched(features: Features, kernel: Gauss | Ball) -> Rows | None:
    """Sketches of all rows: their products are at least those of the rows. None if they are too loose for the kernel."""
    if features.width >= WIDE and len(features) >= SAMPLE:
        for rank in (features.width // piece for piece in PIECES if features.width // piece <= SAMPLE // 2):
            found = sketches(features, rank, SAMPLE)
            if 2 * float(found[:, -1].square().mean()) < LOOSE * float(kernel.sq_reach(torch.tensor(math.exp(-1)))):
                return Rows((found,))
    return None
