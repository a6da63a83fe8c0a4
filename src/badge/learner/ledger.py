"""What was asked and what was told: the state of an active learner, as a fold over the events of its journal.

Live calls and the replay of a journal go through the same `apply`, so they cannot disagree. Calls that a person makes are
first turned into an event, or refused (`tell`, `skip`, …): what is not refused here is not refused by the fold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.errors import InputError, JournalError
from badge.journal import events as e
from badge.journal.events import Event, Id
from badge.learner.classes import Classes, Code, as_plain, short
from badge.learner.ids import Ids, listed
from badge.learner.memory import merged

__all__ = ["Ledger"]

IntArray = NDArray[np.int64]


class Ledger:
    """Labels, pending and skipped ids and the asks so far; `apply` folds one event into them.

    >>> ledger = Ledger(Ids(10), Classes(2))
    >>> ledger.apply({"event": "ask", "round": 0, "ids": [4, 7]})
    >>> ledger.apply(ledger.tell([7], [1]).event())
    >>> ledger.labels, list(ledger.pending)
    ({7: 1}, [4])
    """

    def __init__(self, ids: Ids, classes: Classes) -> None:
        self.ids, self.classes = ids, classes
        self.header: e.Header | None = None
        self.pool: dict[str, Any] = {}  # what identifies it, after it grew last
        self.strategy: str | dict[str, Any] = ""
        self.labels: dict[Id, Code] = {}
        self.pending: dict[Id, int] = {}  # asked and not labelled -> of how many people; in the order asked
        self.skipped: dict[Id, str | None] = {}  # -> reason
        self.votes: dict[Id, dict[str, Code]] = {}  # of ids that were asked of several people
        self.of: dict[Id, int] = {}  # their number
        self.decided: set[Id] = set()  # of those, labelled by `relabel` whatever the votes
        self.asks: list[tuple[int, e.Ask]] = []  # with the number of the event
        self.number = 0  # of the last event that was folded in
        self.revision = 0  # of the last event that changed a label
        self.label_round = 0  # number of asks before that: the round of the model trained on the labels
        self.memory: dict[str, Any] | None = None  # of the strategy, after the last ask
        self.stop: dict[Id, Code] = {}  # what the last model said about the stop set
        self.stop_revision = -1  # of that model
        self.stability: list[dict[str, Any]] = []  # from model to model: labels, of, changed, kappa
        self.broken = False  # a line was lost: what follows from it cannot be checked
        self.busy = False  # in the middle of `apply`: an interrupt there leaves a ledger that must be made anew

    # -- events that a caller wants: checked, not yet applied ----------------------------------------------------

    def initial(self, labels: Mapping[Any, Any]) -> dict[str, Any]:
        ids = self.ids.plain(list(labels))
        codes = dict(zip(ids, self._encode(ids, list(labels.values())), strict=True))
        ordered = self.ids.sort(codes)  # order means nothing
        return {"ids": ordered, "labels": [self.classes.decode(codes[id]) for id in ordered]}

    def tell(self, ids: Any, labels: Any, by: str | None = None, unasked: bool = False) -> e.Tell | None:
        """The event of telling `labels`; None where all of them are known already. Raises before anything changes."""
        plain, given = self.ids.plain(ids), [as_plain(label) for label in listed(labels, "labels")]
        by = _person(by)
        if len(plain) != len(given):
            raise InputError(f"{len(plain)} ids and {len(given)} labels: one label for each id is needed")
        new: dict[Id, Code] = {}
        for id, code in zip(plain, self._encode(plain, given), strict=True):
            known = new.get(id, self._known(id, by))
            if known is None:
                self._check_tellable(id, unasked)
                new[id] = code
            elif known != code:
                old, told = self.classes.decode(known), self.classes.decode(code)
                again = f", by={by!r}" if id in self.votes else ""
                way_out = "tell it once" if id in new else f"relabel({id!r}, {told!r}{again}) corrects a label"
                raise InputError(f"id {id!r} is labelled {old!r} and was told again as {told!r}: {way_out}")
        if not new:
            return None
        told_labels = [self.classes.decode(code) for code in new.values()]
        return e.Tell(ids=list(new), labels=told_labels, by=by, unasked=unasked)

    def relabel(self, id: Any, label: Any, by: str | None = None) -> e.Relabel | None:
        """The event of correcting a label, or one person's; None where it is that already."""
        (plain,) = self.ids.plain([id])
        code = self.classes.encode(label, plain)
        by = _person(by)
        votes = self.votes.get(plain, {})
        if votes and by is not None and by not in votes:
            raise InputError(f"{by!r} has not labelled id {plain!r}, so there is nothing to correct: tell it first")
        if plain not in self.labels and not votes:
            first = "tell" if plain in self.pending else "ask"
            raise InputError(f"id {plain!r} has no label to correct: {first} it first")
        known = votes[by] if votes and by is not None else self.labels.get(plain)
        if known == code:
            return None
        return e.Relabel(id=plain, label=self.classes.decode(code), by=by)

    def skip(self, ids: Any, reason: str | None = None) -> e.Skip | None:
        plain = self.ids.plain(ids)
        if reason is not None and not isinstance(reason, str):
            raise InputError(f"a reason is a text, not {reason!r:.60}")
        reason = None if reason is None else str(reason)
        labelled = [id for id in plain if id in self.labels]
        if labelled:
            raise InputError(f"id {labelled[0]!r} is labelled, so it cannot be skipped: relabel corrects a label")
        new = [id for id in dict.fromkeys(plain) if id not in self.skipped or self.skipped[id] != reason]
        return e.Skip(ids=new, reason=reason) if new else None

    def unskip(self, ids: Any) -> e.Unskip | None:
        new = [id for id in dict.fromkeys(self.ids.plain(ids)) if id in self.skipped]
        return e.Unskip(ids=new) if new else None

    def release(self, ids: Any) -> e.Release | None:
        new = [id for id in dict.fromkeys(self.ids.plain(ids)) if id in self.pending]
        return e.Release(ids=new) if new else None

    def _known(self, id: Id, by: str | None) -> Code | None:
        if id not in self.of:
            return self.labels.get(id)
        if by is None and not self.broken:
            raise InputError(f"id {id!r} was asked of {self.of[id]} people: say whose label it is, tell(…, by=…)")
        return self.votes.get(id, {}).get(by or "")

    def _check_tellable(self, id: Id, unasked: bool) -> None:
        if unasked or self.broken:
            return
        if id in self.skipped:
            raise InputError(f"id {id!r} is skipped: unskip it first, or tell(…, unasked=True)")
        if id not in self.pending and id not in self.of:
            raise InputError(
                f"id {id!r} was not asked: labels that exist already go into `initial`, or tell(…, unasked=True); "
                f"pending are {short(list(self.pending))}"
            )

    # -- the fold ------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one event in; those of an experiment leave it as it is."""
        self.busy = True
        self.number += 1
        before, record = self.revision, e.typed(event)
        fold = _FOLDS.get(type(record))
        if fold is not None:
            fold(self, record)
        if self.revision != before:
            self.label_round = self.round
        self.busy = False

    def replay(self, events: Iterable[Event], path: object) -> None:
        """Fold a whole journal in; an event that contradicts those before it names its line."""
        for event in events:
            try:
                self.apply(event)
            except (InputError, KeyError, TypeError, ValueError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise JournalError(f"{path}, line {self.number}: {reason}; the journal was changed by hand") from error

    def _header(self, record: e.Header) -> None:
        if self.header is not None:
            raise InputError("a second header")
        self.header, self.pool, self.strategy = record, record.pool, record.strategy
        given = self.ids.plain(record.initial["ids"])
        for id, code in zip(given, self._encode(given, record.initial["labels"]), strict=True):
            self._set(id, code)

    def _ask(self, record: e.Ask) -> None:
        ids = self.ids.plain(record.ids)
        taken = (self.labels, self.pending, self.skipped)
        again = [id for id in ids if any(id in those for those in taken)]
        if not self.broken and (record.round != self.round or again or len(set(ids)) != len(ids)):
            raise InputError(f"ask {record.round} is out of order or repeats ids {short(again)}")
        self.pending.update(dict.fromkeys([id for id in ids if id not in again], record.of))
        if record.of > 1:
            self.of.update(dict.fromkeys(ids, record.of))
        self.asks.append((self.number, record))
        if record.memory and not (self.broken and "all" not in record.memory):
            self.memory = merged(self.memory, record.memory)
        if record.stop:
            codes = [tuple(code) if isinstance(code, list) else code for code in record.stop["codes"]]
            self.stop.update(zip(self.ids.plain(record.stop["ids"]), codes, strict=True))
            self.stop_revision = record.stop["revision"]
            if record.stop["changed"] is not None:
                self.stability.append(record.stop)

    def _tell(self, record: e.Tell) -> None:
        ids = self.ids.plain(record.ids)
        if self.broken:
            self._learn_classes(record.labels)
        else:
            self.tell(ids, record.labels, record.by, record.unasked)  # refuses what a caller would be refused
        for id, code in zip(ids, self._encode(ids, record.labels), strict=True):
            self.skipped.pop(id, None)
            if id in self.of:
                self.votes.setdefault(id, {})[record.by or ""] = code
                self._count(id)
            else:
                self._set(id, code)

    def _relabel(self, record: e.Relabel) -> None:
        if self.broken:
            self._learn_classes([record.label])
        else:
            self.relabel(record.id, record.label, record.by)
        (id,) = self.ids.plain([record.id])
        code = self.classes.encode(record.label, id)
        if id in self.votes and record.by is not None:
            self.votes[id][record.by] = code
            self._count(id)
            return
        if id in self.of:
            self.decided.add(id)
        self._set(id, code)

    def _count(self, id: Id) -> None:
        """The majority of the votes is the label; a tie, or too few of them, is pending."""
        if id in self.decided:
            return
        ranked = Counter(self.votes[id].values()).most_common(2)
        tie = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
        if not tie and sum(Counter(self.votes[id].values()).values()) >= self.of[id]:
            self._set(id, ranked[0][0])
        elif id in self.labels:
            del self.labels[id]
            self.pending[id] = self.of[id]
            self.revision = self.number

    def _set(self, id: Id, code: Code) -> None:
        self.pending.pop(id, None)
        if self.labels.get(id) != code:
            self.labels[id] = code
            self.revision = self.number

    def _skip(self, record: e.Skip) -> None:
        if not self.broken:
            self.skip(record.ids, record.reason)
        for id in self.ids.plain(record.ids):
            if id not in self.labels:
                self.pending.pop(id, None)
                self.skipped[id] = record.reason

    def _unskip(self, record: e.Unskip) -> None:
        for id in self.ids.plain(record.ids):
            self.skipped.pop(id, None)

    def _release(self, record: e.Release) -> None:
        for id in self.ids.plain(record.ids):
            self.pending.pop(id, None)

    def _class(self, record: e.AddClass) -> None:
        if record.name not in self.classes.names or not self.broken:
            self.classes.add(record.name)

    def _use(self, record: e.Use) -> None:
        self.strategy, self.memory = record.strategy, None

    def _new_pool(self, record: e.NewPool) -> None:
        self.pool = record.pool

    def _lost(self, record: e.Lost) -> None:
        self.broken = True

    def _learn_classes(self, labels: list[Any]) -> None:
        """The line that added a class may be lost: a label that was told is one all the same."""
        for label in labels:
            for one in label if isinstance(label, list) else [label]:
                if one not in self.classes.names:
                    self.classes.add(one)

    def _encode(self, ids: list[Id], labels: list[Any]) -> list[Code]:
        return [self.classes.encode(label, id) for id, label in zip(ids, labels, strict=True)]

    # -- what follows from it ------------------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """Number of asks so far."""
        return self.asks[-1][1].round + 1 if self.asks else 0

    def labeled(self) -> tuple[IntArray, IntArray]:
        """Positions and targets, sorted by id: the same arrays however the labels came in."""
        ids = self.ids.sort(self.labels)
        return self.ids.positions(ids), self.classes.targets([self.labels[id] for id in ids])

    def candidates(self) -> IntArray:
        """Positions that can still be asked, in the order in which samplers see them."""
        free = np.ones(self.ids.length, dtype=bool)
        for taken in (self.labels, self.pending, self.skipped):
            free[self.ids.positions(taken)] = False
        return self.ids.order[free[self.ids.order]]


_FOLDS: dict[type[e.Record], Callable[[Any, Any], None]] = {
    e.Header: Ledger._header,
    e.Ask: Ledger._ask,
    e.Tell: Ledger._tell,
    e.Relabel: Ledger._relabel,
    e.Skip: Ledger._skip,
    e.Unskip: Ledger._unskip,
    e.Release: Ledger._release,
    e.AddClass: Ledger._class,
    e.Use: Ledger._use,
    e.NewPool: Ledger._new_pool,
    e.Lost: Ledger._lost,
}


def _person(by: Any) -> str | None:
    if by is not None and (not isinstance(by, str) or not by):
        raise InputError(f"by= is the name of whoever labelled, a text, not {by!r:.60}")
    return None if by is None else str(by)  # numpy's texts too
