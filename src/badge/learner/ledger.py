"""What was asked and what was told: the state of an active learner, as a fold over the events of its journal.

A call becomes a checked event (`calls.py`) or is refused. The event is written, then folded in by `apply`. Reading a
journal is the same fold: there `apply` gets events that nobody has checked yet, and checks them in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from badge.errors import InputError, JournalError
from badge.journal import events as e
from badge.journal.events import Described, Id
from badge.learner import calls
from badge.learner.classes import Classes, Code, majority, short
from badge.learner.ids import Ids, IntArray
from badge.learner.memory import merged


class Ledger:
    """Labels, pending and skipped ids and the asks so far; `apply` folds one event into them.

    >>> ledger = Ledger(Ids(10), Classes(2))
    >>> ledger.apply(e.Ask(round=0, ids=[4, 7]))
    >>> ledger.apply(*calls.tell(ledger, [7], [1]))
    >>> ledger.labels, list(ledger.pending)
    ({7: 1}, [4])
    """

    def __init__(self, ids: Ids, classes: Classes) -> None:
        self.ids, self.classes = ids, classes
        self.header: e.Header | None = None
        self.pool: e.PoolId | None = None  # after it grew last
        self.strategy: Described = ""
        self.picks: int | None = None  # version of the picks
        self.labels: dict[Id, Code] = {}
        self.pending: dict[Id, int] = {}  # asked and not labelled -> number of people; in the order asked
        self.skipped: dict[Id, str | None] = {}  # -> reason
        self.withdrawn: dict[Id, Code | None] = {}  # no longer in the pool -> the label that is kept
        self.people: dict[Id, int] = {}  # ids that several people label -> number of people
        self.votes: dict[Id, dict[str, Code]] = {}  # of these, who gave which label
        self.decided: set[Id] = set()  # those of them that one person decided: votes do not count
        self.test: dict[Id, None] = {}  # the test sample: never picked, never trained on
        self.tested: list[tuple[int, list[Any]]] = []  # labels of a model, and what it predicts for the sample
        self.remarks: dict[Id, list[tuple[str, str]]] = {}  # who said what about an example
        self.flagged: set[Id] = set()
        self.asks: list[tuple[int, e.Ask]] = []  # with the number of the event
        self.number = 0  # of the last event that was folded in
        self.revision = 0  # of the last event that changed a label
        self.label_round = 0  # number of asks before that: the round of the model trained on the labels
        self.memory: dict[str, Any] | None = None  # of the strategy, after the last ask
        self.stop: dict[Id, Code] = {}  # what the last model predicts on the stop set
        self.stop_revision = -1  # of that model
        self.stability: list[e.Stop] = []  # from model to model
        self.broken = False  # a line was lost: events that depend on it cannot be checked
        self.busy = False  # within `apply`: after an interrupt there the ledger must be rebuilt

    def copy(self) -> Ledger:
        """The same state, to try events on; ids are shared."""
        return deepcopy(self, {id(self.ids): self.ids})

    def encode(self, ids: Sequence[Id], labels: Iterable[Any]) -> list[Code]:
        return [self.classes.encode(label, id) for id, label in zip(ids, labels, strict=True)]

    def said(self, code: Code | None) -> Any:
        """A label as the caller knows it; None for none."""
        return None if code is None else self.classes.decode(code)

    def said_by(self, id: Id) -> dict[str, Any]:
        """Who gave which label, for an id that several people label."""
        return {by: self.classes.decode(code) for by, code in self.votes.get(id, {}).items()}

    # -- the fold --------------------------------------------------------------------------------------------------

    def apply(self, record: e.Record, codes: Sequence[Code] | None = None) -> None:
        """Fold one event in. With `codes`, its labels, it was checked before. Events of an experiment change nothing."""
        self.busy = True
        self.number += 1
        before = self.revision
        codes = self._checked(record) if codes is None else codes
        match record:
            case e.Tell():
                self._tell(record, codes)
            case e.Ask():
                self._ask(record)
            case e.Relabel():
                self._relabel(record, codes[0])
            case e.Skip():
                self._skip(record)
            case e.Unskip() | e.Release():
                for id in record.ids:
                    (self.skipped if isinstance(record, e.Unskip) else self.pending).pop(id, None)
            case e.Decide():
                for id, code in zip(record.ids, codes, strict=True):
                    self.skipped.pop(id, None)
                    self._decide(id, code)
            case e.Remark():
                if record.text is not None:
                    self.remarks.setdefault(record.id, []).append((record.by or "", record.text))
                if record.flag is not None:
                    (self.flagged.add if record.flag else self.flagged.discard)(record.id)
            case e.SetAside():
                self.test.update(dict.fromkeys(record.ids))
                self.pending.update(dict.fromkeys([id for id in record.ids if id not in self.labels], record.people))
                if record.people > 1:
                    self.people.update(dict.fromkeys(record.ids, record.people))
            case e.AddClass():
                self.classes.add(record.name)
            case e.Use():
                self.strategy, self.memory = record.strategy, None
            case e.NewPool():
                self.pool = record.pool
            case e.Withdraw() | e.Return():
                self._withdraw(record)
            case e.NewPicks():
                self.picks = record.version
            case e.Lost():
                self.broken = True
            case e.Header():
                self._header(record)
        if self.revision != before:
            self.label_round = self.round
        self.busy = False

    def _checked(self, record: e.Record) -> list[Code]:
        """The labels of an event from a journal; one that contradicts the events before it is refused."""
        if isinstance(record, e.Withdraw | e.Return):
            return []
        ids = self.ids.plain([record.id] if isinstance(record, e.Relabel | e.Remark) else getattr(record, "ids", []))
        labels = record.labels if isinstance(record, e.Tell | e.Decide) else []
        labels = [record.label] if isinstance(record, e.Relabel) else labels
        if isinstance(record, e.Ask) and record.stop is not None:
            self.ids.plain(record.stop.ids)
        if self.broken:  # the line that added a class may be lost
            for label in labels:
                for one in label if isinstance(label, list) else [label]:
                    self.classes.add(self.classes.checked_new(one) if one not in self.classes.names else one)
            return self.encode(ids, labels) if labels else []
        match record:
            case e.Ask():
                again = [id for id in ids if not self.is_free(id)]
                if record.round != self.round or again or len(set(ids)) < len(ids):
                    raise InputError(f"ask {record.round} is out of order or repeats ids {short(again)}")
            case e.Tell():
                calls.tell(self, ids, labels, record.by, record.unasked, record.people)
            case e.Relabel():
                calls.relabel(self, record.id, record.label, record.by)
            case e.Skip():
                calls.skip(self, ids, record.reason, record.labelled)
            case e.AddClass():
                self.classes.checked_new(record.name)
        return self.encode(ids, labels) if labels else []

    def replay(self, records: Iterable[e.Record], path: object) -> None:
        """Fold a whole journal in; an event that contradicts those before it names its line."""
        self.ids.replaying = True
        try:
            for record in records:
                self.apply(record)
        except (InputError, TypeError, ValueError) as error:
            raise JournalError(f"{path}, line {self.number}: {error}; the journal was changed by hand") from error
        finally:
            self.ids.replaying = False

    def _header(self, record: e.Header) -> None:
        if self.header is not None:
            raise InputError("a second header")
        self.header, self.pool, self.strategy, self.picks = record, record.pool, record.strategy, record.picks
        given = self.ids.plain(record.initial.ids)
        for id, code in zip(given, self.encode(given, record.initial.labels), strict=True):
            self.set(id, code)

    def _ask(self, record: e.Ask) -> None:
        self.pending.update(dict.fromkeys([id for id in record.ids if self.is_free(id)], record.people))
        if record.people > 1:
            self.people.update(dict.fromkeys(record.ids, record.people))
        self.asks.append((self.number, record))
        if record.memory is not None and not (self.broken and record.memory.all is None):
            self.memory = merged(self.memory, record.memory)
        if record.test is not None:
            trained = record.stop.labels if record.stop is not None else len(self.labels.keys() - self.test.keys())
            self.tested.append((trained, record.test))
        if (stop := record.stop) is not None:
            told = [tuple(code) if isinstance(code, list) else code for code in stop.codes]
            self.stop.update(zip(stop.ids, told, strict=True))
            self.stop_revision = stop.revision
            if stop.changed is not None:
                self.stability.append(stop)

    def _tell(self, record: e.Tell, codes: Sequence[Code]) -> None:
        for id, code in zip(record.ids, codes, strict=True):
            self.skipped.pop(id, None)
            if record.people > 1 and id not in self.people and id not in self.labels:
                self.people[id] = self.pending[id] = record.people
            if id in self.people:
                self.votes.setdefault(id, {})[record.by or ""] = code
                self._count(id)
            else:
                self.set(id, code)

    def _relabel(self, record: e.Relabel, code: Code) -> None:
        if record.id in self.votes and record.by is not None:
            self.votes[record.id][record.by] = code
            self._count(record.id)
        else:
            self._decide(record.id, code)

    def _decide(self, id: Id, code: Code) -> None:
        if id in self.people:
            self.decided.add(id)
        self.set(id, code)

    def _count(self, id: Id) -> None:
        """The majority of the votes is the label; a tie, or too few of them, is pending."""
        if id in self.decided:
            return
        winner = majority(self.votes[id].values())
        if winner is not None and len(self.votes[id]) >= self.people[id]:
            self.set(id, winner)
        elif id in self.labels:
            self._unset(id)
            self.pending[id] = self.people[id]

    def set(self, id: Id, code: Code) -> None:
        self.pending.pop(id, None)
        if self.labels.get(id) != code:
            self.labels[id] = code
            self._changed(id)

    def _unset(self, id: Id) -> None:
        if self.labels.pop(id, None) is not None:
            self._changed(id)

    def _changed(self, id: Id) -> None:
        if id not in self.test:  # no model is trained on the test sample
            self.revision = self.number

    def _skip(self, record: e.Skip) -> None:
        for id in record.ids:
            if record.labelled:
                self._unset(id)
                self.votes.pop(id, None)
                self.decided.discard(id)
            if id not in self.labels:
                self.pending.pop(id, None)
                self.skipped[id] = record.reason

    def _withdraw(self, record: e.Withdraw | e.Return) -> None:
        """A withdrawn example is neither asked nor trained on. Its label counts again if the example comes back."""
        for id in record.ids:
            if isinstance(record, e.Withdraw):
                self.withdrawn[id] = self.labels.pop(id, None)
                for those in (self.pending, self.skipped, self.stop):
                    those.pop(id, None)
            elif (code := self.withdrawn.pop(id, None)) is not None:
                self.labels[id] = code
        self.revision = self.number

    @property
    def round(self) -> int:
        """Number of asks so far."""
        return self.asks[-1][1].round + 1 if self.asks else 0

    def last_pick(self) -> tuple[int, e.Ask]:
        """The last ask, which a model must have answered, and the number of its event."""
        if not self.asks:
            raise InputError("nothing was asked yet, so there is no batch to explain")
        number, ask = self.asks[-1]
        if ask.select_seconds is None or not ask.ids:
            raise InputError("no model picked the last batch: name the ids, explain(ids) is about the model of now")
        return number, ask

    def labeled(self) -> tuple[IntArray, IntArray]:
        """Positions and targets, sorted by id: the same arrays however the labels came in."""
        ids = self.ids.sort(id for id in self.labels if id not in self.test and id in self.ids)
        return self.ids.positions(ids), self.classes.targets([self.labels[id] for id in ids])

    def is_free(self, id: Id) -> bool:
        """Whether an id can be asked: it has no label, is not pending and not skipped."""
        return id not in self.labels and id not in self.pending and id not in self.skipped

    def candidates(self) -> IntArray:
        """Positions that can still be asked, in the order in which samplers see them."""
        free = np.ones(self.ids.length, dtype=bool)
        for taken in (self.labels, self.pending, self.skipped):
            free[self.ids.positions(id for id in taken if id in self.ids)] = False
        return self.ids.order[free[self.ids.order]]
