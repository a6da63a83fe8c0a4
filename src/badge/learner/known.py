"""What a learner knows: all that can be read from its journal, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.journal.events import Id, Label
from badge.learner.advice import Advice, advice
from badge.learner.agreement import Agreement, agreement
from badge.learner.book import Book
from badge.learner.history import History, Story

__all__ = ["Item", "Known"]


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


class Known:
    """The reading half of a learner; each call is one consistent look."""

    _book: Book
    _story: Story | None = None  #: as far as `history` was read

    @property
    def labels(self) -> dict[Id, Any]:
        """The labels so far: {id: label}."""
        with self._book.lock():
            ledger = self._book.ledger()
            return {id: ledger.classes.decode(code) for id, code in ledger.labels.items()}

    @property
    def labeled(self) -> dict[Id, Any]:
        """The same as `labels`."""
        return self.labels

    @property
    def pending(self) -> NDArray[Any]:
        """Ids that were asked and have no label yet, in the order asked."""
        with self._book.lock():
            return self._book.ids.array(self._book.ledger().pending)

    @property
    def skipped(self) -> dict[Id, str | None]:
        """Ids that nobody can label: {id: reason}."""
        with self._book.lock():
            return dict(self._book.ledger().skipped)

    @property
    def candidates(self) -> NDArray[Any]:
        """Ids that can still be asked, ascending."""
        with self._book.lock():
            return self._book.ids.array(self._book.ids.at(self._book.ledger().candidates()))

    @property
    def left(self) -> int:
        """Number of ids that can still be asked."""
        with self._book.lock():
            ledger = self._book.ledger()
            return self._book.ids.length - len(ledger.labels) - len(ledger.pending) - len(ledger.skipped)

    def item(self, id: Any) -> Item:
        """What is known about one id."""
        with self._book.lock():
            ledger = self._book.ledger()
            (plain,) = self._book.ids.plain([id])
            decode, code = ledger.classes.decode, ledger.labels.get(plain)
            votes = {by: decode(vote) for by, vote in ledger.votes.get(plain, {}).items()}
            label = None if code is None else decode(code)
            return Item(label, votes, plain in ledger.pending, plain in ledger.skipped)

    @property
    def batches(self) -> list[NDArray[Any]]:
        """Every batch asked so far, in order."""
        with self._book.lock():
            return [self._book.ids.array(ask.ids) for _, ask in self._book.ledger().asks]

    @property
    def classes(self) -> list[Label]:
        """The labels that can be told."""
        with self._book.lock():
            return list(self._book.ledger().classes.names)

    @property
    def votes(self) -> dict[Id, dict[str, Any]]:
        """Of ids that were asked of several people, who gave which label."""
        with self._book.lock():
            ledger = self._book.ledger()
            decode = ledger.classes.decode
            return {id: {by: decode(code) for by, code in given.items()} for id, given in ledger.votes.items()}

    @property
    def history(self) -> History:
        """Every label given, in order: when, by whom, what the model had predicted before, prequential accuracy."""
        with self._book.lock():
            self._book.ledger()
            story, self._story = self._story or Story(), None  # read twice where an interrupt comes in between
            events = self._book.journal.events
            rows = story.read(events[story.events :])
            self._story = story
        return rows

    def agreement(self) -> Agreement:
        """Of what several people have labelled: agreement per example, Cohen's κ per pair of people."""
        with self._book.lock():
            ledger = self._book.ledger()
            return agreement(ledger.votes, ledger.pending)

    def advice(self) -> Advice:
        """Whether more labels are worth it: do predictions still change, and how often were they right?"""
        with self._book.lock():
            ledger = self._book.ledger()
            stability, labels = list(ledger.stability), len(ledger.labels)
        return advice(stability, self.history, labels)

    @property
    def uniform_because(self) -> str | None:
        """Why the last batch was drawn uniformly, where no model could be trained on the labels; else None."""
        with self._book.lock():
            asks = self._book.ledger().asks
            return asks[-1][1].uniform if asks else None

    def positions(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Where in the pool the examples of these ids are."""
        return self._book.ids.positions(self._book.ids.plain(ids))
