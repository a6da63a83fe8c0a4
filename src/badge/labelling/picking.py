"""The next batch is trained and picked in the background, so that nobody waits for it.

Why an item was picked is said in words that do not give away what the model takes it for.
"""

import math
import sys
import threading
import traceback
from collections.abc import Callable

from badge.errors import BadgeError, InputError, in_short
from badge.journal.events import Id
from badge.learner import ActiveLearner
from badge.strategies.explain import Explanation

#: seconds before a training that failed is tried again
RETRY_SECONDS = 30.0
#: batches that wait for the answers of others, if several people are asked
AHEAD = 4
#: guesses that a person can ask for
GUESSES = 5
TYPICAL = "A typical item: many others are like it. There is no model yet."
RANDOM = "Drawn at random: there is no model yet."
WHILE_PICKING = "Drawn at random, so you need not wait: the next batch is being picked."
TEST = "Part of the test sample: drawn at random and never trained on. It measures how good the model is."
UNKNOWN = "Picked by the model."
BETWEEN = "Between two batches"
#: probability of the best guess above which a model counts as sure
SURE = 0.95


class Picker:
    """A thread that asks for the next batch when the first answer of the last one is in.

    When half of the last batch is answered, a better model picks the next one again, except for items that somebody has.
    `why` says why items were picked, `trouble` what went wrong last.
    """

    def __init__(self, learner: ActiveLearner, batch_size: int, per_item: int) -> None:
        self.learner, self.batch_size, self.per_item = learner, batch_size, per_item
        self.is_out: Callable[[Id], bool] = lambda id: False  # whether somebody has an item
        self.picked: Callable[[], None] = lambda: None  # called after each batch
        self.why: dict[Id, str] = {}
        self.guess: dict[Id, list[tuple[int, float]]] = {}  # class numbers and probabilities, the best first
        self.batch_of: dict[Id, int] = {}  # numbers from 1
        self.batches = 0
        self.trouble: str | None = None
        self.busy = False
        self._next: list[Id] = []  # the batch that was picked early, and may be picked again
        self._labels_then = 0  # labels when it was picked
        self._changed, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="badge-picker", daemon=True)
        for ids in learner.batches:
            self._number([id for id in ids.tolist() if not learner.item(id).free])

    def start(self) -> None:
        """Fill an empty queue now, if that needs no training, and go on in the background."""
        few = len({str(label) for label in self.learner.labels.values()}) < 2
        if few and not self.learner.team.starts_typical and not self._queue():
            self._trying(self._fill)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Look whether there is something to do: labels came in, or the queue ran low."""
        self._changed.set()

    def stop(self) -> None:
        self._ended = True
        self._changed.set()

    def _queue(self) -> list[Id]:
        """Picks that nobody has answered, without the test sample."""
        test, votes = self.learner.team.test, self.learner.votes if self.per_item > 1 else {}
        return [id for id in self.learner.pending.tolist() if id not in test and id not in votes]

    def _run(self) -> None:
        self._trying(self._fill)  # first, because the two would slow each other down
        threading.Thread(target=self._trying, args=(self._prepare,), name="badge-preparing", daemon=True).start()
        while True:
            self._changed.wait()
            self._changed.clear()
            if self._ended:
                return
            if not self._trying(self._fill):
                self._changed.wait(RETRY_SECONDS)

    def _trying(self, work: Callable[[], None]) -> bool:
        """Do what may fail, `sys.exit` included: the page says so, and people go on with items drawn at random."""
        try:
            work()
            return True
        except BaseException as error:
            said = error.plain if isinstance(error, BadgeError) else f"{type(error).__name__}: {error}"
            self.trouble = in_short(said, 300)
            if not isinstance(error, BadgeError):
                traceback.print_exc(file=sys.stderr)
            return False

    def _prepare(self) -> None:
        """Prepare the whole pool. Until then, the batches of a large pool come from a part of it."""
        self.learner.team.prepare()
        if not self.why and len(self._queue()) >= self.batch_size:  # the page was started again
            self._explain()
        self.wake()

    def _fill(self) -> None:
        while not self._ended and self.learner.left > 0 and len(self._queue()) < self.batch_size:
            if self.per_item > 1 and len(self.learner.pending) >= AHEAD * self.batch_size:
                break  # one person alone goes no further ahead of the others
            self._labels_then = len(self.learner.labels)
            self._next = self._ask()
            if not self.guess and self.learner.team.starts_typical:  # labels that came meanwhile make these no older
                self._labels_then = len(self.learner.labels)
        if self._next and len(self.learner.labels) - self._labels_then >= self.batch_size // 2:
            self._renew()

    def _renew(self) -> None:
        """Pick the next batch again: since it was picked, half a batch of labels came in."""
        pending = set(self._queue())
        free = [id for id in self._next if id in pending and not self.is_out(id)]
        self._next, self._labels_then = [], len(self.learner.labels)
        if free:
            self.learner.release(free)
            for id in free:
                del self.batch_of[id]
            self._ask(len(free), more=True)

    def _ask(self, k: int | None = None, more: bool = False) -> list[Id]:
        self.busy = True
        wanted = min(k or self.batch_size, self.learner.left)
        try:
            ids = self.learner.team.ask(wanted, people=self.per_item)
            self._explain()
            self._number(ids, more)
            self.trouble = None
            self.picked()
            return ids
        except InputError:
            if self.learner.left >= wanted:  # else the last items were answered meanwhile: there is less to ask for
                raise
            return []
        finally:
            self.busy = False

    def _number(self, ids: list[Id], more: bool = False) -> None:
        """Give ids the number of a new batch, or with `more` the number of the last."""
        if ids and not (more and self.batches):
            self.batches += 1
        self.batch_of.update(dict.fromkeys(ids, self.batches))

    def batch(self, id: Id, pending: list[Id]) -> dict[str, int] | None:
        """The batch of an item: its number from 1, its size, and how many of it are done."""
        number = self.batch_of.get(id)
        if number is None:
            return None
        size = list(self.batch_of.values()).count(number)
        still_open = sum(self.batch_of.get(other) == number for other in pending)
        return {"number": number, "size": size, "done": size - still_open}

    def _explain(self) -> None:
        """Keep why the last batch was picked, and the model's guesses: its model is at hand now."""
        ids = self.learner.batches[-1].tolist()
        try:
            why = self.learner.explain()
        except InputError:  # no model picked them
            self.why.update(dict.fromkeys(ids, TYPICAL if self.learner.team.starts_typical else RANDOM))
            return
        self.why.update(zip(ids, reasons(why, int(why.coverage.sum())), strict=True))
        guesses = self.learner.team.guesses(ids, GUESSES)
        self.guess.update(zip(ids, guesses or [], strict=False))


def reasons(why: Explanation, pool: int) -> list[str]:
    """One text per pick: how unsure the model is, how new the item is in its batch, how many it stands for.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> print(reasons(badge.explain(out, [0, 2]), 3)[0])
    The model is torn: its best guess gets 50 %. It is the first pick of its batch. 2 of 3 items are nearest to it.
    """
    spread = sorted(distance for distance in why.nearest.tolist() if math.isfinite(distance))
    middle = spread[len(spread) // 2] if spread else 0.0
    texts = []
    for confidence, distance, covered in zip(why.confidence, why.nearest, why.coverage, strict=True):
        text = f"{_unsure(float(confidence))} {_new(float(distance), middle)}"
        if covered > 1 and confidence <= SURE:  # items that it is sure of lie together, near any pick there
            text += f" {int(covered):,} of {pool:,} items are nearest to it."
        texts.append(text)
    return texts


def _unsure(confidence: float) -> str:
    share = f"its best guess gets {confidence:.0%}".replace("%", " %")
    if confidence > SURE:
        return f"The model seems sure ({share}). If it is wrong here, it learns a lot."
    how = "is torn" if confidence <= 0.5 else "is unsure" if confidence <= 0.8 else "leans one way"
    return f"The model {how}: {share}."


def _new(distance: float, middle: float) -> str:
    if not math.isfinite(distance):
        return "It is the first pick of its batch."
    if distance == 0:
        return "It teaches the same as an earlier pick: little else was left."
    return "It is unlike the earlier picks of its batch." if distance >= middle else "It is close to an earlier pick."
