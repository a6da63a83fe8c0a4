"""What a worker or a shard asks of its node, and the room for the shards of a pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from badge.cluster import waiting
from badge.cluster.session import cpus, gpus
from badge.core.numbers import positive, whole

__all__ = ["Resources", "room"]

#: Seconds within which the cluster must have room for the shards: one that grows needs minutes for a node.
ROOM_SECONDS = 600.0


@dataclass(frozen=True)
class Resources:
    """Cores, GPUs and bytes of memory of each worker or shard; None where badge is to choose."""

    num_cpus: float | None = None
    num_gpus: float | None = None
    memory: int | None = None

    @classmethod
    def of(cls, num_cpus: Any, num_gpus: Any, memory: Any) -> Resources:
        return cls(
            _share(num_cpus, "num_cpus"),
            _share(num_gpus, "num_gpus"),
            None if memory is None else whole(memory, "memory"),
        )

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
        """What is reserved for each of `shards`: a core, or what there is of one where shards outnumber the cores."""
        core = int(1e4 / -(-shards // cpus(ray))) / 1e4 if self.num_cpus is None else self.num_cpus
        wanted = {"CPU": core, "GPU": self.num_gpus, "memory": self.memory}
        return {name: value for name, value in wanted.items() if value}


def _share(value: Any, name: str) -> float | None:
    return value if value is None else 0.0 if value == 0 and not isinstance(value, bool) else positive(value, name)


@contextmanager
def room(ray: Any, shards: int, each: Resources) -> Iterator[list[str]]:
    """The node of each shard, where room for it is reserved until the end: as a placement group, so that a cluster that grows
    knows what is wanted. No node ("") is named where shards reserve nothing."""
    bundle = each.bundle(ray, shards)
    if not bundle:
        yield [""] * shards
        return
    group = ray.util.placement_group([bundle] * shards, strategy="SPREAD")
    try:
        text = " and ".join(f"{value:,.12g} {name}" for name, value in bundle.items())
        wait = waiting.Wait(
            ray,
            ROOM_SECONDS,
            "end other work on the cluster, or ask for less by shards=, num_cpus= (0: share), memory=",
        )
        while not group.wait(waiting.LOOK_SECONDS):
            free = ray.available_resources()
            left = " and ".join(f"{free.get(name, 0.0):,.12g} {name}" for name in bundle)
            wait.look(f"room for {shards} shards with {text} each ({left} free)")
        found = ray.util.placement_group_table(group)["bundles_to_node_id"]
        yield [found[i] for i in range(shards)]
    finally:
        ray.util.remove_placement_group(group)
