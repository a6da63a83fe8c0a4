"""What the page speaks to: items lent and answered, over one learner. Every answer is on disk before a call returns."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from badge.core.rng import generator
from badge.errors import InputError
from badge.labelling.board import Board
from badge.labelling.lending import LOAN_SECONDS, Loans
from badge.labelling.picking import Picker
from badge.labelling.sources import Id, Source
from badge.labelling.words import UNKNOWN, WHILE_PICKING
from badge.learner import ActiveLearner

__all__ = ["Refused", "Session"]

#: answers of the last requests, for those that come twice
REMEMBERED = 10_000
#: draws at random before the pool counts as used up
TRIES = 200
Reply = dict[str, Any]


class Refused(Exception):
    """An answer that cannot be taken: somebody else was first, or there is nothing to undo."""


class Session:
    """Several people at one learner. A client is one open page, a name is a person; all calls are thread-safe.

    An item is lent to one client at a time, in pick order. A request that comes twice has one effect: the second gets the
    first one's reply. Where the queue is empty while a model is training, items are drawn at random: nobody waits.
    """

    def __init__(
        self,
        learner: ActiveLearner,
        source: Source,
        batch_size: int = 50,
        of: int = 1,
        loan_seconds: float = LOAN_SECONDS,
    ) -> None:
        self.learner, self.source, self.of = learner, source, of
        self.picker = Picker(learner, len(source), batch_size, of)
        self.board = Board(learner, source)
        self._loans = Loans(loan_seconds)
        self._lock = threading.Lock()
        self._last: dict[str, list[Id]] = {}  # of each client, what it answered or skipped
        self._correcting: dict[str, Id] = {}
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self._rng = generator(None)  # who gets what meanwhile is no part of the experiment
        self.picker.start()

    def close(self) -> None:
        self.picker.stop()
        self.learner.close()

    # -- items out, answers in -----------------------------------------------------------------------------------

    def next(self, client: str, name: str) -> Reply:
        """The item that the client has, or its next one; {"done": …} where none is left for this person."""
        with self._lock:
            if (id := self._correcting.get(client)) is not None:
                return self._task(id, was=self._said(id, name))
            pending = self.learner.pending.tolist()
            held = self._loans.held(client)
            if held is not None and self._is_open(held, name):
                return self._task(held)
            mine = pending if self.of == 1 else [id for id in pending if self._is_open(id, name)]
            id = self._loans.lend(mine, client)
            if id is None and self.of == 1:
                id = self._loans.lend(self._drawn(), client)
            self.picker.wake()
            if id is not None:
                return self._task(id)
            waiting = self.picker.busy or bool(pending) or self.learner.left > 0
            return {"done": not waiting, "waiting": waiting, **self._around()}

    def _drawn(self) -> list[Id]:
        """Some items at random that nobody was asked about, for the time that the next batch takes."""
        if not self.picker.busy and self.picker.trouble is None:
            self.picker.wake()
        positions = self._rng.integers(len(self.source), size=TRIES).tolist()
        found = [id for id in map(self.source.id, positions) if self.learner.item(id).free]
        if not found and self.learner.left > 0:  # the pool is nearly used up: look at all of it
            found = self.learner.candidates.tolist()
        return found

    def _is_open(self, id: Id, name: str) -> bool:
        """Whether this person can answer an item."""
        item = self.learner.item(id)
        return item.free or (item.pending and name not in item.votes)

    def answer(self, request: str, client: str, name: str, id: Any, label: Any) -> Reply:
        """Take a label; then the next item."""
        if (known := self._replies.get(request)) is not None:
            return known
        id = self._id(id)
        correcting = self._correcting.get(client) == id
        try:
            if correcting:
                self.learner.relabel(id, label, by=name)
            else:
                self.learner.tell([id], [label], by=name, unasked=id not in self.learner.pending.tolist())
        except InputError:
            theirs = self.learner.item(id).label
            if theirs is None or label not in self.learner.classes:
                raise
            with self._lock:
                self._loans.settle(id)
            raise Refused(f"This item was labelled “{theirs}” meanwhile; that answer stands.") from None
        with self._lock:
            self._settled(id, client)
        return self._reply(request, client, name, {"saved": True, "id": id, "label": label, "corrected": correcting})

    def skip(self, request: str, client: str, name: str, id: Any, reason: str | None) -> Reply:
        """Nobody can label this one; then the next item."""
        if (known := self._replies.get(request)) is not None:
            return known
        id = self._id(id)
        try:
            self.learner.skip([id], reason or None)
        except InputError as error:
            raise Refused(f"This item has a label; it can be corrected, not skipped ({error}).") from None
        with self._lock:
            self._settled(id, client)
        return self._reply(request, client, name, {"saved": True, "id": id, "skipped": True})

    def undo(self, request: str, client: str, name: str) -> Reply:
        """Back to what this client (or, after a restart, this person) answered last. A label stands until it is corrected."""
        if (known := self._replies.get(request)) is not None:
            return known
        with self._lock:
            stack = self._last.setdefault(client, [])
            id = stack.pop() if stack else self._last_of(name)
        if id is None:
            raise Refused("There is nothing to undo.")
        if id in self.learner.skipped:
            self.learner.unskip([id])
            with self._lock:
                self._loans.lend([id], client)
        else:
            with self._lock:
                self._correcting[client] = id
        return self._reply(request, client, name, {"undone": id})

    def relabel(self, request: str, name: str, id: Any, label: Any) -> Reply:
        """Correct a label from the list; of an item that several labelled, the label itself, whatever they said."""
        if (known := self._replies.get(request)) is not None:
            return known
        id = self._id(id)
        self.learner.relabel(id, label, by=None if self.of > 1 else name)
        self.board.changed()
        self.picker.wake()
        return self._remember(request, {"saved": True, "id": id, "label": label, "overview": self.board.overview()})

    def unskip(self, request: str, id: Any) -> Reply:
        """Back to the pool with an item that was skipped."""
        if (known := self._replies.get(request)) is not None:
            return known
        id = self._id(id)
        self.learner.unskip([id])
        self.board.changed()
        self.picker.wake()
        return self._remember(request, {"saved": True, "id": id, "overview": self.board.overview()})

    def stay(self, client: str) -> None:
        """The client is still there: its loan is renewed."""
        with self._lock:
            self._loans.held(client)

    # -- what is shown -------------------------------------------------------------------------------------------

    def state(self) -> Reply:
        """All that is around an item: progress, classes, advice."""
        return self._around()

    def position(self, id: Any) -> int:
        """Where in the pool an id is; ids are the only way to an item."""
        try:
            return int(self.learner.positions([id])[0])
        except InputError:
            raise InputError(f"there is no item {str(id)[:80]!r} in this pool") from None

    def _id(self, id: Any) -> Id:
        return self.source.id(self.position(id))

    def _task(self, id: Id, was: Any = None) -> Reply:
        guess, pending = self.picker.guess.get(id), self.learner.pending.tolist()
        asked = id in pending or id in self.picker.batch_of
        return {
            "id": id,
            "item": self.source.shown(self.position(id)),
            "why": self.picker.why.get(id, UNKNOWN) if asked else WHILE_PICKING,
            "guess": None if guess is None else {"label": self.learner.classes[guess[0]], "confidence": guess[1]},
            "was": was,
            "batch": self.picker.batch(id, pending),
            **self._around(),
        }

    def _around(self) -> Reply:
        overview = self.board.overview()
        return {"overview": {**overview, "picking": self.picker.busy, "trouble": self.picker.trouble}}

    def _settled(self, id: Id, client: str) -> None:
        self._loans.settle(id)
        self._correcting.pop(client, None)
        self._last.setdefault(client, []).append(id)
        self.board.changed()

    def _said(self, id: Id, name: str) -> Any:
        """What an item was labelled: by this person, where several are asked."""
        item = self.learner.item(id)
        return item.votes.get(name, item.label)

    def _last_of(self, name: str) -> Id | None:
        return next((row.id for row in reversed(self.learner.history.rows) if row.by == name), None)

    def _reply(self, request: str, client: str, name: str, said: Reply) -> Reply:
        self.picker.wake()
        return self._remember(request, {**said, "next": self.next(client, name)})

    def _remember(self, request: str, reply: Reply) -> Reply:
        with self._lock:
            self._replies[request] = reply
            while len(self._replies) > REMEMBERED:
                self._replies.popitem(last=False)
        return reply
