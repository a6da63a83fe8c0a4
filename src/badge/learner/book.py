"""A journal and the ledger that follows it, under one lock: the state is what the file says, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from badge.core.locking import ThreadLock
from badge.core.rng import fresh_seed
from badge.journal import FORMAT, Event, InMemory, Journal
from badge.journal import events as e
from badge.learner.identity import check_pool, identify
from badge.learner.ids import Ids
from badge.learner.ledger import Ledger
from badge.learner.opening import check_header, header_of, ledger_of

__all__ = ["Book"]


class Book:
    """What was asked and told: written to the journal first, then folded into the ledger.

    `wanted` holds classes, strategy and first (described), seed, initial and multilabel. `shared`: an experiment writes to
    the journal too, and records what it needs itself.
    """

    def __init__(self, journal: Journal | InMemory, pool: Any, ids: Ids, wanted: dict[str, Any], shared: bool) -> None:
        self.journal, self.ids, self.shared = journal, ids, shared
        self._lock = ThreadLock()
        self._ledger = self._open(pool, wanted)

    def _open(self, pool: Any, wanted: dict[str, Any]) -> Ledger:
        """Write the header of a new journal, or check that of an old one and replay it."""
        path, events = self.journal.path, self.journal.events
        header = header_of(events, path, self.shared)
        if header is None:
            seed = fresh_seed() if wanted["seed"] is None else int(wanted["seed"])
            settings = {**wanted, "seed": seed, "initial": wanted["initial"] or {"ids": [], "labels": []}}
            header = e.Header(format=FORMAT, pool=identify(pool, self.ids), at=self.time(), **settings)
            self.journal.append(header.event())
            return ledger_of(header, self.ids, self.journal.events, path)
        known = [event["pool"] for event in events if event["event"] in ("learner", "pool")][-1]
        check_pool(known, pool, self.ids, path)
        ledger = ledger_of(header, self.ids, events, path)
        check_header(ledger, wanted, path)
        if self.ids.length > known["length"]:
            self.journal.append(e.NewPool(pool=identify(pool, self.ids), at=self.time()).event())
            ledger.apply(self.journal.events[-1])
        return ledger

    def lock(self, writing: bool = False) -> AbstractContextManager[Any]:
        """The lock of journal and ledger; `writing` is refused at once where it could not be."""
        if writing:
            self.journal.check_writable()
        return self._lock()

    def ledger(self) -> Ledger:
        """The ledger of all that the journal holds: an interrupt may have come between the file and the fold."""
        self.journal.settle()
        events = self.journal.events
        if self._ledger.busy:
            header = header_of(events, self.journal.path, self.shared)
            assert header is not None
            self._ledger = ledger_of(header, self.ids, events, self.journal.path)
        while self._ledger.number < len(events):
            self._ledger.apply(events[self._ledger.number])
        return self._ledger

    def ledger_at(self, number: int) -> Ledger:
        """The ledger as it was after event `number`."""
        header = header_of(self.journal.events, self.journal.path, self.shared)
        assert header is not None
        return ledger_of(header, self.ids, self.journal.events[:number], self.journal.path)

    def write(self, make: Callable[[Ledger], e.Record | None]) -> Event | None:
        """Write the event that follows from the ledger as it is, if any; what was written, with its number."""
        with self.lock(writing=True):
            record = make(self.ledger())
            return None if record is None else self.append(record)

    def append(self, record: e.Record) -> Event:
        """Journal first, state second: what the state holds is on disk."""
        self.journal.append(replace(record, at=self.time()).event())
        number = len(self.journal.events)
        self.ledger()
        return {"n": number, **self.journal.events[number - 1]}

    def time(self) -> str | None:
        return None if self.shared else e.now()
