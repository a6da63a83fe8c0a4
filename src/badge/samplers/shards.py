"""A pool in shards, and the driver's side of the talk with them: who has heard of which centres."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Features, Rows
from badge.features.rows import check_norms
from badge.samplers.nearest import Lens, Tuning, far_origin, useful_sketch
from badge.samplers.shard import News, Shard

__all__ = ["Here", "LocalShards", "Pool", "Shards", "answers", "sharded_by", "shards_of"]


#: Rows at a time where many centres are given: copies of all of them would be larger than what is kept.
SOME = 4096

#: makes a shard from its rows and the position of the first
Build = Callable[[Any, int], Any]


class Shards(Protocol):
    """Shards of one pool, in order; all but the last hold whole segments."""

    @property
    def sizes(self) -> Sequence[int]:
        """Rows of each shard."""

    def ask(self, message: str, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        """The answers of some shards, by number, to `message`: the name of a method of `Shard`, each with its arguments.

        No answer of a shard: it was lost, and stands there anew, made from its rows, without centres.
        """


class Here:
    """A pool that is one shard, in this process."""

    def __init__(self, rows: Any, build: Build) -> None:
        self.sizes, self.shard = [len(rows)], build(rows, 0)

    def ask(self, message: str, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        return {i: getattr(self.shard, message)(*mine) for i, mine in arguments.items()}


_maker: ContextVar[Callable[[Any, Build], Shards]] = ContextVar("maker of shards", default=Here)


def shards_of(rows: Any, build: Build) -> Shards:
    """The shards of a pool: one in this process, unless they are made elsewhere (`sharded_by`). `build(rows, start)` makes
    a shard from its rows, of which the first has the position `start`."""
    return _maker.get()(rows, build)


@contextmanager
def sharded_by(make: Callable[[Any, Build], Shards]) -> Iterator[None]:
    """Samplers that are called inside work on the shards that `make(rows, build)` gives."""
    token = _maker.set(make)
    try:
        yield
    finally:
        _maker.reset(token)


def answers(shards: Shards, message: str, arguments: Mapping[int, tuple[Any, ...]]) -> list[Any]:
    """The answers of shards that remember nothing, in order: one that was lost is asked again."""
    found: dict[int, Any] = {}
    while len(found) < len(arguments):
        found.update(shards.ask(message, {i: mine for i, mine in arguments.items() if i not in found}))
    return [found[i] for i in arguments]


class LocalShards:
    """Shards in this process: one, unless `cuts` says where others begin."""

    def __init__(self, features: Features, cuts: Sequence[int] = (), tuning: Tuning | None = None) -> None:
        self.features, self.tuning = features, tuning or Tuning()
        self.edges = [0, *cuts, len(features)]
        self.shards = [self.make(i) for i in range(len(self.edges) - 1)]

    def make(self, i: int) -> Shard:
        """Shard number i, from its rows."""
        start, stop = self.edges[i], self.edges[i + 1]
        whole = stop - start == len(self.features)
        return Shard(self.features if whole else self.features[slice(start, stop)], start, self.tuning)

    @property
    def sizes(self) -> list[int]:
        return [stop - start for start, stop in zip(self.edges, self.edges[1:], strict=False)]

    def ask(self, message: str, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        return {i: getattr(self.shards[i], message)(*mine) for i, mine in arguments.items()}


class Pool:
    """What a driver knows: the centres so far, which of them each shard has heard of, and the lens for estimates."""

    def __init__(self, shards: Shards, tuning: Tuning) -> None:
        self.shards, self.tuning = shards, tuning
        self.edges = np.concatenate([[0], np.cumsum(shards.sizes)])
        self.size = int(self.edges[-1])
        self.heard = [0] * len(shards.sizes)
        self.centres: list[Rows] = []
        self.sq_norms: list[Tensor] = []
        self.positions: list[NDArray[np.int64]] = []
        self.count = self.width = 0
        self.shortest = math.inf
        self.lens = Lens()

    def add(self, rows: Rows, positions: NDArray[np.int64]) -> None:
        """More centres; of given ones, which are not rows of the pool, the positions are −1."""
        if not len(rows):
            return
        sq_norms = torch.cat([rows[start : start + SOME].double().sq_norms() for start in range(0, len(rows), SOME)])
        self.sq_norms.append(sq_norms.to(rows.factors[0].dtype))
        check_norms(self.sq_norms[-1])
        before = self.count
        self.centres.append(rows)
        self.positions.append(positions)
        self.count += len(rows)
        self.width = sum(f.shape[1] for f in rows.factors)
        self.shortest = min(self.shortest, math.sqrt(float(sq_norms.min())))
        if before < self.tuning.origin_from <= self.count:
            self._look_through(Lens(origin=far_origin(self._some())))
        if before < self.tuning.sketch_from <= self.count:
            plain = Lens(origin=self.lens.origin)
            self._look_through(Lens(useful_sketch(plain(self._some()).rows), plain.origin))

    def _some(self) -> Rows:
        """The centres, or an even choice of them where many were given: a lens is found from either."""
        centres = Rows.cat(self.centres)
        return centres if len(centres) <= SOME else centres[torch.linspace(0, len(centres) - 1, SOME).long()]

    def _look_through(self, lens: Lens) -> None:
        if lens.sketch is not None or lens.origin is not None:
            self.lens = replace(lens, number=self.lens.number + 1)

    def rows(self, positions: NDArray[np.int64]) -> Rows:
        """Rows of the pool by position, which must rise."""
        owner = np.searchsorted(self.edges, positions, side="right") - 1
        return Rows.cat(self._ask("rows", {i: (positions[owner == i],) for i in np.unique(owner).tolist()}))

    def longest(self) -> int:
        """The position of the largest norm, the lowest where several are equal."""
        found: list[tuple[float, int]] = self._ask("longest", dict.fromkeys(range(len(self.heard)), ()))
        return min(found, key=lambda one: (-one[0], one[1]))[1]

    def tell(self, message: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers of all shards to a message; each hears with it of the centres that are new to it."""
        answers = self._ask(message, dict(enumerate(arguments)), news=True)
        self.heard = [self.count] * len(self.heard)
        return answers

    def _ask(self, message: str, arguments: dict[int, tuple[Any, ...]], news: bool = False) -> list[Any]:
        """Ask until everyone has answered: a shard that was lost hears of all centres again."""
        answers: dict[int, Any] = {}
        left = dict(arguments)
        while left:
            asked = {i: (self._news(self.heard[i]), *mine) if news else mine for i, mine in left.items()}
            answers.update(self.shards.ask(message, asked))
            left = {i: mine for i, mine in left.items() if i not in answers}
            for i in left:
                self.heard[i] = 0
        return [answers[i] for i in arguments]

    def _news(self, since: int) -> News:
        """The centres from number `since` on."""
        parts, positions, end = [], [], self.count
        for rows, where in zip(reversed(self.centres), reversed(self.positions), strict=True):
            if end <= since:
                break
            end -= len(rows)
            parts.append(rows[max(0, since - end) :])
            positions.append(where[max(0, since - end) :])
        if not parts:
            return News(since, self.centres[0][:0], np.empty(0, dtype=np.int64), self.shortest, self.lens)
        return News(since, Rows.cat(parts[::-1]), np.concatenate(positions[::-1]), self.shortest, self.lens)
