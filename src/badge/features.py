"""Features: what the samplers see of a pool. Gradient embeddings stay factored, g = a ⊗ h.

The gradient of the cross-entropy at the hallucinated label ŷ = argmax p with respect to the output layer's weights is
g = a ⊗ h with a = p − e_ŷ (equation 1 of the paper), so that

    ⟨g_i, g_j⟩ = ⟨a_i, a_j⟩ ⟨h_i, h_j⟩        ‖g_i − g_j‖² = ‖g_i‖² + ‖g_j‖² − 2 ⟨g_i, g_j⟩

cost C + D each in place of C·D. `Dense` is the same with one factor. Rows are gathered and converted block by block, so
that memory-mapped and half-precision arrays are never held or converted as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from badge.errors import InputError
from badge.types import CHUNK_BYTES, Outputs, as_index, as_tensor, check_finite

__all__ = ["Dense", "Factored", "Features", "Rows", "check_norms", "check_same", "gradient_embedding", "resolution"]

#: A pass over the pool goes in tiles of about this many bytes, which stay in cache.
TILE_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows, gathered: one matrix per factor, in the dtype of the computation. Row i is their Kronecker product."""

    factors: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.factors[0])

    def __getitem__(self, ids: slice | Tensor) -> Rows:
        if isinstance(ids, slice):
            return Rows(tuple(f[ids] for f in self.factors))
        return Rows(tuple(f.index_select(0, ids) for f in self.factors))  # several times faster than f[ids]

    def to(self, dtype: torch.dtype) -> Rows:
        return Rows(tuple(f.to(dtype) for f in self.factors))

    def double(self) -> Rows:
        return self.to(torch.float64)

    def sq_norms(self) -> Tensor:
        """‖g_i‖², [n]."""
        product = torch.linalg.vector_norm(self.factors[0], dim=1)
        for f in self.factors[1:]:
            product = product * torch.linalg.vector_norm(f, dim=1)
        sq_norms: Tensor = product.square_()
        return sq_norms

    def gram(self, other: Rows, out: Tensor | None = None) -> Tensor:
        """⟨g_i, g_j⟩, [n, m]."""
        product = torch.mm(self.factors[0], other.factors[0].T, out=out)
        for f, o in zip(self.factors[1:], other.factors[1:], strict=True):
            product *= f @ o.T
        return product

    def sq_dists(self, other: Rows) -> Tensor:
        """‖g_i − g_j‖², [n, m], not below 0."""
        d = self.gram(other).mul_(-2)
        return d.add_(self.sq_norms()[:, None]).add_(other.sq_norms()).clamp_(min=0)

    def as_matrix(self) -> Tensor:
        """The rows themselves, [n, product of the factors' widths]."""
        product, *rest = self.factors
        for f in rest:
            product = (product[:, :, None] * f[:, None, :]).flatten(1)
        return product

    def paired(self, other: Rows) -> Tensor:
        """⟨g_i, g_i'⟩ of each row with its partner, [n], in float64.

        A row's result does not depend on what stands around it, so ‖x‖² + ‖y‖² − 2⟨x, y⟩ from such products is exactly 0
        for equal rows, and the same whatever the blocking.
        """
        product = (self.factors[0].double() * other.factors[0]).sum(dim=1)
        for f, o in zip(self.factors[1:], other.factors[1:], strict=True):
            product *= (f.double() * o).sum(dim=1)
        return product


class Features:
    """What both kinds share; use `Dense` or `Factored`."""

    factors: tuple[Any, ...]  # tensors, or things that give a tensor of rows when indexed
    bias: bool = False  # append the constant 1 to the last factor
    rank_bound: int

    def __len__(self) -> int:
        return int(self.factors[0].shape[0])

    def __getitem__(self, ids: Any) -> Features:
        """The features of the rows `ids`, gathered."""
        raise NotImplementedError

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the computation: float64 where an input is, else float32."""
        return torch.float64 if any(f.dtype == torch.float64 for f in self.factors) else torch.float32

    @property
    def device(self) -> torch.device:
        device: torch.device = self.factors[-1].device
        return device

    @property
    def width(self) -> int:
        """Numbers per row: C + D for gradient embeddings."""
        return sum(int(f.shape[1]) for f in self.factors) + self.bias

    def rows(self, ids: slice | Tensor) -> Rows:
        """The rows `ids` in the dtype of the computation: all that an algorithm ever holds of a pool."""
        parts = [(f[ids] if isinstance(ids, slice) else f.index_select(0, ids)).to(self.dtype) for f in self.factors]
        if self.bias:
            parts[-1] = torch.nn.functional.pad(parts[-1], (0, 1), value=1.0)
        return Rows(tuple(parts))

    def tiles(self, size: int | None = None) -> Iterator[slice]:
        """Slices over the pool whose rows fit in cache."""
        size = size or max(1, TILE_BYTES // (self.width * self.dtype.itemsize))
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    @cached_property
    def sq_norms(self) -> Tensor:
        """‖g_i‖² of every row, [N]."""
        sq_norms = torch.empty(len(self), dtype=self.dtype, device=self.device)
        # Written in place: small results kept between tiles would stop the heap from shrinking.
        for tile in self.tiles():
            sq_norms[tile] = self.rows(tile).sq_norms()
        check_norms(sq_norms)
        return sq_norms

    def sq_dists(self, other: Features) -> Tensor:
        """Squared distances of every row to the rows of `other`, [N, M]."""
        check_same(self, other)
        to = other.rows(slice(None))
        return torch.cat([self.rows(tile).sq_dists(to) for tile in self.tiles()])

    def gram(self, other: Features | None = None) -> Tensor:
        """Inner products of every row with the rows of `other` (its own where None), [N, M]."""
        other = self if other is None else other
        check_same(self, other)
        to = other.rows(slice(None))
        return torch.cat([self.rows(tile).gram(to) for tile in self.tiles()])

    def as_matrix(self) -> Tensor:
        """The explicit, expensive exit: the matrix of rows, [N, C·D] for gradient embeddings."""
        return self.rows(slice(None)).as_matrix()


class Dense(Features):
    """Plain vectors [N, D] with the interface of gradient embeddings.

    >>> import badge
    >>> badge.Dense([[0.0, 0.0], [3.0, 4.0]]).sq_norms.tolist()
    [0.0, 25.0]
    """

    def __init__(self, matrix: Any) -> None:
        x = as_tensor(matrix, "features")
        if x.ndim != 2 or 0 in x.shape:
            raise InputError(
                f"features must be a matrix with at least one row and column, not of shape {tuple(x.shape)}"
            )
        check_finite(x, "features")
        self._set(x)

    def _set(self, x: Tensor) -> None:
        self.factors = (x,)
        self.rank_bound = min(x.shape)

    @classmethod
    def trusted(cls, matrix: Tensor) -> Dense:
        """Features of a matrix that was validated before; nothing is read."""
        self = cls.__new__(cls)
        self._set(matrix)
        return self

    def __getitem__(self, ids: Any) -> Dense:
        return Dense.trusted(self.rows(_index(ids, len(self), self.device)).factors[0])


class Factored(Features):
    """Gradient embeddings g_i = a_i ⊗ h_i; `bias=True` puts a 1 behind h: the gradient of the output bias.

    >>> import badge, torch
    >>> g = badge.Factored(torch.tensor([[0.1, -0.1]]), torch.tensor([[3.0, 4.0]]))
    >>> g.as_matrix().shape, round(float(g.sq_norms[0]), 4)
    (torch.Size([1, 4]), 0.5)
    """

    def __init__(self, a: Any, h: Any, bias: bool = False) -> None:
        a, h = as_tensor(a, "a"), as_tensor(h, "h")
        if a.ndim != 2 or h.ndim != 2 or len(a) != len(h) or 0 in (*a.shape, *h.shape):
            raise InputError(
                f"a must be [N, C] and h [N, D] with the same N; got {tuple(a.shape)} and {tuple(h.shape)}"
            )
        check_finite(a, "a")
        check_finite(h, "h")
        self._set(a, h, bias)

    def _set(self, a: Any, h: Any, bias: bool) -> None:
        self.factors, self.bias = (a, h), bias
        c, d = self.factors[0].shape[1], self.factors[1].shape[1] + bias
        # The rows of a sum to 0 (but for the one column of a binary problem), which costs one dimension.
        self.rank_bound = min(len(self), max(1, c - 1) * d)

    @classmethod
    def trusted(cls, a: Any, h: Any, bias: bool = False) -> Factored:
        """Features of factors that were validated before (or that are read row block by row block); nothing is read."""
        self = cls.__new__(cls)
        self._set(a, h, bias)
        return self

    @property
    def a(self) -> Tensor:
        """p − e_ŷ, [N, C]."""
        return self.rows_of(0)

    @property
    def h(self) -> Tensor:
        """Penultimate embeddings (with the constant 1 where `bias`), [N, D]."""
        return self.rows_of(1)

    def rows_of(self, factor: int) -> Tensor:
        return self.rows(slice(None)).factors[factor]

    def __getitem__(self, ids: Any) -> Factored:
        a, h = self.rows(_index(ids, len(self), self.device)).factors
        return Factored.trusted(a, h)


class Residual:
    """a = p − e_ŷ of probabilities that stay where they are (on disk, in half precision), row block by row block."""

    def __init__(self, probabilities: Tensor) -> None:
        self.p = probabilities
        self.shape, self.device = probabilities.shape, probabilities.device
        self.dtype = torch.float64 if probabilities.dtype == torch.float64 else torch.float32

    def __getitem__(self, ids: slice) -> Tensor:
        return self._residual(self.p[ids])

    def index_select(self, dim: int, ids: Tensor) -> Tensor:
        return self._residual(self.p.index_select(dim, ids))

    def _residual(self, p: Tensor) -> Tensor:
        a = p.to(self.dtype, copy=True)
        if a.shape[1] == 1:  # appendix B: ŷ = +1 where p > 1/2
            return a.sub_((a > 0.5).to(a.dtype))
        return a.scatter_add_(1, a.argmax(dim=1, keepdim=True), a.new_full((len(a), 1), -1.0))


def gradient_embedding(outputs: Outputs, bias: bool = False) -> Factored:
    """Gradients of the cross-entropy at the hallucinated label with respect to the output layer, factored.

    The paper's g_x (section 3); by its proposition 1 ‖g_x‖ is the smallest gradient norm over all labels, so a large
    one is uncertainty that no label can explain away. `bias=True` appends the gradient of the output bias.

    >>> import badge
    >>> out = badge.Outputs(probabilities=[[0.6, 0.4]], embeddings=[[1.0, 2.0]])
    >>> [round(x, 4) for x in badge.gradient_embedding(out).as_matrix()[0].tolist()]
    [-0.4, -0.8, 0.4, 0.8]
    """
    a: Residual | Tensor = Residual(outputs.probabilities)
    if outputs.probabilities.numel() * 4 <= CHUNK_BYTES:
        a = a[:]  # small: work it out once
    return Factored.trusted(a, outputs.embeddings, bias)


def _index(ids: Any, n: int, device: torch.device) -> slice | Tensor:
    return ids if isinstance(ids, slice) else as_index(ids, n).to(device)


def resolution(dtype: torch.dtype) -> float:
    """The spacing of numbers in a product: torch may be set to multiply float32 as TF32 or bfloat16."""
    coarse = {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}[torch.get_float32_matmul_precision()]
    return max(torch.finfo(dtype).eps, coarse if dtype == torch.float32 else 0.0)


def check_norms(sq_norms: Tensor) -> None:
    """Sums of a few squared norms must be numbers."""
    if len(sq_norms) and not bool(sq_norms.max() < torch.finfo(sq_norms.dtype).max / 8):  # NaN is not below
        single = sq_norms.dtype == torch.float32
        way_out = "scale the embeddings down" + ", or pass them as float64" * single
        raise InputError(f"squared norms overflow float{32 if single else 64}: {way_out}")


def check_same(x: Features, y: Features) -> None:
    """Rows of `x` and `y` can be compared only where they have the same factors."""
    shapes = [[int(f.shape[1]) for f in z.factors] for z in (x, y)]
    if x.bias:
        shapes[0][-1] += 1
    if y.bias:
        shapes[1][-1] += 1
    if shapes[0] != shapes[1]:
        raise InputError(f"features of different kinds: columns {shapes[0]} against {shapes[1]}")
