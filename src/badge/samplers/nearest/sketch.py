"""Lower bounds on distances from a few numbers per row.

Let P project onto a subspace that holds most of the features. Then ⟨x, y⟩ = ⟨Px, Py⟩ + ⟨x − Px, y − Py⟩, and by
Cauchy and Schwarz the second part is at most ‖x − Px‖ ‖y − Py‖. So with the sketch s(x) = (Px, ‖x − Px‖)

    ‖x − y‖² ≥ ‖x‖² + ‖y‖² − 2 ⟨s(x), s(y)⟩

whatever P is: a bad one makes the bound loose, never wrong. The embeddings of a trained network lie close to few
directions; then almost every centre is ruled out at a fraction of the price of its distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from badge.features import Features, Rows
from badge.features.rows import resolution

#: Dimensions of the subspace.
RANK = 64
#: How many rows a subspace is found from, and tried on.
SAMPLE = 256
#: A sketch is of use where at most this share of the pairs is left over.
LEFT = 1 / 32


@dataclass(frozen=True, eq=False)
class Sketch:
    """The subspace: an orthonormal basis for each factor, [width, rank]; g = a ⊗ h is projected to Aᵀa ⊗ Hᵀh.

    >>> import badge, torch
    >>> x = badge.Dense([[2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.5, 0.0]]).rows(slice(None))
    >>> Sketch.of(x, rank=1)(x).abs().round(decimals=1).tolist()
    [[2.0, 0.0], [3.0, 0.0], [0.0, 0.5]]
    """

    bases: tuple[Tensor, ...]

    @classmethod
    def of(cls, rows: Rows, rank: int) -> Sketch:
        """The leading directions of each factor, their numbers such that most of `rows` is inside."""
        found = [leading(f, rank) for f in rows.factors]
        shapes: list[tuple[int, ...]] = [(rank,)]
        if len(found) == 2:
            shapes = [(r, rank // r) for r in range(1, rank + 1)]

        sums: list[list[float]] = [[0.0, *shares.cumsum(dim=0).tolist()] for _, shares in found]

        def inside(shape: tuple[int, ...]) -> float:
            return math.prod(mine[min(r, len(mine) - 1)] for mine, r in zip(sums, shape, strict=True))

        best = max(shapes, key=inside)
        return cls(tuple(basis[:, :r] for (basis, _), r in zip(found, best, strict=True)))

    @property
    def width(self) -> int:
        """Numbers per row."""
        return math.prod(b.shape[1] for b in self.bases) + 1

    def __call__(self, rows: Rows, sq_norms: Tensor | None = None) -> Tensor:
        """(Px, ‖x − Px‖) of every row, [n, rank + 1]; the last rounded up. `sq_norms` where they are known."""
        inside = Rows(tuple(f @ b for f, b in zip(rows.factors, self.bases, strict=True))).as_matrix()
        sq_norms = rows.sq_norms() if sq_norms is None else sq_norms
        slack = 4 * resolution(sq_norms.dtype) * (4 + sum(len(b) for b in self.bases) / 2)
        outside = sq_norms.mul(1 + slack).sub_(torch.linalg.vector_norm(inside, dim=1).square_()).clamp_(min=0).sqrt_()
        return torch.cat([inside, outside[:, None]], dim=1)


def sketches(features: Features, rank: int, sample: int) -> Tensor:
    """Sketches of all rows, [N, rank + 1], with a subspace found from `sample` of them."""
    n = len(features)
    some = torch.linspace(0, n - 1, min(n, sample), device=features.device).long()
    sketch = Sketch.of(features.rows(some), rank)
    found = features.sq_norms.new_empty(n, sketch.width)
    for tile in features.tiles(2**22):
        found[tile] = sketch(features.rows(tile), features.sq_norms[tile])
    return found


def leading(x: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """An orthonormal basis [width, ≤ rank] of about the leading directions of x, and how much of ‖x‖² each holds."""
    x = x / x.abs().max().clamp(min=torch.finfo(x.dtype).tiny)  # squares must not overflow
    basis = x[: min(rank, *x.shape)].T
    for _ in range(3):  # subspace iteration
        basis = torch.linalg.qr(x.T @ (x @ basis)).Q
    _, values, turn = torch.linalg.svd(x @ basis, full_matrices=False)
    return basis @ turn.T, values.square()


def useful_sketch(rows: Rows) -> Sketch | None:
    """A sketch found from some of the rows, if on others it leaves few pairs that may be nearer than the nearest ones."""
    if sum(f.shape[1] for f in rows.factors) <= 2 * RANK:
        return None
    some = torch.linspace(0, len(rows) - 1, min(len(rows), 2 * SAMPLE), device=rows.factors[0].device).long()
    sketch, others = Sketch.of(rows[some[::2]], RANK), rows[some[1::2]]
    d, sq_norms, s = others.sq_dists(others), others.sq_norms(), sketch(others)
    low = (sq_norms[:, None] + sq_norms).sub_(s @ s.T, alpha=2)
    left = low < d.fill_diagonal_(torch.inf).amin(dim=1, keepdim=True)
    return sketch if left.double().mean() <= LEFT + 1 / len(others) else None  # every row is near itself
