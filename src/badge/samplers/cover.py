"""How well picks cover a pool, and bounds on what one more pick would add (`coverage.py` says what for).

Row i adds something at row j only if it is nearer to j than every centre (pick or given row) is, and κ is next to nothing
beyond some distance. So most pairs are left out before their product is taken (`boxes.py`).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from badge.core.numbers import positive
from badge.features import Exact, Features, Rows
from badge.features.rows import resolution
from badge.samplers.boxes import Boxes, Limits
from badge.samplers.nearest.sketch import sketches

#: Kernel values below this are left out of bounds; their sum is added back, and so is the rounding of coverage.
TINY = 1e-7
#: Candidates in one product, and targets: the block of kernel values stays in cache.
GROUP, BLOCK = 256, 1024
#: If a candidate matters to less than this share of the rows, those in one product lie in about SPAN neighbouring rows.
LOCAL, SPAN = 0.05, 1024
#: Bounds need no guesses if GROUP neighbours matter to less than this share of the rows.
FEW = 0.3
#: What a gain leaves out: kernel values below this.
FAINT = 1e-18
#: If more than this share of the rows matters, all of them are gone through.
MOST = 0.75
#: Numbers in a sketch, rows that it is made from, and its largest mean error as a share of the kernel's squared scale.
RANK, SAMPLE, LOOSE = 128, 512, 0.2
#: After a pick: rows that tell which candidates lose, candidates at a time, and the share of the largest bound that is worth
#: working out.
TOLD, CHUNK, SHARE = 64, 8192, 0.01


@dataclass(frozen=True)
class Gauss:
    """The kernel κ = exp(−d²/σ²) of `badge.samplers.coverage`.

    Args:
        sigma: the distance σ, above 0.

    >>> round(Gauss(2.0)(torch.tensor([4.0])).item(), 4)
    0.3679
    """

    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, "sigma")

    def __call__(self, sq_dists: Tensor) -> Tensor:
        return sq_dists.div(-(self.sigma**2)).clamp_(min=_least(sq_dists)).exp_()

    def upper(self, products: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """κ where the squared distance is x_i + y_j − 2 products_ij, or 0 if that is negative; in place."""
        scale = self.sigma**-2
        exponents = torch.add(y * -scale, products, alpha=2 * scale, out=products).sub_((x * scale)[:, None])
        return exponents.clamp_(_least(products), 0).exp_()

    def reach(self, least: float) -> float:
        """The distance beyond which κ < least."""
        return self.sigma * math.sqrt(-math.log(least))

    @property
    def scale(self) -> float:
        """The distance over which κ changes."""
        return self.sigma


@dataclass(frozen=True)
class Ball:
    """The kernel κ = 1 where d < δ, else 0, of `badge.samplers.coverage`.

    Args:
        delta: the radius δ, above 0.

    >>> Ball(2.0)(torch.tensor([3.9, 4.0])).tolist()
    [1.0, 0.0]
    """

    delta: float

    def __post_init__(self) -> None:
        positive(self.delta, "delta")

    def __call__(self, sq_dists: Tensor) -> Tensor:
        return (sq_dists < self.delta**2).to(sq_dists.dtype)

    def upper(self, products: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return self(torch.add(y, products, alpha=-2, out=products).add_(x[:, None]))

    def reach(self, least: float) -> float:
        return self.delta

    @property
    def scale(self) -> float:
        return self.delta


def _least(x: Tensor) -> float:
    """Exponents below this give denormal numbers, which are ten times slower."""
    return math.log(torch.finfo(x.dtype).tiny) / 2


class Cover:
    """How well the centres so far cover each row, and what one more centre would add."""

    def __init__(self, features: Features, kernel: Gauss | Ball, weights: Tensor) -> None:
        n = len(features)
        self.features, self.kernel, self.weights = features, kernel, weights
        self.every = torch.arange(n, device=features.device)
        self.tiles = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        self.sq_norms = features.sq_norms
        self.sq_near = torch.full((n,), torch.inf, dtype=torch.float64, device=features.device)  # to the nearest centre
        self.covered = torch.zeros(n, dtype=torch.float64, device=features.device)  # κ of that
        self.boxes = Boxes(features)
        self.limits: dict[float, Limits] = {}  # by the least kernel value that matters
        #: the best candidate so far: its gain, its number, the rows that it is nearer to, and the squared distances to these
        self.known: tuple[float, int, Tensor, Tensor] | None = None
        #: the error of a squared distance from a product is below this times the sum of the squared norms
        self.rounding = resolution(features.dtype) * (4 + features.width / 2)
        self.largest = float(self.sq_norms.max())
        reach = kernel.reach(TINY) ** 2 + self.error(self.sq_norms, self.boxes)
        #: what κ reaches from a row: None is everything
        self.reached = None if reach > 4 * self.largest else self.boxes.limits(torch.full_like(self.sq_norms, reach))
        #: gains are whole numbers, and many are equal
        self.whole = isinstance(kernel, Ball) and bool((weights == weights.round()).all())
        self.sketched = sketched(features, kernel)
        self.room = self.sq_norms.new_empty(len(features.factors) * max(BLOCK * BLOCK, TOLD * CHUNK))

    @property
    def local(self) -> bool:
        """Whether neighbours matter to a small part of the rows only."""
        return len(self._live(self.boxes.order[-GROUP:])) < FEW * len(self.every)

    def error(self, sq_norms: Tensor, through: object = None) -> float:
        """How far off a squared distance to such rows can be; a sketch has the errors of three products."""
        times = self.rounding * (1 if through is None else 4)
        return times * (self.largest + float(sq_norms.max())) + torch.finfo(self.features.dtype).tiny

    def rows(self, ids: slice | Tensor, through: Rows | None) -> Rows:
        return self.features.rows(ids) if through is None else through[ids]

    def products(self, x: Rows, ids: slice | Tensor, through: Rows | None) -> Tensor:
        """Products with the rows `ids`, in memory that the next call uses again."""
        return x.gram(self.rows(ids, through), self.room)

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
        found = torch.empty(len(ids), dtype=torch.float64, device=ids.device)
        near = len(self._live(ids[:1])) < LOCAL * len(self.every)
        size = max(1, min(GROUP, SPAN * len(ids) // len(self.every))) if near else GROUP
        for places in torch.split(self.boxes.place[ids].argsort(), size):
            found[places] = self.gained(ids[places], self._live(ids[places]))
        return found + 2 * TINY * float(self.weights.sum())

    def gained(self, ids: Tensor, targets: Tensor, through: Rows | None = None) -> Tensor:
        """Bounds on what the rows `ids` gain at the rows `targets`, but for TINY each."""
        rows, sq_norms, dtype = self.rows(ids, through), self.sq_norms[ids], self.features.dtype
        sq_norms = sq_norms - self.error(sq_norms, through)
        total = torch.zeros(len(ids), dtype=torch.float64, device=ids.device)
        for some in self.tiles if targets is self.every else torch.split(targets, BLOCK):
            kappa = self.kernel.upper(self.products(rows, some, through), sq_norms, self.sq_norms[some])
            total += kappa.sub_(self.covered[some].to(dtype)).clamp_(min=0) @ self.weights[some].to(dtype)
        return total * (1 + BLOCK * resolution(dtype))

    def all_bounds(self, covered: Tensor) -> Tensor:
        """Upper bounds on all gains for states of coverage [levels, N]."""
        dtype = self.features.dtype
        empty = (covered == 0).all(dim=1).tolist()  # there κ itself is gained
        total, covered, weights = torch.zeros_like(covered), covered.to(dtype), self.weights.to(dtype)
        lower, room = self.sq_norms - self.error(self.sq_norms), torch.empty_like(self.room)
        for i, one in enumerate(self.tiles):
            rows = self.features.rows(one)
            for other in self.tiles[i:]:
                kappa = self.kernel.upper(self.products(rows, other, None), lower[one], self.sq_norms[other])
                more = room[: kappa.numel()].view(kappa.shape)
                for level, at in enumerate(covered):
                    new = kappa if empty[level] else torch.sub(kappa, at[other], out=more).clamp_(min=0)
                    total[level, one] += new @ weights[other]
                    if other is not one:
                        new = kappa if empty[level] else torch.sub(kappa, at[one, None], out=more).clamp_(min=0)
                        total[level, other] += weights[one] @ new
        return total * (1 + BLOCK * resolution(dtype)) + 2 * TINY * float(self.weights.sum())

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
            kappa = self.kernel.upper(self.products(rows, some, through), sq_norms, self.sq_norms[some])
            rise = torch.minimum(kappa, self.covered[some].to(dtype), out=kappa).sub_(before[some].to(dtype))
            total += rise.clamp_(min=0) @ self.weights[some].to(dtype)
        rounding = 4 * resolution(dtype) * float(self.weights[changed].sum())
        return (total * (1 - BLOCK * resolution(dtype)) - rounding).clamp_(min=0)

    def _live(self, ids: Tensor, least: float = TINY) -> Tensor:
        """The rows at which one of the rows `ids` may add something, but for kernel values below `least`."""
        if least not in self.limits:
            nearer = self.sq_near.clamp(max=self.kernel.reach(least) ** 2).to(self.sq_norms.dtype)
            nearer += self.error(self.sq_norms, self.boxes)
            self.limits[least] = self.boxes.limits(nearer.masked_fill_(self.weights == 0, -torch.inf))
        found = self.boxes.near(ids, self.limits[least])
        return found if len(found) < MOST * len(self.every) else self.every  # slices are faster than gathered rows

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
    """Sketches of all rows: their products are at least those of the rows. None if that is too loose for the kernel."""
    if features.width < 2 * RANK or len(features) < SAMPLE:
        return None
    found = sketches(features, RANK, SAMPLE)
    return Rows((found,)) if 2 * float(found[:, -1].square().mean()) < LOOSE * kernel.scale**2 else None
