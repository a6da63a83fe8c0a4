"""k-means++ seeding (Arthur & Vassilvitskii 2007; appendix A of the paper), exact, in less time than one matrix product.

The law: the first centre is uniform, each next one is drawn with probability proportional to D²(x), the squared distance
to the nearest centre so far. The plain loop needs one pass over the pool per centre. Here one stream of events decides
everything. With U ≥ D² fixed (`envelope`), event t is a row x drawn in proportion to U and a mark u uniform in [0, 1):

    go through the events in order; accept x where u · U(x) < D²(x), with D² to the centres accepted so far

P(event at x and accepted) = U(x)/ΣU · D²(x)/U(x) ∝ D²(x): each acceptance has the law of k-means++. The picks are a function
of the pool and the seed alone. Blocks, threads, bounds and shards change how soon an event is rejected, never whether.
"""

import math
import sys
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from badge.core.rows import Shards, shards
from badge.core.threads import one_thread
from badge.errors import InputError
from badge.features import Features, Rows
from badge.features.rows import check_norms, check_same
from badge.samplers.block import Pace, accept, near
from badge.samplers.checks import sampler
from badge.samplers.draw import places
from badge.samplers.driver import Driver
from badge.samplers.envelope import Envelope, by_norms, sum_of_norms
from badge.samplers.nearest import Tuning
from badge.samplers.nearest.few import within
from badge.samplers.shard import Events, Shard, Survivors

# Changing any of these constants changes the picks for a given seed.

#: Check after CHECK events whether to rebuild U, then each time the number of events doubles.
CHECK = 64
#: Rebuild U when fewer than 1 in RARE events since the last check were accepted.
RARE = 4
#: Rebuild it from norms when the shortest centre is shorter than SHORTER times that of U, and there was one event for
#: every ROWS_PER_EVENT rows of the pool.
SHORTER, ROWS_PER_EVENT = 0.7, 64
#: Rebuild it from norms also when picks hold this share of the mass of U: events on them are always rejected.
PICKED = 0.5
#: Rebuild it from the distances of all rows left once the events have cost as much. An event costs PRODUCTS_PER_EVENT, a pair
#: the products of its rows and PRODUCTS_PER_PAIR. Also where the rows left are no more than the new picks: each of these
#: has been compared with those before it, which cost as much.
PRODUCTS_PER_EVENT, PRODUCTS_PER_PAIR = 2**17, 32

# These do not.

#: At most this many picks from a pool of at most this many rows are looked for in the first events alone.
FIRST_PICKS, FIRST_ROWS = 20, 2**16


@sampler
def kmeanspp(
    features: Features,
    k: int,
    rng: np.random.Generator,
    first: Literal["uniform", "max-norm"] = "uniform",
    given: Features | None = None,
) -> NDArray[np.int64]:
    """Pick k positions by k-means++ seeding (Arthur & Vassilvitskii 2007), the sampler of BADGE.

    Each pick is drawn in proportion to its squared distance from the nearest centre: an earlier pick, or a row of `given`.
    When all remaining distances are 0, the rest is drawn uniformly.

    Args:
        features: the pool, as `badge.Dense`, or as `badge.Factored` from `badge.gradient_embedding`.
        k: the number of positions to pick.
        rng: a `numpy.random.Generator`; the same state gives the same picks.
        first: how to choose the first pick: "uniform", as in the paper, or "max-norm", the longest row, as in the authors'
            code. With `given`, the first pick is drawn like the others.
        given: rows that count as picked already, such as the labelled examples.

    Returns:
        k distinct positions, int64, in pick order.

    Raises:
        InputError: k is not between 1 and the number of rows, or a number is not finite.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0, 0.0], [0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> sorted(badge.samplers.kmeanspp(x, 3, np.random.default_rng(0)).tolist())[-2:]
    [2, 3]
    """
    if given is not None:
        check_same(features, given)
    centres = None if given is None else given.rows(slice(None)).to(features.dtype)
    here = features.place is None and features.device.type == "cpu"
    few = k <= FIRST_PICKS and len(features) <= FIRST_ROWS and here
    with one_thread():
        if few and first == "uniform" and given is None:
            before = rng.bit_generator.state
            picks = first_picks(features, k, rng)
            if picks is not None:
                return picks
            rng.bit_generator.state = before
        return kmeanspp_over(shards(features, Shard), k, rng, first, centres)


def first_picks(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """The picks without shards and bounds; None where they take more than CHECK events of one U that norms give.

    Events are compared with all picks and with each other, a few at a time.
    """
    picks = np.array([rng.integers(len(features))])
    stream = np.random.default_rng(rng.integers(2**63))
    exact, dtype = features.sq_norms_of(slice(0, len(features))).numpy(), features.dtype
    check_norms(float(exact.max()), dtype)
    sq_norms = exact.astype(np.float64 if dtype == torch.float64 else np.float32)
    count, reach = 0, math.sqrt(exact[picks[0]])
    while True:
        masses = by_norms(sq_norms, reach, picks[:count])
        cumulative = np.cumsum(masses.segments)
        if not cumulative[-1] > 0:
            return None
        before, draws = len(picks), stream.random((CHECK, 2))
        positions = masses.rows(*located(cumulative, draws[:, 0] * cumulative[-1]))
        thresholds = draws[:, 1] * masses.at(positions)
        for some in (slice(3 * k), slice(3 * k, CHECK)):  # mostly the first of them are enough
            places = np.concatenate([picks, positions[some]])
            limits = np.concatenate([np.full(len(picks), -np.inf), thresholds[some]])
            rows = features.rows(torch.from_numpy(places))
            picks = places[accept(within(rows, rows, limits), k)]
            if len(picks) == k:
                return picks
        shortest = math.sqrt(exact[picks].min())
        picked = np.cumsum([0.0, *sum_of_norms(sq_norms[picks[count:]], reach)])[-1]  # in order, as the stream adds
        lower = shortest < SHORTER * reach or picked >= PICKED * cumulative[-1]
        few_left = 2 * len(picks) >= len(features)  # U is rebuilt from distances there
        if len(features) > ROWS_PER_EVENT * CHECK or RARE * (len(picks) - before) >= CHECK or few_left or not lower:
            return None
        count, reach = len(picks), shortest


def kmeanspp_over(
    shards: Shards,
    k: int,
    rng: np.random.Generator,
    first: Literal["uniform", "max-norm"] = "uniform",
    given: Rows | None = None,
    tuning: Tuning | None = None,
) -> NDArray[np.int64]:
    """`kmeanspp` over shards. The picks do not depend on their number or place."""
    if first not in ("uniform", "max-norm"):
        raise InputError(f"first must be 'uniform' or 'max-norm', not {first!r}")
    pool = Driver(shards, tuning or Tuning())
    picks: list[int] = []
    if given is not None and len(given):
        pool.add(given, np.full(len(given), -1))
    else:
        picks.append(int(rng.integers(pool.size)) if first == "uniform" else pool.longest())
        pool.add(pool.rows(np.array(picks)), np.array(picks))
    # The stream has its own generator, so that the caller's next draw does not depend on how far the stream is read.
    stream = Stream(pool, np.random.default_rng(rng.integers(2**63)))
    pace = Pace(pool.tuning, stream.mass / 2)
    while len(picks) < k:
        if stream.mass <= 0:  # D² is 0 everywhere
            return completed(picks, pool.size, k, stream.rng)
        size = min(pace.events(k - len(picks), pool.size - len(picks), stream.mass), stream.worth_drawing)
        survivors = stream.survivors(size)
        table = near(survivors.rows, survivors.threshold, pool.centres)
        accepted = np.array(accept(table, k - len(picks)), dtype=np.int64)
        if stream.certain and not len(accepted):  # what is left is nearer than products can tell
            return completed(picks, pool.size, k, stream.rng)
        pace.went(size, survivors.compared, len(accepted), stream.mass)
        for some in stream.steps(size, survivors.event[accepted]):
            new = survivors.position[accepted[some]]
            picks += new.tolist()
            if len(picks) == k:
                break
            pool.add(survivors.rows[torch.from_numpy(accepted[some]).to(shards.device)], new)
    return np.array(picks, dtype=np.int64)


class Stream:
    """The events, in order, and the envelope U that they are drawn from."""

    def __init__(self, pool: Driver, rng: np.random.Generator) -> None:
        self.pool, self.rng = pool, rng
        self._start(Envelope(pool.centres.shortest))

    def _start(self, envelope: Envelope) -> None:
        self.envelope = envelope
        found = self.pool.tell(Shard.segments, [(envelope,)] * len(self.pool.heard))
        self.first = np.cumsum([0, *(len(masses) for masses in found)])  # number of each shard's first segment
        self.cumulative = np.cumsum(np.concatenate(found))
        self.mass = float(self.cumulative[-1])
        self.events = 0
        #: the mass of the picks from number envelope.count up to `weighed`
        self.weighed, self.picked = envelope.count, 0.0
        self.accepted: list[NDArray[np.int64]] = []  # numbers of the events that were

    def steps(self, size: int, accepted: NDArray[np.int64]) -> Iterator[slice]:
        """Go through `size` events, of which these were accepted, up to each check of U at which it may be rebuilt.

        The caller adds what is yielded to the centres before the next step. Events behind a rebuilt U are dropped and drawn
        again, because they came from the old U.
        """
        begin, done, added = self.events, 0, 0
        while self.events < begin + size:
            end = min(self._next_check(), begin + size)
            some = slice(done, done := int(np.searchsorted(accepted, end - begin)))
            self.accepted.append(begin + accepted[some])
            self.events = end
            if not self._rare() and end < begin + size:
                continue
            yield slice(added, added := done)
            if self._rare() and (better := self._better(self.events)) is not None:
                self._start(better)
                self.rng.bit_generator.state = self.before
                self.rng.random((end - begin, 2))
                return

    @property
    def certain(self) -> bool:
        """Whether U is D², so that the next event is accepted."""
        return self._known == self.pool.centres.count

    @property
    def worth_drawing(self) -> int:
        """Events until the next check, if U will probably be rebuilt there: later events would be dropped."""
        check = self._next_check()
        return check - self.events if self._better(check) is not None else sys.maxsize

    def _next_check(self) -> int:
        """The next number of events at which U could be rebuilt, however many of them are accepted.

        What pays at one check pays at the next, so that picks which are not centres yet cannot hide one.
        """
        check = CHECK
        while check <= self.events or not (self._norms_pay(check) or self._distances_pay(check, check - self.events)):
            check *= 2
        return check

    def _norms_pay(self, events: int) -> bool:
        return not self.envelope.exact and ROWS_PER_EVENT * events >= self.pool.size

    def _distances_pay(self, events: int, more: int = 0) -> bool:
        """Whether they pay after this number of events, of which up to `more` are accepted from now on."""
        if self._outnumbered(more):
            return True
        left, new = self.pool.left, self.pool.centres.count - self._known
        pairs = min(left * new, (left - more) * (new + more))  # in between there are more
        return PRODUCTS_PER_EVENT * events >= pairs * (self.pool.centres.width + PRODUCTS_PER_PAIR)

    def _outnumbered(self, more: int = 0) -> bool:
        """Whether the rows left are no more than the picks that U knows no distances to, once there are `more` picks."""
        picks = self.pool.centres.count - max(self._known, self.pool.given)
        return picks + more >= self.pool.left - more

    @property
    def _known(self) -> int:
        """Centres that U knows distances to."""
        return self.envelope.count if self.envelope.exact else 0

    def survivors(self, size: int) -> Survivors:
        """Those of the next `size` events that no centre rejects, in order."""
        self.before = self.rng.bit_generator.state
        draws = self.rng.random((size, 2))  # row by row, so that the stream does not depend on the size of blocks
        segment, rest = located(self.cumulative, draws[:, 0] * self.mass)
        owner = np.searchsorted(self.first, segment, side="right") - 1
        mine = [np.flatnonzero(owner == i) for i in range(len(self.pool.heard))]
        events = [Events(segment[m] - self.first[i], rest[m], draws[m, 1]) for i, m in enumerate(mine)]
        found = self.pool.tell(Shard.survivors, [(self.envelope, e) for e in events])
        if len(found) == 1:
            return found[0]
        event = np.concatenate([m[s.event] for m, s in zip(mine, found, strict=True)])
        order = np.argsort(event)
        which = torch.from_numpy(order).to(self.pool.shards.device)
        return Survivors(
            event[order],
            np.concatenate([s.position for s in found])[order],
            Rows.cat([s.rows for s in found])[which],
            torch.cat([s.threshold for s in found])[which],
            sum(s.compared for s in found),
        )

    def _rare(self) -> bool:
        """Whether U is checked after this event, and few events since the last check were accepted."""
        doublings = self.events // CHECK
        if self.events % CHECK or doublings & (doublings - 1):
            return False
        begin = self.events // 2 if self.events > CHECK else 0
        return RARE * sum(int((some >= begin).sum()) for some in self.accepted) < self.events - begin

    def _better(self, events: int) -> Envelope | None:
        """A lower U, if it pays after this number of events."""
        centres, now = self.pool.centres, self.envelope
        lower = self._norms_pay(events) and (centres.shortest < SHORTER * now.reach or self._mostly_picked())
        if lower and not self._outnumbered():
            return Envelope(centres.shortest, centres.count)
        if centres.count > self._known and self._distances_pay(events):
            return Envelope(centres.shortest, centres.count, exact=True)
        return None

    def _mostly_picked(self) -> bool:
        """Whether the rows that were picked since U was built hold much of its mass."""
        centres = self.pool.centres
        new = slice(self.weighed, centres.count)
        sq_norms = centres.sq_norms[new].cpu().numpy()[centres.positions[new] >= 0]
        masses = sum_of_norms(sq_norms, self.envelope.reach)
        self.picked = float(np.cumsum([self.picked, *masses])[-1])  # in order: blocks do not matter
        self.weighed = centres.count
        return self.picked >= PICKED * self.mass


def located(cumulative: NDArray[np.float64], at: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The segment in which each place of the mass falls, and the place within the segment's mass."""
    segment = places(cumulative, at)
    return segment, at - np.concatenate([[0.0], cumulative])[segment]


def completed(picks: list[int], n: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The picks, and behind them those that are missing, drawn uniformly from the positions that were not picked."""
    if len(picks) < k:
        picks = [*picks, *rng.permutation(np.setdiff1d(np.arange(n), picks))[: k - len(picks)]]
    return np.array(picks, dtype=np.int64)
