"""A journal and the ledger that follows it, under one lock: the state is what the file says, whatever happens in between.

A journal of another pool is refused. A pool may grow at its end; with ids from the caller it may be reordered. It is
identified by its length and a digest of 64 of its examples. If examples differ each time they are read (random crops and
flips) there is no digest, and the length alone is compared.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from badge.core.log import log
from badge.core.rng import PICKS_VERSION, fresh_seed
from badge.core.writing import ThreadLock
from badge.errors import JournalError
from badge.journal import FORMAT, Event, InMemory, Journal
from badge.journal import events as e
from badge.journal.events import PoolId
from badge.journal.snapshot import EVERY
from badge.learner import opening
from badge.learner.calls import Checked
from badge.learner.classes import Code, short
from badge.learner.ids import Ids
from badge.learner.ledger import Ledger
from badge.learner.opening import Settings
from badge.models.digest import sample_digest, sample_of
from badge.models.pools import open_pool

#: the most columns of a table that are recorded, with their types
MOST_COLUMNS = 1000

Seen = TypeVar("Seen")


class Book:
    """What was asked and told: written to the journal first, then folded into the ledger.

    `shared`: an experiment writes to the journal too, and records times and predictions itself.
    """

    def __init__(self, journal: Journal | InMemory, pool: Any, ids: Ids, settings: Settings, shared: bool) -> None:
        self.journal, self.ids, self.shared = journal, ids, shared
        self._lock = ThreadLock()
        self._kept = 0  # events in the state beside the journal
        self._ledger = self._open(pool, settings)
        self.keep()

    def _open(self, pool: Any, settings: Settings) -> Ledger:
        """Write the header of a new journal, or check an old journal and replay it."""
        path, records = self.journal.path, self.journal.records
        header = opening.header_of(records, path, self.shared)
        if header is None:
            given = {**vars(settings), "initial": settings.initial or e.Initial(ids=[], labels=[])}
            if not isinstance(settings.seed, int):
                given["seed"] = fresh_seed() if settings.seed is None else 0
            new = identify(pool, self.ids)
            self.journal.append(e.Header(format=FORMAT, pool=new, picks=PICKS_VERSION, at=self._time(), **given))
            return self.ledger_at()
        kept = self.journal.snapshot
        ledger = (kept and opening.restored(kept.state, self.ids)) or opening.ledger_of(header, self.ids, (), path)
        self._kept, unread = ledger.number, records[ledger.number :]
        pools = [record.pool for record in unread if isinstance(record, e.Header | e.NewPool)]
        known = pools[-1] if pools else ledger.pool
        assert known is not None
        check_pool(known, pool, self.ids, path)
        if self.ids.own is not None:
            self.ids.gone = {id for id in opening.mentioned(unread) | opening.known_to(ledger) if id not in self.ids}
        ledger.replay(unread, path)
        opening.check_settings(ledger, settings, path)
        log.info("resuming %s: %d events, %d labels", path, ledger.number, len(ledger.labels))
        for record in self._news(ledger, known, pool):
            self.journal.append(record)
            ledger.apply(record)
        return ledger

    def _news(self, ledger: Ledger, known: e.PoolId, pool: Any) -> Iterator[e.Record]:
        """What is new since the journal was last open: other examples in the pool, another version of the picks."""
        gone = self.ids.sort(self.ids.gone - ledger.withdrawn.keys())
        back = [id for id in ledger.withdrawn if id in self.ids]
        if gone:
            what = f"{len(gone):,} examples of {self.journal.path} are no longer in the pool ({short(gone)})"
            warnings.warn(f"{what}: they are withdrawn until they come back", stacklevel=5)
            yield e.Withdraw(ids=gone, at=self._time())
        if back:
            yield e.Return(ids=back, at=self._time())
        if self.ids.length != known.length or gone or back:
            yield e.NewPool(pool=identify(pool, self.ids), at=self._time())
        if ledger.picks != PICKS_VERSION:
            yield e.NewPicks(version=PICKS_VERSION, at=self._time())

    def ledger_at(self, number: int | None = None) -> Ledger:
        """The ledger as it was after event `number`; None: after the last one."""
        path, records = self.journal.path, self.journal.records
        header = opening.header_of(records, path, self.shared)
        assert header is not None
        return opening.ledger_of(header, self.ids, records[:number], path)

    def keep(self) -> None:
        """Keep the state beside a long journal, so that it opens quickly next time."""
        if not self.shared and len(self.journal.records) - self._kept >= EVERY:
            with self.lock():
                ledger = self.ledger()
                self.journal.keep(opening.state_of(ledger), ledger.number)
                self._kept = ledger.number

    def lock(self, writing: bool = False) -> AbstractContextManager[Any]:
        """The lock of journal and ledger. With `writing`, a journal that cannot be written is refused at once."""
        if writing:
            self.journal.check_writable()
        return self._lock()

    def ledger(self) -> Ledger:
        """The ledger, up to date with the journal: an interrupt may have come between writing an event and folding it in."""
        self.journal.settle()
        if self._ledger.busy:
            self._ledger = self.ledger_at()
        for record in self.journal.records[self._ledger.number :]:
            self._ledger.apply(record)
        return self._ledger

    def look(self, at: Callable[[Ledger], Seen]) -> Seen:
        """One consistent look at the ledger."""
        with self.lock():
            return at(self.ledger())

    def write(self, make: Callable[[Ledger], Checked | None], **fields: Any) -> Event | None:
        """Write the event that follows from the ledger as it is, if any; what was written, with its number."""
        with self.lock(writing=True):
            checked = make(self.ledger())
            return None if checked is None else self.append(*checked, **fields)

    def append(self, record: e.Record, codes: Sequence[Code] = (), **fields: Any) -> Event:
        """Journal first, state second: what the state holds is on disk. The record was checked against the state.

        `fields` of the event that no check depends on, such as who sent it, are filled in here.
        """
        record = replace(record, at=self._time(), **fields)
        self.journal.append(record)
        self._ledger.apply(record, codes)
        return {"n": self._ledger.number, **record.event()}

    def _time(self) -> str | None:
        return None if self.shared else e.now()


@dataclass(frozen=True)
class Item:
    """What a learner knows about one example; free means that nobody was asked about it."""

    label: Any  #: None: it has none
    votes: dict[str, Any]  #: who said what, if several people are asked
    pending: bool  #: asked, no label yet
    skipped: bool

    @property
    def free(self) -> bool:
        return self.label is None and not self.pending and not self.skipped


def item_in(ledger: Ledger, id: Any) -> Item:
    (plain,) = ledger.ids.plain([id])
    label = ledger.said(ledger.labels.get(plain))
    return Item(label, ledger.said_by(plain), plain in ledger.pending, plain in ledger.skipped)


def identify(pool: Any, ids: Ids) -> PoolId:
    """Length, the ids of the sample (where they are the caller's) and its digest.

    >>> identify(["a", "b", "c"], Ids(3)).length
    3
    """
    sample = ids.order[sample_of(ids.length)]
    named = None if ids.own is None else ids.at(sample)
    digest = sample_digest(open_pool(pool), sample)
    return PoolId(length=ids.length, sample=named, digest=digest, columns=_columns(pool))


def _columns(pool: Any) -> dict[str, str] | None:
    """The columns of a table and the types of their values, where they are not too many to write down."""
    types = getattr(pool, "dtypes", None)
    if types is None or not hasattr(pool, "columns") or len(pool.columns) > MOST_COLUMNS:
        return None
    return {str(name): str(kind) for name, kind in zip(pool.columns, types, strict=True)}


def _changed_column(recorded: dict[str, str] | None, pool: Any) -> str:
    """How the columns of a table differ from the recorded ones, in words; "" if they do not."""
    yours = _columns(pool)
    if recorded is None or yours is None:
        return ""
    for name in {**recorded, **yours}:
        if name not in yours or name not in recorded:
            return f"; the column {name!r} is only in {'yours' if name in yours else 'the recorded one'}"
        if yours[name] != recorded[name]:
            return f"; the column {name!r} held {recorded[name]} and holds {yours[name]} now: read it as it was"
    return ""


def check_pool(recorded: PoolId, pool: Any, ids: Ids, path: object) -> None:
    """Refuse a pool unless it is the recorded one, perhaps with examples added at its end."""
    theirs, yours = recorded.length, ids.length
    sizes = f"its pool has {theirs:,} examples, yours {yours:,}"
    if (recorded.sample is not None) != (ids.own is not None):
        begun = "with your own ids: give them again" if recorded.sample else "without ids: examples go by position"
        raise JournalError(f"{path} was begun {begun}", in_python="pass ids=" if recorded.sample else "leave out ids=")
    if recorded.sample is None and yours < theirs:
        why = "only a pool with your own ids may lose examples"
        raise JournalError(f"{path} belongs to another pool, or it shrank: {sizes}; {why}")
    if recorded.sample is None:
        sample = sample_of(theirs)
    else:
        gone = [id for id in recorded.sample if id not in ids]
        if len(gone) > len(recorded.sample) // 2:
            missing = f"the id {gone[0]!r} is not in yours, nor are {len(gone) - 1} others of {len(recorded.sample)}"
            raise JournalError(f"{path} belongs to another pool: {sizes}, and {missing} that were looked for")
        if gone:
            return  # some examples were withdrawn: the others are known by their ids
        sample = ids.positions(recorded.sample)
    digest = sample_digest(open_pool(pool), sample)
    if None not in (digest, recorded.digest) and digest != recorded.digest:
        grown = f"the first {theirs:,} of yours" if yours > theirs and ids.own is None else "its examples"
        differ = f"{grown} are different (digest {recorded.digest}, yours {digest})"
        changed = f"{path} belongs to another pool, or its examples were changed: {sizes}, and {differ}"
        way_out = "`badge journal export` carries the labels on to a new journal"
        raise JournalError(f"{changed}{_changed_column(recorded.columns, pool)}; {way_out}")
