"""Several people at one learner: what the labelling page writes and reads beyond ask and tell.

It also asks while an encoder is still going over a large pool: `PartWork` picks from the part that is ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from badge.core.rng import derive
from badge.errors import InputError
from badge.journal import Event
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner import calls
from badge.learner.calls import Checked
from badge.learner.ids import Ids, IntArray
from badge.learner.ledger import Ledger
from badge.learner.work import Snapshot, Work
from badge.strategies.explain import Explanation

if TYPE_CHECKING:
    from badge.learner.learner import ActiveLearner


class PartWork:
    """The work of a learner on the rows at `places` (ascending), the part of a large pool that its trainer prepares first.

    The same steps on fewer rows; the test sample and the advice on when to stop wait for the whole pool.
    """

    def __init__(self, whole: Work, places: IntArray, rows: Any) -> None:
        self.places, self._ids = places, whole.ids
        trainer = SimpleNamespace(fit=whole.trainer.fit)  # without `prepare`: the rows are prepared already
        self._work = Work(rows, Ids(len(places)), trainer, whole.predict, whole.seed)
        self._work.use(whole.given)
        self._work.first = whole.first
        self._state: Snapshot | None = None  # of the last batch

    def holds(self, state: Snapshot, k: int) -> bool:
        """Whether k candidates are left in the part."""
        return int(np.isin(state.candidates, self.places).sum()) >= k

    def batch(self, state: Snapshot, k: int) -> e.Ask:
        """The next batch. The first one is of typical rows, unless a batch of labels is there already."""
        here, labeled = copy(state), np.isin(state.labeled, self.places)
        if state.round == 0 and labeled.sum() < k:
            labeled[:] = False
        here.labeled, here.targets = self._rows(state.labeled[labeled]), state.targets[labeled]
        here.candidates = self._rows(state.candidates[np.isin(state.candidates, self.places)])
        here.test, here.stop_revision = [], state.revision
        self._state = here
        ask = self._work.batch(here, k, True, lambda step: None)
        return replace(ask, ids=self._ids.at(self.places[self._work.ids.positions(ask.ids)]))

    def _rows(self, positions: IntArray) -> IntArray:
        return np.searchsorted(self.places, positions)

    def explained(self, ids: list[Id]) -> Explanation | None:
        """Why the model picked these; None: no model did."""
        said = self._work.last_outputs
        rows = self._rows(self._ids.positions(ids)).tolist()
        if said is None or self._state is None:
            return None
        return replace(self._work.explained(said, rows, self._state), ids=self._ids.array(ids))

    def probabilities(self, positions: IntArray) -> Tensor | None:
        """What the last model says about rows of the part."""
        return self._work.probabilities(self._rows(positions))


@dataclass(frozen=True)
class TestPoint:
    """One model on the labelled part of the test sample."""

    __test__ = False  #: not a test of pytest

    labels: int  #: that the model was trained on
    right: int
    known: int  #: examples with a label


class Team:
    """`learner.team`. A `request` is the number that a client gave its call: `requests` knows it after a restart."""

    def __init__(self, learner: ActiveLearner) -> None:
        self._learner, self._book, self._write = learner, learner._book, learner._write

    # -- picking -------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Do the slow work that needs no labels, such as an encoder's pass; over a part of a large pool first."""
        self._learner._work.prepare_part(self._book.look(Snapshot))
        self._learner._work.prepare()

    def ask(self, k: int, people: int = 1) -> list[Id]:
        """As `learner.ask`. While another thread prepares a large pool, train on the part that is ready and pick from it."""
        learner = self._learner
        part = learner._part = self._part_now(k)
        if part is None:
            return list(learner.ask(k, people).tolist())
        ids: list[Id] = learner._asked(k, people, lambda now: part.batch(now, k)).tolist()
        number, ask = self._book.look(lambda now: now.asks[-1])
        why = part.explained(ids) if ids and ask.select_seconds is not None else None
        if why is not None:
            learner._explained = (number, why)
        return ids

    def _part_now(self, k: int) -> PartWork | None:
        """The part to pick from; None: the whole pool is ready, or has no part, or none with k candidates."""
        work, part = self._learner._work, self._learner._part
        if work.is_prepared or work.memory is not None:
            return None
        state = self._book.look(Snapshot)
        if part is None:
            ready = work.prepare_part(state)
            part = None if ready is None else PartWork(work, *ready)
        return part if part is not None and part.holds(state, k) else None

    # -- writing -------------------------------------------------------------------------------------------------

    def tell(self, ids: Sequence[Id], labels: Sequence[Any], by: str, request: str, seconds: float | None) -> None:
        """Labels of one person, asked or not; those that are known already are refused."""

        def checked(ledger: Ledger) -> Checked:
            told = calls.tell(ledger, ids, labels, by, unasked=any(id not in ledger.pending for id in ids))
            if told is None:
                raise InputError(f"id {ids[0]!r} has this label already")
            return told

        self._write(checked, request=request, seconds=seconds)

    def tell_existing(self, labels: Mapping[Id, Any], source: str) -> int:
        """Take labels that a file holds, of ids that have none; the number of new ones."""

        def checked(ledger: Ledger) -> Checked | None:
            new = {id: label for id, label in labels.items() if id not in ledger.labels and id not in ledger.votes}
            return calls.tell(ledger, list(new), list(new.values()), None, unasked=True)

        event = self._write(checked, source=source)
        return 0 if event is None else len(event["ids"])

    def relabel(self, id: Id, label: Any, by: str, request: str | None = None) -> None:
        """Correct a label, or what one person said."""
        self._write(lambda ledger: calls.relabel(ledger, id, label, by), request=request)

    def decide(self, ids: Sequence[Id], labels: Sequence[Any], by: str, request: str | None = None) -> None:
        """Set labels in one event. They replace what people said, and nobody need have been asked."""
        if not ids:
            raise InputError("no ids to decide: name at least one")
        self._write(lambda ledger: calls.decide(ledger, ids, labels, by), request=request)

    def skip(self, ids: Sequence[Id], reason: str | None, by: str, request: str, labelled: bool = False) -> None:
        """Skip ids; with `labelled`, those that have a label too, which is taken back."""
        self._write(lambda ledger: calls.skip(ledger, ids, reason, labelled), by=by, request=request)

    def unskip(self, ids: Sequence[Id], request: str | None = None) -> None:
        self._write(lambda ledger: calls.unskip(ledger, ids), request=request)

    def remark(self, id: Id, by: str, text: str | None, flag: bool | None, request: str) -> None:
        """Keep a comment on an example, or flag it."""
        said: dict[str, Any] = {"by": by, "text": text, "flag": flag, "request": request}
        self._write(lambda ledger: (e.Remark(id=ledger.ids.plain([id])[0], **said), ()))

    def set_aside(self, size: int, people: int = 1) -> None:
        """Draw a test sample of `size` ids that nobody was asked about, or more for one that is smaller."""

        def checked(ledger: Ledger) -> Checked | None:
            wanted, free = size - len(ledger.test), ledger.candidates()
            if wanted > len(free):
                raise InputError(f"a test sample of {size:,} needs {wanted:,} more items, and {len(free):,} are free")
            if wanted <= 0:
                return None
            drawn = derive(self._learner.seed, "test", len(ledger.test)).choice(free, size=wanted, replace=False)
            return e.SetAside(ids=ledger.ids.at(sorted(drawn.tolist())), people=people), ()

        self._write(checked)

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def multilabel(self) -> bool:
        return self._book.look(lambda now: now.classes.multilabel)

    @property
    def starts_typical(self) -> bool:
        """Whether the first batch is picked from the pool's vectors, which takes time, and not drawn uniformly."""
        return self._learner._work.first is not None

    @property
    def test(self) -> dict[Id, None]:
        """The test sample."""
        return self._book.look(lambda now: dict(now.test))

    def tested(self) -> int:
        """Number of examples of the test sample that have a label."""
        return self._book.look(lambda now: sum(id in now.labels for id in now.test))

    def curve(self) -> list[TestPoint]:
        """Accuracy on the test sample from model to model, by the labels that the sample has now."""

        def points(now: Ledger) -> list[TestPoint]:
            truth = [now.said(now.labels.get(id)) for id in now.test]
            found = []
            for labels, said in now.tested:
                pairs = [(a, b) for a, b in zip(said, truth, strict=False) if b is not None]
                found.append(TestPoint(labels, sum(a == b for a, b in pairs), len(pairs)))
            return found

        return self._book.look(points)

    def ties(self) -> list[Id]:
        """Pending ids that everybody who was asked has answered, without a majority."""
        return self._book.look(lambda now: [i for i, n in now.pending.items() if len(now.votes.get(i, {})) >= n > 1])

    def decided(self) -> set[Id]:
        """Ids that one person decided; votes do not count for them."""
        return self._book.look(lambda now: set(now.decided))

    def remarks(self, id: Id) -> tuple[list[tuple[str, str]], bool]:
        """Comments on an example, and whether it is flagged."""
        return self._book.look(lambda now: (list(now.remarks.get(id, ())), id in now.flagged))

    @property
    def flagged(self) -> set[Id]:
        return self._book.look(lambda now: set(now.flagged))

    def answered_by(self, name: str) -> Iterator[Id]:
        """What a person labelled or skipped, the newest first."""
        seen: set[Id] = set()
        for record in reversed(self._records()):
            if isinstance(record, e.Tell | e.Skip | e.Relabel) and record.by == name:
                id = record.id if isinstance(record, e.Relabel) else record.ids[0]
                if id not in seen:
                    seen.add(id)
                    yield id

    def requests(self, most: int) -> dict[str, Event]:
        """The last events that came with a request's number: {number: {"id", "label" if it has one}}."""
        numbered = (record for record in reversed(self._records()) if getattr(record, "request", None) is not None)
        return {record.request: _about(record) for record in islice(numbered, most)}  # type: ignore[attr-defined]

    def times(self) -> list[e.Tell]:
        """Every label that a person gave, with its time."""
        return [record for record in self._records() if isinstance(record, e.Tell) and record.by is not None]

    def seconds(self) -> dict[Id, float]:
        """Time that the last person took for an example."""
        return {tell.ids[0]: tell.seconds for tell in self.times() if tell.seconds is not None}

    def guesses(self, ids: Sequence[Id], most: int) -> list[list[tuple[int, float]]] | None:
        """The likeliest classes of examples by the last model, as numbers and probabilities; None: there is no model."""
        rows = (self._learner._part or self._learner._work).probabilities(self._learner.positions(ids))
        if rows is None:
            return None
        best = rows.float().topk(min(most, rows.shape[1]), dim=1)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [list(zip(row, shares, strict=True)) for row, shares in pairs]

    def _records(self) -> Sequence[e.Record]:
        return self._book.look(lambda now: self._learner._journal.records)


def _about(record: Any) -> Event:
    """Which example a person's answer was about, and the label, if it gave one."""
    ids = [record.id] if hasattr(record, "id") else record.ids
    labels = [record.label] if hasattr(record, "label") else getattr(record, "labels", [])
    return {"id": str(ids[0]), **({"label": labels[0]} if labels else {})}
