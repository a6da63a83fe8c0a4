"""Estimates of squared distances that are never above them: what they rule out is out.

Estimates come from products of blocks, which are fast and whose rounding depends on the blocks. So they never decide:
they shortlist pairs, with all their rounding allowed for, and the few that are left are worked out by `features.Exact`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from badge.features import Rows
from badge.features.rows import resolution
from badge.samplers.nearest.sketch import Sketch

__all__ = ["Lens", "View"]


@dataclass(frozen=True, eq=False)
class View:
    """What a lens shows of some rows: numbers to make products from, and squared norms."""

    rows: Rows
    sq_norms: Tensor

    def __getitem__(self, ids: slice | Tensor) -> View:
        return View(self.rows[ids], self.sq_norms[ids])

    def minus_twice(self) -> View:
        """−2 times the rows: their products with others are then terms of squared distances."""
        first, *rest = self.rows.factors
        return View(Rows((-2 * first, *rest)), self.sq_norms)


@dataclass(frozen=True, eq=False)
class Lens:
    """How rows are looked at for estimates: as they are, from another origin, or through a sketch. Any lens is right."""

    sketch: Sketch | None = None
    origin: Tensor | None = None  # of plain vectors that lie far from 0 compared with their distances
    number: int = 0  # which lens of a selection this is: the same one after a journey between processes

    def __call__(self, rows: Rows, sq_norms: Tensor | None = None) -> View:
        """The rows through the lens; `sq_norms` where they are known."""
        if self.origin is not None:
            rows, sq_norms = Rows((rows.factors[0] - self.origin,)), None
        sq_norms = rows.sq_norms() if sq_norms is None else sq_norms
        return View(rows if self.sketch is None else Rows((self.sketch(rows),)), sq_norms)

    def rounding(self, of: View) -> float:
        """The error of an estimated ‖x − y‖² is below this times ‖x‖² + ‖y‖², in whatever order a product sums.

        A sum of `width` products errs by at most half of that many spacings of its terms; a sketch has the errors of
        its own products, of its part outside, and of the product of two sketches.
        """
        width = sum(f.shape[1] for f in of.rows.factors)
        if self.sketch is not None:
            width = max(width, sum(len(basis) for basis in self.sketch.bases))
        return resolution(of.sq_norms.dtype) * (4 + width / 2) * (1 if self.sketch is None else 4)

    def estimates(self, x: View, y: View, scratch: Tensor | None = None) -> Tensor:
        """Lower estimates of ‖x_i − y_j‖², less (1 − rounding) ‖x_i‖², from −2 times x: [n, m]."""
        out = None if scratch is None else scratch[: len(x.sq_norms) * len(y.sq_norms)].view(len(x.sq_norms), -1)
        return x.rows.gram(y.rows, out=out).add_(y.sq_norms, alpha=1 - self.rounding(x))

    def limits(self, x: View, goal: Tensor) -> Tensor:
        """What an estimate must be below for a squared distance of at most `goal`, [n]."""
        spared = goal.sub(x.sq_norms.double(), alpha=1 - self.rounding(x))
        # Products of numbers so small that they vanish are an error too, an absolute one.
        limit = (spared + torch.finfo(x.sq_norms.dtype).tiny * 4096).to(x.sq_norms.dtype)
        return torch.nextafter(limit, limit.new_tensor(torch.inf))

    def nearest(self, x: View, y: View) -> Tensor:
        """Upper estimates of min ‖x_i − y_j‖² over j, [n], in float64; not through a sketch."""
        slack = 1 + self.rounding(x)
        d = x.rows.gram(y.rows).mul_(-2).add_(y.sq_norms, alpha=slack).amin(dim=1)
        return d.add_(x.sq_norms, alpha=slack).clamp_(min=0).double().add_(4096 * torch.finfo(d.dtype).tiny)
