"""Estimates of squared distances that are never above them: what they rule out is out.

Estimates come from products of blocks. These are fast, and their rounding depends on the blocks, so they never decide. They
shortlist pairs with all rounding allowed for, and `features.Exact` works out the few that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from badge.features import Exact, Rows
from badge.features.rows import resolution
from badge.samplers.nearest.sketch import Sketch

#: Products that underflow cause an absolute error of at most this many times the smallest normal number.
VANISHED = 4096
#: Vectors are far from 0 if the squared norm of their mean is above FAR times their mean squared distance from it.
FAR = 100


@dataclass(frozen=True, eq=False)
class View:
    """What a lens shows of some rows: numbers to make products from, and squared norms."""

    rows: Rows
    sq_norms: Tensor

    def __getitem__(self, ids: slice | Tensor) -> View:
        return View(self.rows[ids], self.sq_norms[ids])


@dataclass(frozen=True, eq=False)
class Probe:
    """Rows made ready to be compared with many views.

    An estimate is −2⟨x, y⟩ + (1 − rounding) ‖y‖², which lacks (1 − rounding) ‖x‖²: `lacks` is that, rounded down.
    """

    rows: Rows  # −2 times the rows, through the lens
    lacks: Tensor

    def __getitem__(self, ids: slice | Tensor) -> Probe:
        return Probe(self.rows[ids], self.lacks[ids])

    def limits(self, goal: Tensor) -> Tensor:
        """What an estimate must be below for a squared distance of at most `goal`, [n]."""
        limit = goal.sub(self.lacks).to(self.rows.factors[0].dtype)
        return torch.nextafter(limit, limit.new_tensor(torch.inf))


@dataclass(frozen=True, eq=False)
class Lens:
    """How rows are looked at for estimates: as they are, from another origin, or through a sketch. Any lens is right."""

    sketch: Sketch | None = None
    origin: Tensor | None = None  # of plain vectors that lie far from 0 compared with their distances

    def __call__(self, rows: Rows, sq_norms: Tensor | None = None) -> View:
        """The rows through the lens; `sq_norms` where they are known."""
        if self.origin is not None:
            rows, sq_norms = Rows((rows.factors[0] - self.origin,)), None
        sq_norms = rows.sq_norms() if sq_norms is None else sq_norms
        return View(rows if self.sketch is None else Rows((self.sketch(rows, sq_norms),)), sq_norms)

    def look(self, exact: Exact) -> View:
        """Rows whose norms may be known, through the lens."""
        known = None if exact.sq_norms is None else exact.sq_norms.to(exact.rows.factors[0].dtype)
        return self(exact.rows, known)

    def rounding(self, view: View) -> float:
        """The error of an estimated ‖x − y‖² is below this times ‖x‖² + ‖y‖², in whatever order a product sums.

        A sum of `width` products errs by at most half of that many spacings of its terms; a sketch has the errors of
        its own products, of its part outside, and of the product of two sketches.
        """
        width = sum(f.shape[1] for f in view.rows.factors)
        if self.sketch is not None:
            width = max(width, sum(len(basis) for basis in self.sketch.bases))
        return resolution(view.sq_norms.dtype) * (4 + width / 2) * (1 if self.sketch is None else 4)

    def probe(self, view: View) -> Probe:
        """Rows that were looked at, made ready to be compared."""
        first, *rest = view.rows.factors
        lacks = view.sq_norms.double().mul(1 - self.rounding(view)).sub_(VANISHED * torch.finfo(first.dtype).tiny)
        return Probe(Rows((-2 * first, *rest)), lacks)

    def estimates(self, x: Probe, y: View, room: Tensor | None = None) -> Tensor:
        """Lower estimates of ‖x_i − y_j‖², less what the probe lacks: [n, m]."""
        return x.rows.gram(y.rows, room).add_(y.sq_norms, alpha=1 - self.rounding(y))

    def nearest(self, x: View, y: View) -> Tensor:
        """Upper estimates of min ‖x_i − y_j‖² over j, [n], in float64; not through a sketch."""
        slack = 1 + self.rounding(x)
        d = x.rows.gram(y.rows).mul_(-2).add_(y.sq_norms, alpha=slack).amin(dim=1)
        return d.add_(x.sq_norms, alpha=slack).clamp_(min=0).double().add_(VANISHED * torch.finfo(d.dtype).tiny)


def far_origin(rows: Rows) -> Tensor | None:
    """The mean of plain vectors that lie far from 0 compared with their distances: products from there lose no digits.

    >>> far_origin(Rows((torch.tensor([[1000.0], [1002.0]]),)))
    tensor([1001.])
    >>> far_origin(Rows((torch.tensor([[1.0], [-1.0]]),))) is None
    True
    """
    if len(rows.factors) > 1:
        return None
    vectors = rows.factors[0].double()
    mean = vectors.mean(dim=0)
    far = mean.square().sum() > FAR * (vectors - mean).square().sum(dim=1).mean()
    return mean.to(rows.factors[0].dtype) if bool(far) else None
