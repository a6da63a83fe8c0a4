"""A shard: whole segments of a pool, with what is known of their distances. It answers messages.

A driver (`kmeanspp`, `kcenter`) holds no row of the pool but the centres. Its messages and their answers hold numpy arrays
and tensors on the host, so that a shard can live in another process. A message that depends on the centres carries `News` of
them. A shard that died is rebuilt from its rows and hears of all centres; its bounds only saved work.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Features, Rows
from badge.samplers.envelope import Envelope, Masses, by_norms
from badge.samplers.nearest import Bounds, Centres, Tuning

#: A glance costs at least the time of GLANCE new centres, even if there are fewer: rows have to be read.
GLANCE = 16
#: Rows that furthest-first has ahead of all others before it answers.
SETTLED = 64
#: A glance looks at the rows whose bounds are above this share of the largest ones: those are picked next.
LARGE = 0.8
#: Cost of a round of furthest-first besides its distances, in distances.
OVERHEAD = 2**18


@dataclass(frozen=True, eq=False)
class News:
    """The driver's centres, and how many of them the shard has heard of.

    In this process a shard uses the driver's own. In another it gets a copy of those that are new to it, and appends them
    to its own.
    """

    centres: Centres
    since: int

    def __reduce__(self) -> tuple[Any, ...]:
        rows, positions = self.centres.since(self.since).on("cpu"), self.centres.positions[self.since :]
        return Sent, (self.since, rows, positions)


@dataclass(frozen=True, eq=False)
class Sent:
    """News that came from another process: the centres from number `since` on, and their positions."""

    since: int
    rows: Rows
    positions: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Events:
    """Events of the stream in the shard's segments: the segment (counted in the shard), the place in its mass, the mark."""

    segment: NDArray[np.int64]
    rest: NDArray[np.float64]
    mark: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Survivors:
    """Events that no centre so far rejects: which of those sent, the position in the pool, the row, its threshold u · U(x).

    `compared`: how many were compared with centres, because what was known did not reject them.
    """

    event: NDArray[np.int64]
    position: NDArray[np.int64]
    rows: Rows
    threshold: Tensor
    compared: int


@dataclass(frozen=True, eq=False)
class Top:
    """The rows of largest bounds, brought up to date, in order of position; and the first of those left outside.

    `sq_dists` are exact where they are not below `outside`. Without rows outside that is −1.
    """

    position: NDArray[np.int64]
    rows: Rows
    sq_dists: Tensor
    outside: float
    outside_position: int


@dataclass
class Shard:
    """Rows `start` … of a pool: `features` holds whole segments, the last one of the pool excepted."""

    features: Features
    start: int = 0
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        self.centres = Centres(self.tuning)
        self.bounds = Bounds(self.features, self.centres)
        self.heard = 0  # centres that this shard has taken note of
        self.envelope: Envelope | None = None
        self.masses: Masses | None = None
        self.spent = 0  # on single rows since the last glance, in centres compared
        self.glanced, self.wide = 0, len(self.features)  # centres and rows at the last glance
        self.level = 0.0  # the largest bound outside the rows that were last brought up to date

    # --- messages ----------------------------------------------------------------------------------------------------

    def rows(self, positions: NDArray[np.int64]) -> Rows:
        """Rows by their positions in the pool."""
        return self.features.rows(self._ids(positions))

    def longest(self) -> tuple[float, int]:
        """The largest squared norm, and the lowest position that has it."""
        sq_norms = self.features.sq_norms
        return float(sq_norms.max()), self.start + int((sq_norms == sq_norms.max()).nonzero()[0, 0])

    def segments(self, news: News | Sent, envelope: Envelope) -> NDArray[np.float64]:
        """The mass of U in each segment."""
        return self._catch_up(news, envelope).segments

    def survivors(self, news: News | Sent, envelope: Envelope, events: Events) -> Survivors:
        """Which of the events no centre rejects."""
        masses, device = self._catch_up(news, envelope), self.features.device
        places = masses.rows(events.segment, events.rest)
        threshold = events.mark * masses.at(places)
        index, limits = torch.from_numpy(places).to(device), torch.from_numpy(threshold).to(device)
        # What is known rejects most events without work.
        open_ = np.flatnonzero((limits < self.bounds.at(index)).cpu().numpy() & not_repeated(places, threshold))
        kept, rows = [open_[:0]], []
        for some in np.array_split(open_, -(-len(open_) // (3 * self.tuning.block // 2 + 1))) if len(open_) else ():
            which = torch.from_numpy(some).to(device)
            found, above = self.bounds.above(places[some], index[which], limits[which])
            alive = np.flatnonzero(above.cpu().numpy())
            kept.append(some[alive])
            rows.append(found[torch.from_numpy(alive).to(device)])
        left = np.concatenate(kept)
        return Survivors(
            left,
            self.start + places[left],
            Rows.cat(rows) if rows else self.features.rows(slice(0, 0)),
            limits[torch.from_numpy(left).to(device)],
            len(open_),
        )

    def top(self, news: News | Sent, size: int) -> Top:
        """The `size` rows of largest bounds, brought up to date until SETTLED of them are ahead of every bound outside.

        With fewer the driver could pick only a few, and where shards are remote a round costs more than an update.
        """
        first = self.heard == 0
        self._hear(news)
        bounds = self.bounds
        if first:
            self.glanced = bounds.first_glance(self.tuning.anchors)
        while True:
            new = self.centres.count - self.glanced
            # Glance at all rows of large bounds when single rows have cost more than that since the last glance.
            if self.spent >= self.wide * max(new, GLANCE):
                self.wide, self.glanced = bounds.glance(LARGE * self.level), self.centres.count
                self.spent = 0
            ids, outside, outside_id = _largest(bounds.sq_dists, size)
            self.level = outside
            stale = bool((bounds.seen[ids] < self.centres.count).any())
            # Rows that turn out to be nearer than what is outside need not be followed further.
            exact, found = bounds.update(
                ids, torch.from_numpy(ids).to(self.features.device), np.nextafter(outside, -np.inf)
            )
            self.spent += size * new + OVERHEAD
            if not stale or np.count_nonzero(found.numpy() > outside) >= min(SETTLED, size):
                break
        return Top(self.start + ids, exact.rows.on("cpu"), found, outside, self.start + outside_id)

    # --- what they share ---------------------------------------------------------------------------------------------

    def _ids(self, positions: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(positions - self.start).to(self.features.device)

    def _hear(self, news: News | Sent, most: int = sys.maxsize) -> None:
        """Take note of the centres that are new, up to number `most`. Those that are rows of this shard are at distance 0."""
        if isinstance(news, News):
            self.centres = self.bounds.centres = news.centres
        else:
            new = slice(self.centres.count - news.since, max(0, most - news.since))
            self.centres.add(news.rows[new].on(self.features.device), news.positions[new])
        mine = self._mine(self.centres.positions[self.heard : self.centres.count])
        self.bounds.sq_dists[self._ids(mine)] = 0
        self.heard = self.centres.count

    def _mine(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return positions[(positions >= self.start) & (positions < self.start + len(self.features))]

    def _catch_up(self, news: News | Sent, envelope: Envelope) -> Masses:
        """Take note of the news. A new U is worked out from its number of centres, before the shard hears of more."""
        if self.masses is None or envelope != self.envelope:
            self._hear(news, envelope.count)
            if envelope.exact:
                self.bounds.update_all()
                self.masses = Masses(self.bounds.sq_dists.cpu().numpy().copy(), np.copy)
            else:
                picked = self._mine(self.centres.positions[: envelope.count]) - self.start
                self.masses = by_norms(self.features.sq_norms.cpu().numpy(), envelope.reach, picked)
            self.envelope = envelope
        self._hear(news)
        return self.masses


def not_repeated(places: NDArray[np.int64], thresholds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Events that are the first on their row, or have a lower threshold than the first. All others are rejected.

    If the first event is accepted, the row is a centre. If not, its squared distance is at most the threshold of the first.

    >>> not_repeated(np.array([7, 4, 7, 7]), np.array([2.0, 9.0, 3.0, 1.0])).tolist()
    [True, True, False, True]
    """
    _, first, row = np.unique(places, return_index=True, return_inverse=True)
    before = first[row]
    lower: NDArray[np.bool_] = (thresholds < thresholds[before]) | (before == np.arange(len(places)))
    return lower


def _largest(values: Tensor, size: int) -> tuple[NDArray[np.int64], float, int]:
    """Places of the `size` largest values, the lowest of equal ones, in order of place; and what is first outside.

    >>> ids, outside, place = _largest(torch.tensor([3.0, 1.0, 2.0, 2.0, 2.0]), 2)
    >>> ids.tolist(), outside, place
    ([0, 2], 2.0, 3)
    """
    if len(values) <= size:
        return np.arange(len(values)), -1.0, len(values)
    top = values.topk(size + 1, sorted=False)
    last = top.values.min()
    at_last = values == last
    if values.device.type == "cpu":
        places, found, level = top.indices.numpy(), top.values.numpy(), np.flatnonzero(at_last.numpy())
    else:  # one wait: float64 holds every position
        lowest = torch.where(at_last, torch.arange(len(values), device=values.device), len(values))
        level_there = lowest.topk(size + 1, largest=False).values
        places, found, level = torch.stack([top.indices, top.values, level_there]).cpu().numpy()
    above = places[found > found.min()].astype(np.int64)
    level = level.astype(np.int64)
    room = size - len(above)
    return np.sort(np.concatenate([above, level[:room]])), float(found.min()), int(level[room])
