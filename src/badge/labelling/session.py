"""What the page speaks to: items out, answers in, over one learner. Every answer is on disk before a call returns."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from badge.core.rng import generator
from badge.journal.events import Id
from badge.labelling.board import About, Board
from badge.labelling.lending import LOAN_SECONDS, Loans
from badge.labelling.picking import BETWEEN, TEST, UNKNOWN, WHILE_PICKING, Picker
from badge.labelling.sources import Items, Source
from badge.learner import ActiveLearner

#: replies that are remembered, for requests that come twice
REMEMBERED = 10_000
#: draws at random before the whole pool is looked at
TRIES = 200
#: share of the items that come from the test sample while it is mixed in
TEST_SHARE = 0.25
#: seconds; a longer time that the page measured is not kept
DAY = 86_400
Reply = dict[str, Any]


class Refused(Exception):
    """An answer that cannot be taken: somebody else was first, or there is nothing to undo."""


class Session:
    """Several people at one learner. A client is one open page, a name is a person; all calls are thread-safe.

    An item is lent to one client at a time, in pick order. A request that comes twice has one effect, after a restart
    too: the journal knows its number. While a model trains and the queue is empty, items are drawn at random, so that
    nobody waits. `adjudicator` decides ties; without one a third person is asked.
    """

    def __init__(
        self,
        learner: ActiveLearner,
        source: Source,
        batch_size: int = 50,
        per_item: int = 1,
        adjudicator: str | None = None,
        test_first: bool = False,
        loans: Path | None = None,
        about: About | None = None,
    ) -> None:
        self.learner, self.source, self.per_item, self.adjudicator = learner, source, per_item, adjudicator
        self.items, self.team, self.test_first = Items(source), learner.team, test_first
        self.picker = Picker(learner, batch_size, per_item)
        self.board = Board(learner, self.items, per_item, about)
        self._loans = Loans(LOAN_SECONDS, file=loans)
        self.picker.is_out, self.picker.picked = self._loans.is_out, self.board.changed
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)  # a client does one thing at a time
        self._undone: dict[str, list[Id]] = {}  # client -> items that it went back to since its last answer
        self._replies: OrderedDict[str, Reply] = OrderedDict()
        self._journalled = self.team.requests(REMEMBERED)
        self._rng = generator(None)  # who gets which item is not part of the experiment
        self.picker.start()

    def close(self) -> None:
        self.picker.stop()
        self.learner.close()

    # -- items out -----------------------------------------------------------------------------------------------

    def next(self, client: str, name: str) -> Reply:
        """The item that the client has, or its next one; without "id": none is left for this person."""
        with self._lock:
            loan = self._loans.held(client)
            if loan is not None and loan.again:
                return self._task(loan.id, was=self._said(loan.id, name))
            if loan is not None and self._is_open(loan.id, name):
                return self._task(loan.id)
            id = self._loans.lend(self._queue(name), client)
            if id is None and self.per_item == 1:
                id = self._loans.lend(self._drawn(), client)
        self.picker.wake()
        if id is not None:
            return self._task(id)
        ties, pending = self.team.ties(), self.learner.pending.tolist()
        tied = bool(ties) and all(id in ties for id in pending) and not self.learner.left
        waiting = tied or self.picker.busy or bool(pending) or self.learner.left > 0
        return {"done": not waiting, "waiting": waiting, "tied": tied, **self.state()}

    def _queue(self, name: str) -> list[Id]:
        """What this person can answer, in order; items of the test sample come first, or mixed in."""
        pending: list[Id] = self.learner.pending.tolist()
        test = self.team.test
        if self.picker.busy:  # what was just picked is shown once its reasons are known
            pending = [id for id in pending if id in self.picker.batch_of or id in test]
        if self.per_item > 1:
            pending = [id for id in pending if self._is_open(id, name)]
        if not test:
            return pending
        sample, picks = [id for id in pending if id in test], [id for id in pending if id not in test]
        sample_now = self.test_first or not picks or self._rng.random() < TEST_SHARE
        return [*sample, *picks] if sample_now else [*picks, *sample]

    def _drawn(self) -> list[Id]:
        """Random items that nobody was asked about, to label while the next batch is picked."""
        positions = self._rng.integers(len(self.source), size=TRIES).tolist()
        found = [id for id in map(self.source.id, positions) if self.learner.item(id).free]
        return found or list(self.learner.candidates.tolist())  # where none is found, the pool is nearly used up

    def _is_open(self, id: Id, name: str) -> bool:
        item = self.learner.item(id)
        tie = self.adjudicator is not None and len(item.votes) >= self.per_item > 1
        return item.free or (item.pending and name not in item.votes and not tie)

    def _said(self, id: Id, name: str) -> Any:
        """The label of an item; if several people are asked, the label that this person gave."""
        item = self.learner.item(id)
        return item.votes.get(name) if self.per_item > 1 and item.votes else item.label

    def said_by(self, id: Id, name: str) -> Any:
        """The vote of this person on an item, or its label if this person set it last; else None."""
        item = self.learner.item(id)
        if item.votes:
            return item.votes.get(name)
        last = next((row for row in reversed(self.learner.history.rows) if row.id == id), None)
        return item.label if last is not None and last.by == name else None

    # -- answers in ----------------------------------------------------------------------------------------------

    def answer(
        self,
        request: str,
        client: str,
        name: str,
        id: Any,
        shown: Any,
        label: Any,
        was: Any = None,
        seconds: Any = None,
    ) -> Reply:
        """Take a label, or correct the one that the person looks at again; then the next item."""

        def write() -> Reply:
            item = self._seen(id, shown)
            before = self._said(item, name)
            if was is None and before is not None:
                with self._lock:
                    self._loans.settle(item, client)
                said = ", ".join(map(str, before)) or "none" if isinstance(before, list) else before
                raise Refused(f"This item was labelled “{said}” meanwhile. That label stands.")
            if was is not None:
                if before is None:
                    raise Refused("Your label of this item is gone, so you cannot correct it.")
                self.team.relabel(item, label, name, request)
            else:
                together = [item, *self.twins(item)] if self.per_item == 1 else [item]
                measured = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= DAY
                taken = round(float(seconds), 1) if measured else None
                self.team.tell(together, [label] * len(together), name, request, taken)
            self.label_twins(item, name)
            self._settled(item, client)
            return {"saved": True, "id": str(item), "label": label, "corrected": was is not None}

        return self.once(request, client, name, write)

    def skip(
        self, request: str, client: str, name: str, id: Any, shown: Any, was: Any = None, reason: str | None = None
    ) -> Reply:
        """Nobody can label this one; a label that it has is taken back. Then the next item."""

        def write() -> Reply:
            item = self._seen(id, shown)
            if was is None and self.learner.item(item).label is not None:
                raise Refused("This item was labelled meanwhile. That label stands.")
            together = [item, *self.twins(item)]
            self.team.skip(together, reason or None, name, request, labelled=was is not None)
            self._settled(item, client)
            return {"saved": True, "id": str(item), "skipped": True}

        return self.once(request, client, name, write)

    def undo(self, request: str, client: str, name: str) -> Reply:
        """Back to what this person answered before; a label stands until it is corrected."""

        def write() -> Reply:
            loan = self._loans.held(client)
            if loan is not None and loan.request == request:  # it came before a restart
                return {"undone": str(loan.id)}
            gone = self._undone.setdefault(client, [])
            item = next((id for id in self.team.answered_by(name) if id not in gone), None)
            if item is None:
                raise Refused("There is nothing to undo.")
            gone.append(item)
            skipped = item in self.learner.skipped
            if skipped:
                self.team.unskip([item, *self.twins(item, skipped=True)], request)
            with self._lock:
                if skipped:
                    self._loans.lend([item], client)
                else:
                    self._loans.look_again(item, client, request)
            return {"undone": str(item)}

        return self.once(request, client, name, write)

    def once(self, request: str, client: str, name: str | None, write: Callable[[], Reply]) -> Reply:
        """Do what a request asks for, unless it was done: then its reply again. With a name, the next item follows."""
        with self._turns[client]:
            if (known := self._replies.get(request)) is not None:
                return known
            said = {"saved": True, **self._journalled[request]} if request in self._journalled else write()
            self.picker.wake()
            reply = {**said, "next": self.next(client, name)} if name is not None else said
            with self._lock:
                self._replies[request] = reply
                while len(self._replies) > REMEMBERED:
                    self._replies.popitem(last=False)
            return reply

    def _seen(self, id: Any, shown: Any) -> Id:
        """The item of an answer, which names what the person saw of it."""
        item = self.items.id(id)
        if shown != self.items.seal(item):
            raise Refused("This item has changed since you opened it: look at it again.")
        return item

    def _settled(self, id: Id, client: str) -> None:
        with self._lock:
            self._loans.settle(id, client)
            self._undone.pop(client, None)
        self.board.changed()

    # -- identical items ---------------------------------------------------------------------------------------------

    def twins(self, id: Id, skipped: bool = False) -> list[Id]:
        """Items with the same content that still need an answer, or that were skipped with it."""
        known = [(other, self.learner.item(other)) for other in self.items.twins(id)]
        return [other for other, item in known if (item.skipped if skipped else item.free or item.pending)]

    def label_twins(self, id: Id, name: str) -> None:
        """Give items with the same content the label of this one, once it has one."""
        label = self.learner.item(id).label
        others = [other for other in self.items.twins(id) if self.learner.item(other).label != label]
        if label is not None and others:
            self.team.decide(others, [label] * len(others), name)

    def stay(self, client: str) -> None:
        """Renew the loan of a client that is still there."""
        with self._lock:
            self._loans.held(client)

    # -- what is shown -------------------------------------------------------------------------------------------

    def state(self) -> Reply:
        return {"overview": {**self.board.overview(), "picking": self.picker.busy, "trouble": self.picker.trouble}}

    def _task(self, id: Id, was: Any = None) -> Reply:
        pending = self.learner.pending.tolist()
        asked, test = id in pending or id in self.picker.batch_of, id in self.team.test
        why = TEST if test else self.picker.why.get(id, UNKNOWN) if asked else WHILE_PICKING
        guesses = [] if test else self.picker.guess.get(id, [])
        return {
            "id": str(id),
            "shown": self.items.seal(id),
            "item": self.items.shown(id),
            "why": why,
            "guesses": [{"label": self.learner.classes[code], "confidence": share} for code, share in guesses],
            "suggested": self._suggested(id),
            "was": was,
            "batch": None if test else self.picker.batch(id, pending),
            "between": "Test sample" if test else BETWEEN,
            **self.remarks(id),
            **self.state(),
        }

    def _suggested(self, id: Id) -> Any:
        """The class that the file suggests for an item; if it may have several, all of them."""
        said = self.source.guesses[self.items.position(id)] if self.source.guesses else ""
        if not said or not self.team.multilabel:
            return said if said in self.learner.classes else None
        return [name for name in self.learner.classes if str(name) in {part.strip() for part in said.split(";")}]

    def remarks(self, id: Id) -> Reply:
        remarks, flagged = self.team.remarks(id)
        return {"remarks": [{"by": by, "text": text} for by, text in remarks], "flagged": flagged}
