"""Squared distances that decide: in float64, one row and one other row at a time, never from a product of blocks.

The value for a pair depends on the two rows alone: not on what stands around them, on blocks, threads or machines (on
another CPU up to the last bit of a sum). Equal rows are at distance exactly 0, and where rows are close compared with
their lengths the differences themselves are summed, so that a large common offset costs no precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from badge.features.rows import Rows

#: Pairs at a time: their factors in float64 stay in cache, and are not fresh memory each time. On a device more of them.
PAIRS, PAIRS_THERE = 384, 2**14
#: Where ‖x − y‖² is below this share of ‖x‖² + ‖y‖², ‖x‖² + ‖y‖² − 2⟨x, y⟩ has lost half of its digits.
CLOSE = 1e-6


@dataclass(frozen=True, eq=False)
class Exact:
    """Rows, and where they are products of factors their squared norms in float64: all that pairs of them need.

    >>> x = Exact.of(Rows((torch.tensor([[1e8], [1e8 + 1], [0.0]], dtype=torch.float64),)))
    >>> [f"{d:.9g}" for d in x.sq_dists(torch.tensor([0, 0, 1]), x, torch.tensor([1, 0, 2])).tolist()]
    ['1', '0', '1.00000002e+16']
    """

    rows: Rows
    sq_norms: Tensor | None

    @classmethod
    def of(cls, rows: Rows) -> Exact:
        return cls(rows, None if len(rows.factors) == 1 else _inner(rows, rows))

    def __getitem__(self, ids: slice | Tensor) -> Exact:
        return Exact(self.rows[ids], None if self.sq_norms is None else self.sq_norms[ids])

    def sq_dists(self, i: Tensor, other: Exact, j: Tensor) -> Tensor:
        """‖x_i − y_j‖² of each pair of places, a bounded number at a time."""
        size = PAIRS if i.device.type == "cpu" else PAIRS_THERE
        parts = [_pairs(self[a], other[b]) for a, b in zip(torch.split(i, size), torch.split(j, size), strict=True)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def among(self) -> Tensor:
        """Squared distances among the rows, [n, n]: from one product, but for pairs that are close."""
        exact = self.rows.double()
        sq_dists, sq_norms = exact.sq_dists(exact), exact.sq_norms()
        i, j = (sq_dists <= CLOSE * (sq_norms[:, None] + sq_norms)).nonzero(as_tuple=True)
        sq_dists[i, j] = self.sq_dists(i, self, j)
        return sq_dists


def _pairs(x: Exact, y: Exact) -> Tensor:
    if x.sq_norms is None or y.sq_norms is None:  # one factor: the definition
        return (x.rows.factors[0].double() - y.rows.factors[0]).square_().sum(dim=1)
    sq_norms = x.sq_norms + y.sq_norms
    sq_dists = sq_norms.sub(_inner(x.rows, y.rows), alpha=2)
    near = sq_dists < CLOSE * sq_norms
    if near.device.type != "cpu":  # the host does not wait for their number
        return torch.where(near, _by_differences(x.rows, y.rows), sq_dists)
    close = near.nonzero()[:, 0]
    if len(close):
        sq_dists[close] = _by_differences(x.rows[close], y.rows[close])
    return sq_dists


def _inner(x: Rows, y: Rows) -> Tensor:
    """⟨x_i, y_i⟩ of each row with its partner, [n], in float64."""
    sums = []
    for f, g in zip(x.factors, y.factors, strict=True):
        wide = f.to(torch.float64, copy=True)
        sums.append(wide.mul_(wide if f is g else g).sum(dim=1))  # of a row with itself, one conversion is enough
    return reduce(Tensor.mul_, sums)


def _by_differences(x: Rows, y: Rows) -> Tensor:
    """‖a⊗h − b⊗g‖² with a⊗h − b⊗g = (a − b)⊗(h + g)/2 + (a + b)/2⊗(h − g): no large numbers are subtracted."""
    (a, h), (b, g) = x.double().factors, y.double().factors
    e, m, d, s = a - b, (a + b) / 2, h - g, (h + g) / 2
    outer = (e * e).sum(dim=1) * (s * s).sum(dim=1) + (m * m).sum(dim=1) * (d * d).sum(dim=1)
    return outer.add_((e * m).sum(dim=1) * (s * d).sum(dim=1), alpha=2).clamp_(min=0)
