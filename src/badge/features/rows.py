"""Rows, gathered, and what all features share: norms, tiles, products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import torch
from torch import Tensor

from badge.core.arrays import as_index, row_norms
from badge.core.rows import Place, Remaining, RowSource, narrowed, place_of
from badge.core.threads import threads_for
from badge.errors import InputError

#: A pass over the pool goes in tiles of about this many bytes, which stay in cache.
TILE_BYTES = 2**20
#: A pass that does little with each number goes in larger ones: fewer calls, and threads meet less often.
LARGE_TILE_BYTES = 2**22


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

    def on(self, device: torch.device | str) -> Rows:
        """The rows on another device, in one copy."""
        if self.factors[0].device == torch.device(device):
            return self
        moved = torch.cat(self.factors, dim=1).to(device).split_with_sizes([f.shape[1] for f in self.factors], dim=1)
        return Rows(tuple(f.contiguous() for f in moved))

    @staticmethod
    def cat(parts: Sequence[Rows]) -> Rows:
        """The rows of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        return Rows(tuple(torch.cat(factors) for factors in zip(*(p.factors for p in parts), strict=True)))

    def sq_norms(self, dtype: torch.dtype | None = None) -> Tensor:
        """‖g_i‖², [n]: each row summed by itself, in float64, and rounded once. It does not depend on its neighbours."""
        norms = reduce(torch.mul, map(row_norms, self.factors))
        return norms.square_().to(self.factors[0].dtype if dtype is None else dtype)

    def gram(self, other: Rows, room: Tensor | None = None) -> Tensor:
        """⟨g_i, g_j⟩, [n, m]; in `room` for one matrix per factor, because fresh memory for every product is slow."""
        products: Sequence[Tensor | None] = [None] * len(self.factors)
        if room is not None:
            shape = (len(self.factors), len(self), len(other))
            products = room[: math.prod(shape)].view(shape).unbind(0)
        pairs = zip(self.factors, other.factors, products, strict=True)
        with threads_for(len(self) * len(other) * sum(f.shape[1] for f in self.factors)):
            return reduce(Tensor.mul_, [torch.mm(f, g.T, out=out) for f, g, out in pairs])

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


class Features:
    """What both kinds share; use `Dense` or `Factored`."""

    factors: tuple[RowSource, ...]
    bias: bool = False  # append the constant 1 to the last factor
    norms: RowSource | None = None  # of the rows of the last factor, [N, 1] in float64, where they are known
    wide: bool = False  # read rows in float64, whatever they are kept in

    @property
    def rank_bound(self) -> int:
        """The rank of the matrix of rows is at most this."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.factors[0].shape[0]

    def __getitem__(self, ids: Any) -> Features:
        """The features of the rows `ids`, gathered."""
        raise NotImplementedError

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the computation: float64 where an input is, else float32."""
        return torch.float64 if self.wide or any(f.dtype == torch.float64 for f in self.factors) else torch.float32

    @property
    def device(self) -> torch.device:
        return self.factors[-1].device

    @property
    def width(self) -> int:
        """Numbers per row: C + D for gradient embeddings."""
        return sum(f.shape[1] for f in self.factors) + self.bias

    def rows(self, ids: slice | Tensor) -> Rows:
        """The rows `ids` in the dtype of the computation: all that an algorithm ever holds of a pool.

        Rows are contiguous in memory, so that sums over a row do not depend on how the pool is stored.
        """
        some = (f[ids] if isinstance(ids, slice) else f.index_select(0, ids) for f in self.factors)
        dtype = self.dtype
        parts = [f.to(dtype).contiguous() for f in self.derived(*some)]
        if self.bias:
            parts[-1] = torch.nn.functional.pad(parts[-1], (0, 1), value=1.0)
        return Rows(tuple(parts))

    def derived(self, *factors: Tensor) -> tuple[Tensor, ...]:
        """The factors of some rows, from what is kept of them."""
        return factors

    def narrowed(self, ids: Remaining) -> Features:
        """The features of the rows `ids`; nothing is read."""
        norms = None if self.norms is None else narrowed(self.norms, ids)
        return self._other(factors=tuple(narrowed(f, ids) for f in self.factors), norms=norms)

    def double(self) -> Features:
        """The same rows, read in float64."""
        return self._other(wide=True)

    def _other(self, **changed: Any) -> Features:
        some = copy(self)
        vars(some).pop("sq_norms", None)
        vars(some).update(changed)
        return some

    @property
    def place(self) -> Place | None:
        """Where the rows live; None: in this process."""
        return place_of(self.factors[-1])

    def tiles(self, size: int = TILE_BYTES, beside: int = 0) -> Iterator[slice]:
        """Slices over the pool of about `size` bytes, where each row takes `beside` more numbers."""
        rows = max(1, size // ((self.width + beside) * self.dtype.itemsize))
        for start in range(0, len(self), rows):
            yield slice(start, min(start + rows, len(self)))

    @cached_property
    def sq_norms(self) -> Tensor:
        """‖g_i‖² of every row, [N]."""
        sq_norms = torch.empty(len(self), dtype=self.dtype, device=self.device)
        # Written in place: small results kept between tiles would stop the heap from shrinking.
        for tile in self.tiles(LARGE_TILE_BYTES):
            sq_norms[tile] = self.sq_norms_of(tile)
        check_norms(float(sq_norms.max()) if len(sq_norms) else 0.0, self.dtype)
        return sq_norms

    def sq_norms_of(self, tile: slice) -> Tensor:
        """‖g_i‖² of the rows of a tile, in float64, from those of the last factor where they are known."""
        if self.norms is None:
            return self.rows(tile).sq_norms(torch.float64)
        product = self.norms[tile][:, 0]
        for f in self.derived(*(f[tile] for f in self.factors[:-1])):
            product = row_norms(f.to(self.dtype)) * product
        return product.square()

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


def index_of(ids: Any, n: int, device: torch.device) -> slice | Tensor:
    """A slice unchanged, anything else as positions on the device."""
    return ids if isinstance(ids, slice) else as_index(ids, n).to(device)


def resolution(dtype: torch.dtype) -> float:
    """The spacing of numbers in a product: torch may be set to multiply float32 as TF32 or bfloat16."""
    coarse = {"highest": 0.0, "high": 2.0**-10, "medium": 2.0**-7}[torch.get_float32_matmul_precision()]
    return max(torch.finfo(dtype).eps, coarse if dtype == torch.float32 else 0.0)


def check_norms(largest: float, dtype: torch.dtype) -> None:
    """Sums of a few squared norms must be numbers."""
    if not largest < torch.finfo(dtype).max / 8:  # NaN is not below
        single = dtype == torch.float32
        way_out = "scale the embeddings down" + ", or pass them as float64" * single
        raise InputError(f"squared norms overflow float{32 if single else 64}: {way_out}")


def check_features(x: Any) -> None:
    """Arrays are no features yet: they may be vectors, or one of two factors."""
    if not isinstance(x, Features):
        known = "badge.Dense(vectors) or badge.gradient_embedding(outputs)"
        raise InputError(f"features are {known}, not {type(x).__name__}")


def check_same(x: Features, y: Features) -> None:
    """Rows of `x` and `y` can be compared only where they have the same factors."""
    check_features(y)
    shapes = [[*(f.shape[1] for f in z.factors[:-1]), z.factors[-1].shape[1] + z.bias] for z in (x, y)]
    if shapes[0] != shapes[1]:
        raise InputError(f"features of different kinds: columns {shapes[0]} against {shapes[1]}")
