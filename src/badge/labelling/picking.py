"""The next batch is trained and picked in the background, so that nobody waits for it."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable

from badge.errors import BadgeError, InputError
from badge.labelling.sources import Id
from badge.labelling.words import RANDOM, reasons
from badge.learner import ActiveLearner
from badge.training.fit import prepared

__all__ = ["Picker"]

#: seconds before a training that failed is tried again
RETRY_SECONDS = 30.0


class Picker:
    """A thread that asks for the next batch when half of the last one is labelled.

    `why` says of picked items why they were; `trouble` what went wrong last, if it did.
    """

    def __init__(self, learner: ActiveLearner, size: int, batch_size: int, of: int) -> None:
        self.learner, self.size, self.batch_size, self.of = learner, size, batch_size, of
        self.why: dict[Id, str] = {}
        self.guess: dict[Id, tuple[int, float]] = {}  # class number and probability
        self.batch_of: dict[Id, int] = {}  # numbers from 1
        self.sizes: list[int] = []
        self.trouble: str | None = None
        self.busy = False
        self._changed, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="badge-picker", daemon=True)
        self._pending = len(learner.pending)
        for ids in learner.batches:
            self._number(ids.tolist())

    def start(self) -> None:
        """Fill an empty queue now, if that needs no training, and go on in the background."""
        if not self._pending and len(set(self.learner.labels.values())) < 2:
            self._ask()
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Look whether there is something to do: labels came in, or a queue ran low."""
        self._changed.set()

    def stop(self) -> None:
        self._ended = True
        self._changed.set()

    def _run(self) -> None:
        self._trying(self._first)
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._ended:
                return
            if not self._trying(self._fill):
                self._changed.wait(RETRY_SECONDS)

    def _trying(self, work: Callable[[], None]) -> bool:
        """Do something that may fail: then the page says so, and people go on with items drawn at random."""
        try:
            work()
            return True
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if not isinstance(error, BadgeError):
                traceback.print_exc(file=sys.stderr)
            return False

    def _first(self) -> None:
        """What takes long and can be done before there are labels: an encoder's pass over the pool, for one."""
        prepared(self.learner.trainer, self.learner.pool)
        if self._pending > self.batch_size // 2:
            self._explain()

    def _fill(self) -> None:
        while not self._ended and len(self.learner.pending) <= self.batch_size // 2 and self.learner.left > 0:
            self._ask()

    def _ask(self) -> None:
        self.busy = True
        try:
            k = min(self.batch_size, self.learner.left)
            self._number(self.learner.ask(k, of=self.of).tolist())
            self._explain()
            self.trouble = None
        except InputError:
            if self.learner.left >= k:  # else the last items were answered meanwhile: there is less to ask for
                raise
        finally:
            self.busy = False

    def _number(self, ids: list[Id]) -> None:
        self.sizes.append(len(ids))
        self.batch_of.update(dict.fromkeys(ids, len(self.sizes)))

    def batch(self, id: Id, pending: list[Id]) -> dict[str, int] | None:
        """The batch that an item belongs to: its number from 1, its size, and how many of it are done."""
        number = self.batch_of.get(id)
        if number is None:
            return None
        still_open = sum(self.batch_of.get(other) == number for other in pending)
        return {"number": number, "size": self.sizes[number - 1], "done": self.sizes[number - 1] - still_open}

    def _explain(self) -> None:
        """Keep why the last batch was picked: its model is at hand now."""
        ids = self.learner.batches[-1].tolist()
        try:
            why = self.learner.explain()
        except InputError:  # drawn uniformly
            self.why.update(dict.fromkeys(ids, RANDOM))
            return
        self.why.update(zip(ids, reasons(why, self.size), strict=True))
        self.guess.update(zip(ids, zip(why.label.tolist(), why.confidence.tolist(), strict=True), strict=True))
