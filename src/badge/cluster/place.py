"""Rows that live on a Ray cluster: samplers that are given them work on shards over there."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from torch import Tensor

from badge.cluster.resources import Resources, room
from badge.cluster.session import cpus
from badge.cluster.shards import RayShards, cuts
from badge.core.rows import Build, Place, Remaining, RowSource, Shards, narrowed
from badge.samplers.envelope import SEGMENT

__all__ = ["Placed", "RayPlace"]

#: Rows of a shard at least, where the number of shards is not given: below, a message costs more than its work.
LEAST_ROWS = 16 * SEGMENT


class RayPlace(AbstractContextManager["RayPlace"]):
    """A cluster. The shards that samplers make on it go when the work is done, and with them the room for them."""

    def __init__(self, ray: Any, count: int | None, each: Resources) -> None:
        self.ray, self.count, self.each, self.made = ray, count, each, ExitStack()
        self.nodes: list[str] = []  #: of the shards; all samplers of a selection share them

    def shards(self, rows: Any, build: Build) -> Shards:
        count = self.count or max(1, min(cpus(self.ray) // self.each.threads, len(rows) // LEAST_ROWS))
        edges = cuts(len(rows), count)
        self.nodes = self.nodes or self.made.enter_context(room(self.ray, len(edges) - 1, self.each))
        homes = [self.nodes[i % len(self.nodes)] for i in range(len(edges) - 1)]
        opened = RayShards(self.ray, rows, build, edges, homes, self.each.threads)
        self.made.callback(opened.close)
        return opened

    def __exit__(self, *error: Any) -> None:
        self.made.close()


class Placed:
    """Rows on a cluster. This process can read them too, block by block. Pickled they are the rows alone."""

    def __init__(self, base: RowSource, place: Place) -> None:
        self.base, self.place = base, place
        self.shape, self.dtype, self.device = base.shape, base.dtype, base.device

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self.base,)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: slice) -> Tensor:
        return self.base[rows]

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self.base.index_select(dim, index)

    def narrowed(self, ids: Remaining) -> Placed:
        return Placed(narrowed(self.base, ids), self.place)


def _same(rows: RowSource) -> RowSource:
    return rows
