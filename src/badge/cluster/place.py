"""Rows that live on a Ray cluster: samplers work on shards over there, which need room on its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from badge.cluster import waiting
from badge.cluster.session import cpus, gpus
from badge.cluster.shards import RayShards, cuts
from badge.core.numbers import positive, whole
from badge.core.rows import Build, Place, Remaining, RowSource, Shards, narrowed
from badge.samplers.envelope import SEGMENT

#: Seconds within which the cluster must have room for the shards: one that grows needs minutes for a node.
ROOM_SECONDS = 600.0


@dataclass(frozen=True)
class Resources:
    """Cores, GPUs and bytes of memory of each worker or shard; None if badge is to choose."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: int | None = None

    @classmethod
    def of(cls, num_cpus: Any, num_gpus: Any, memory: Any) -> Resources:
        memory = None if memory is None else whole(memory, "memory")
        return cls(_share(num_cpus, "num_cpus"), _share(num_gpus, "num_gpus"), memory)

    @property
    def threads(self) -> int:
        """Threads of a process that has these cores."""
        return max(1, int(self.num_cpus or 1))

    def of_workers(self, ray: Any) -> dict[str, float]:
        """Options of a task with a copy of the model: a core, and a GPU where the cluster has some."""
        gpu = float(gpus(ray) > 0) if self.num_gpus is None else self.num_gpus
        given = {"num_cpus": 1.0 if self.num_cpus is None else self.num_cpus, "num_gpus": gpu, "memory": self.memory}
        return {name: value for name, value in given.items() if value}

    def workers(self, ray: Any) -> int:
        """How many of them the cluster has room for, at least 1."""
        wanted = self.of_workers(ray)
        if wanted.get("num_gpus"):
            return max(1, int(gpus(ray) / wanted["num_gpus"]))
        return max(1, int(cpus(ray) / wanted.get("num_cpus", 1.0)))

    def bundle(self, ray: Any, shards: int) -> dict[str, float]:
        """What is reserved for each of `shards`: a core, or a part of one where shards outnumber the cores."""
        core = int(1e4 / -(-shards // cpus(ray))) / 1e4 if self.num_cpus is None else self.num_cpus
        wanted = {"CPU": core, "GPU": self.num_gpus, "memory": self.memory}
        return {name: value for name, value in wanted.items() if value}


def _share(value: Any, name: str) -> float | None:
    return value if value is None else 0.0 if value == 0 and not isinstance(value, bool) else positive(value, name)


@contextmanager
def room(ray: Any, shards: int, each: Resources) -> Iterator[list[str]]:
    """Reserve room for shards until the end of the block, and name the node of each ("" if they reserve nothing).

    The room is a placement group, so that a cluster that can grow learns what is wanted.
    """
    bundle = each.bundle(ray, shards)
    if not bundle:
        yield [""] * shards
        return
    group = ray.util.placement_group([bundle] * shards, strategy="SPREAD")
    try:
        text = " and ".join(f"{value:,.12g} {name}" for name, value in bundle.items())
        way_out = "end other work on the cluster, or ask for less by shards=, num_cpus= (0: share), memory="
        wait = waiting.Wait(ray, ROOM_SECONDS, way_out)
        while not group.wait(waiting.LOOK_SECONDS):
            free = ray.available_resources()
            left = " and ".join(f"{free.get(name, 0.0):,.12g} {name}" for name in bundle)
            wait.look(f"room for {shards} shards with {text} each ({left} free)")
        found = ray.util.placement_group_table(group)["bundles_to_node_id"]
        yield [found[i] for i in range(shards)]
    finally:
        ray.util.remove_placement_group(group)


#: Rows of a shard at least, where the number of shards is not given: below, a message costs more than its work.
LEAST_ROWS = 16 * SEGMENT


class RayPlace(ExitStack):
    """A cluster. The shards that samplers make on it go when the work is done, and with them the room for them."""

    def __init__(self, ray: Any, count: int | None, each: Resources) -> None:
        super().__init__()
        self.ray, self.count, self.each = ray, count, each
        self.nodes: list[str] = []  #: the node of each shard; all samplers of a selection share them

    def shards(self, rows: Any, build: Build) -> Shards:
        count = self.count or max(1, min(cpus(self.ray) // self.each.threads, len(rows) // LEAST_ROWS))
        edges = cuts(len(rows), count)
        self.nodes = self.nodes or self.enter_context(room(self.ray, len(edges) - 1, self.each))
        homes = [self.nodes[i % len(self.nodes)] for i in range(len(edges) - 1)]
        opened = RayShards(self.ray, rows, build, edges, homes, self.each.threads)
        self.callback(opened.close)
        return opened


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
