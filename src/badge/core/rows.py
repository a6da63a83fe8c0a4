"""Rows of a pool, wherever they live: in memory, memory-mapped, on a cluster. Samplers cannot tell these apart.

A tensor is the plain case. Everything else implements `RowSource`: a matrix that is read block by block, that can be narrowed
to some of its rows, and that knows its shards. A sampler works on shards: `shards(rows, build)` makes one in this
process, unless the rows live elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import CHUNK_BYTES

Answer = TypeVar("Answer")

#: makes a shard from its rows and the position of the first
Build = Callable[[Any, int], Any]
#: number of a shard -> the arguments of a message to it
Arguments = Mapping[int, tuple[Any, ...]]


class LostShard:
    """The answer of a shard that died. A new one was made from its rows; it has no centres until the driver sends them."""


LOST = LostShard()


class Shards(Protocol):
    """Shards of one pool, in order; all but the last hold whole segments."""

    @property
    def sizes(self) -> Sequence[int]:
        """Rows of each shard."""

    @property
    def device(self) -> torch.device:
        """Where shards in this process compute."""

    def ask(self, message: Callable[..., Answer], arguments: Arguments) -> Mapping[int, Answer | LostShard]:
        """Call a method of the shards with these numbers, each with its arguments; their answers, or `LOST`."""


class Here:
    """A pool that is one shard, in this process."""

    def __init__(self, rows: Any, build: Build) -> None:
        self.sizes, self.device = [len(rows)], getattr(rows, "device", torch.device("cpu"))
        self.shard = build(rows, 0)

    def ask(self, message: Callable[..., Answer], arguments: Arguments) -> Mapping[int, Answer]:
        return {i: message(self.shard, *mine) for i, mine in arguments.items()}


class RowSource(Protocol):
    """A matrix that is read block by block: a tensor, or something that is never held as a whole.

    What is not a tensor may also have `narrowed(ids)`, the rows `ids` without reading them, and `place`, where they live.
    """

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Tensor: ...

    def index_select(self, dim: int, index: Tensor, /) -> Tensor: ...


class Place(Protocol):
    """Somewhere else than this process."""

    def shards(self, rows: Any, build: Build) -> Shards:
        """Shards of rows or features that live there."""


def place_of(rows: Any) -> Place | None:
    """Where rows or features live; None: in this process."""
    return cast("Place | None", getattr(rows, "place", None))


def shards(rows: Any, build: Build) -> Shards:
    """The shards of rows or features, where these live. `build(rows, start)` makes one from its rows."""
    place = place_of(rows)
    return Here(rows, build) if place is None else place.shards(rows, build)


class Remaining:
    """The positions from `start` to `stop` except the `excluded` ones (ascending). They are never listed.

    >>> left = Remaining(0, 6, np.array([0, 3]))
    >>> len(left), left.positions(np.arange(4)).tolist()
    (4, [1, 2, 4, 5])
    """

    def __init__(self, start: int, stop: int, excluded: NDArray[np.int64] | None = None) -> None:
        self.start, self.stop = start, stop
        self.excluded = np.empty(0, dtype=np.int64) if excluded is None else excluded

    def __len__(self) -> int:
        return self.stop - self.start - len(self.excluded)

    def positions(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions with these ranks among the remaining ones."""
        if not len(self.excluded):
            return ranks + self.start
        return ranks + self.start + np.searchsorted(self._below, ranks, side="right")

    @cached_property
    def _below(self) -> NDArray[np.int64]:
        """The number of remaining positions below each excluded one."""
        return self.excluded - self.start - np.arange(len(self.excluded))

    def narrowed(self, ids: Remaining) -> Remaining:
        """The remaining positions with the ranks `ids`."""
        if not len(ids):
            return Remaining(self.start, self.start)
        first, last = self.positions(ids.positions(np.array([0, len(ids) - 1]))).tolist()
        excluded = np.union1d(self.excluded, self.positions(ids.excluded))
        return Remaining(first, last + 1, excluded[(excluded >= first) & (excluded <= last)])


@dataclass(frozen=True, eq=False)
class Listed:
    """Positions in any order, as a list."""

    order: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)

    def positions(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The positions at these places of the list."""
        return self.order[ranks]

    def narrowed(self, ids: Remaining) -> Listed:
        """The part of the list at the places `ids`."""
        return Listed(self.order[ids.positions(np.arange(len(ids)))])


class Subset:
    """Some rows of a source, gathered as they are asked for: a pool on disk stays there."""

    def __init__(self, base: RowSource, ids: Remaining | Listed) -> None:
        self.base, self.ids = base, ids
        self.shape, self.dtype, self.device = torch.Size((len(ids), *base.shape[1:])), base.dtype, base.device

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Tensor:
        return self.index_select(0, torch.arange(*rows.indices(len(self))))

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        positions = torch.from_numpy(self.ids.positions(index.cpu().numpy()))
        return self.base.index_select(dim, positions.to(self.device))

    def narrowed(self, ids: Remaining) -> RowSource:
        return narrowed(self.base, self.ids.narrowed(ids))


def narrowed(rows: RowSource, ids: Remaining | Listed) -> RowSource:
    """The rows `ids` of a source; nothing is read."""
    if isinstance(ids, Listed):
        return Subset(rows, ids)
    if not len(ids.excluded) and len(ids) == len(rows):
        return rows
    own = getattr(rows, "narrowed", None)
    if own is not None:
        return cast(RowSource, own(ids))
    base = rows[ids.start : ids.stop]
    return Subset(base, Remaining(0, len(base), ids.excluded - ids.start)) if len(ids.excluded) else base


def small(rows: RowSource) -> bool:
    """Whether rows live in this process and are few enough that a copy costs little."""
    return rows.shape.numel() * max(4, rows.dtype.itemsize) <= CHUNK_BYTES and place_of(rows) is None


def loaded(rows: RowSource) -> RowSource:
    """Small rows as a tensor, others unchanged."""
    return rows if isinstance(rows, Tensor) or not small(rows) else rows[:]
