"""Several shards in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from badge.core.rows import LostShard, Remaining
from badge.features import Features
from badge.samplers.nearest import Tuning
from badge.samplers.shard import Shard


class LocalShards:
    """Shards of features that begin at 0 and at each of `cuts`."""

    def __init__(self, features: Features, cuts: Sequence[int] = (), tuning: Tuning | None = None) -> None:
        self.features, self.tuning, self.device = features, tuning or Tuning(), features.device
        self.edges = [0, *cuts, len(features)]
        self.shards = [self.make(i) for i in range(len(self.edges) - 1)]

    def make(self, i: int) -> Shard:
        """Shard number i, from its rows."""
        start, stop = self.edges[i], self.edges[i + 1]
        return Shard(self.features.narrowed(Remaining(start, stop)), start, self.tuning)

    @property
    def sizes(self) -> list[int]:
        return [stop - start for start, stop in zip(self.edges, self.edges[1:], strict=False)]

    def ask(
        self, message: Callable[..., Any], arguments: Mapping[int, tuple[Any, ...]]
    ) -> Mapping[int, Any | LostShard]:
        return {i: message(self.shards[i], *mine) for i, mine in arguments.items()}
