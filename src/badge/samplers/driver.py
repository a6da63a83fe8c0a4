"""The driver's side of a selection over shards: it holds the centres and knows which of them each shard has heard of."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from badge.core.rows import LostShard, Shards
from badge.features import Rows
from badge.samplers.nearest import Centres, Tuning
from badge.samplers.shard import News, Shard

Answer = TypeVar("Answer")


def answers(shards: Shards, message: Callable[..., Answer], arguments: Mapping[int, tuple[Any, ...]]) -> list[Answer]:
    """The answers of shards that remember nothing, in order. A shard that was lost is asked again."""
    found: dict[int, Answer] = {}
    while len(found) < len(arguments):
        said = shards.ask(message, {i: mine for i, mine in arguments.items() if i not in found})
        found.update({i: answer for i, answer in said.items() if not isinstance(answer, LostShard)})
    return [found[i] for i in arguments]


class Driver:
    """The centres so far, and how many of them each shard has heard of."""

    def __init__(self, shards: Shards, tuning: Tuning) -> None:
        self.shards, self.tuning = shards, tuning
        self.edges = np.concatenate([[0], np.cumsum(shards.sizes)])
        self.size = int(self.edges[-1])
        self.heard = [0] * len(shards.sizes)
        self.given = 0  # centres that are no rows of the pool
        self.centres = Centres(tuning)

    @property
    def left(self) -> int:
        """Rows of the pool that are not centres."""
        return self.size - self.centres.count + self.given

    def add(self, rows: Rows, positions: NDArray[np.int64]) -> None:
        """Add centres. Those that are not rows of the pool have the position −1."""
        self.centres.add(rows.on(self.shards.device), positions)
        self.given += int(np.count_nonzero(positions < 0))

    def rows(self, positions: NDArray[np.int64]) -> Rows:
        """Rows of the pool by position, which must rise."""
        owner = np.searchsorted(self.edges, positions, side="right") - 1
        mine = {i: (positions[owner == i],) for i in np.unique(owner).tolist()}
        return Rows.cat(answers(self.shards, Shard.rows, mine))

    def longest(self) -> int:
        """The position of the largest norm, the lowest where several are equal."""
        found = answers(self.shards, Shard.longest, dict.fromkeys(range(len(self.heard)), ()))
        return min(found, key=lambda one: (-one[0], one[1]))[1]

    def tell(self, message: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """The answers of all shards. Each hears with the message of the centres that are new to it, a lost one of all."""
        found: dict[int, Answer] = {}
        while left := [i for i in range(len(arguments)) if i not in found]:
            news = {i: (News(self.centres, self.heard[i]), *arguments[i]) for i in left}
            for i, answer in self.shards.ask(message, news).items():
                if isinstance(answer, LostShard):
                    self.heard[i] = 0
                else:
                    found[i], self.heard[i] = answer, self.centres.count
        return [found[i] for i in range(len(arguments))]
