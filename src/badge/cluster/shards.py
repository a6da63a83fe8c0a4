"""Rows that live on a Ray cluster: samplers work on shards over there, actors that need room on its nodes."""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice, pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor

from badge.cluster import waiting
from badge.cluster.session import Resources, cpus, pickled
from badge.cluster.waiting import fetched, ready
from badge.core.rows import LOST, Arguments, Build, LostShard, Place, Remaining, RowSource, Shards, narrowed
from badge.errors import ClusterError
from badge.samplers.envelope import SEGMENT

Answer = TypeVar("Answer")

#: A selection ends when one of its shards has died this many times.
DEATHS = 5
#: Seconds without an answer of any shard after which a selection ends: a shard may have to read all of its rows.
SILENT_SECONDS = 3600.0

#: Actors that have no shard, by connection and node: a process needs a second to import torch.
_spare: dict[str, dict[str, list[Any]]] = {}


def cuts(rows: int, shards: int) -> list[int]:
    """Where shards begin and end: whole segments, evenly spread.

    >>> cuts(5 * 4096 - 1, 2)
    [0, 8192, 20479]
    """
    segments = -(-rows // SEGMENT)
    shards = min(shards, segments)
    return [*(SEGMENT * (segments * i // shards) for i in range(shards)), rows]


class RayShards:
    """One actor per shard, on the node `homes[i]` ("": any). An actor that dies is rebuilt from its rows, on any node that
    is left. Actors of an earlier selection over the same connection are used again.

    `build(rows, start)` makes the shard, over there. `rounds`, `sent` and `received` say what the talk has cost.
    """

    def __init__(self, ray: Any, rows: Any, build: Build, edges: list[int], homes: list[str], threads: int = 1) -> None:
        self.ray, self.rows, self.build, self.threads = ray, rows, build, threads
        self.ranges, self.homes = list(pairwise(edges)), homes
        self.sizes = [stop - start for start, stop in self.ranges]
        self.actors = [self._start(i) for i in range(len(homes))]
        self.deaths: Counter[int] = Counter()
        self.waiting = False  # for answers
        self.rounds = self.sent = self.received = 0

    device = torch.device("cpu")

    def _start(self, i: int) -> Any:
        content, home = sent(self.rows, self.build, *self.ranges[i]), self.homes[i]
        if spare := spares(self.ray).get(home):
            actor = spare.pop()
            actor.take.remote(content, self.threads)
            return actor
        affinity = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        where = affinity(home, soft=True) if home else "SPREAD"
        # The room is reserved by a group, the actor holds none: what is left of a cluster can take over any shard. Ray puts
        # an actor that needs nothing on any node, whatever the strategy says, so each needs a byte.
        remote = self.ray.remote(num_cpus=0, memory=1, max_restarts=0, scheduling_strategy=where)
        return remote(Host).remote(content, self.threads)

    def ask(self, message: Callable[..., Answer], arguments: Arguments) -> Mapping[int, Answer | LostShard]:
        """The answers. A shard that died is rebuilt from its rows, and its answer is `LOST`."""
        contents = {i: packed((message, mine)) for i, mine in arguments.items()}
        asked = {self.actors[i].ask.remote(content): i for i, content in contents.items()}
        self.waiting = True
        self.rounds += 1
        self.sent += sum(len(content) for content in contents.values())
        answers: dict[int, Any] = {}
        while asked:
            for ref in ready(self.ray, list(asked), "shards", SILENT_SECONDS):
                i = asked.pop(ref)
                try:
                    content = fetched(self.ray, ref)
                except ClusterError as error:
                    self.deaths[i] += 1
                    if self.deaths[i] >= DEATHS:
                        raise ClusterError(f"shard {i} died {DEATHS} times, out of memory? {error}") from error
                    self.homes[i] = ""
                    self.actors[i], answers[i] = self._start(i), LOST
                    continue
                self.received += len(content)
                answers[i] = pickle.loads(content)
        self.waiting = False
        return answers

    def close(self) -> None:
        """The shards are given up; idle processes on a known node wait for the next selection. Twice does nothing."""
        for home in self.homes[: len(self.actors)]:
            actor = self.actors.pop(0)
            if self.waiting or not home:
                self.ray.kill(actor)
            else:
                actor.drop.remote()
                spares(self.ray).setdefault(home, []).append(actor)


def spares(ray: Any) -> dict[str, list[Any]]:
    """The spare actors of this connection to Ray, by node; an earlier connection took its actors with it."""
    here = ray.get_runtime_context()
    connection = f"{here.get_node_id()} {here.get_worker_id()}"  # local instances count workers from the start
    if connection not in _spare:
        _spare.clear()
    return _spare.setdefault(connection, {})


def sent(rows: Any, build: Build, start: int, stop: int) -> bytes:
    """What a shard of the rows `start` to `stop` is made from."""
    return pickled((build, narrowed(rows, Remaining(start, stop)), start), "what the strategy does on the shards")


class Host:
    """A shard in another process. An error in its rows is raised at the first message: Ray takes an actor that fails to start
    for one that died."""

    def __init__(self, content: bytes, threads: int = 1) -> None:
        self.take(content, threads)

    def take(self, content: bytes, threads: int) -> None:
        """Another shard."""
        torch.set_num_threads(threads)
        self.error: Exception | None = None
        self.shard: Any = None
        try:
            build, rows, start = pickle.loads(content)
            with torch.autocast("cpu", enabled=False):
                self.shard = build(rows, start)
        except Exception as error:
            self.error = error

    def drop(self) -> None:
        """No shard: its memory is free."""
        self.shard = None

    def ask(self, content: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        message, arguments = pickle.loads(content)
        return packed(message(self.shard, *arguments))


class _Pickler(pickle.Pickler):
    """Tensors as numpy arrays: no more than their own rows, and at a fraction of torch's price."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Tensor:
            return torch.from_numpy, (value.contiguous().numpy(force=True),)
        return NotImplemented


def packed(value: Any) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, protocol=5).dump(value)
    return stream.getvalue()


#: Seconds within which the cluster must have room for the shards: one that grows needs minutes for a node.
ROOM_SECONDS = 600.0


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
        homes = list(islice(cycle(self.nodes), len(edges) - 1))
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
