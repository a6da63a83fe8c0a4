"""Batches from the part of a large pool that its trainer prepares first, while the rest is prepared."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from torch import Tensor

from badge.journal import events as e
from badge.journal.events import Id
from badge.learner.ids import Ids, IntArray
from badge.learner.work import Snapshot, Work
from badge.strategies.explain import Explanation


class PartWork:
    """The work of a learner on the rows of its pool at `places` (ascending): the same steps on fewer rows."""

    def __init__(self, whole: Work, places: IntArray, rows: Any) -> None:
        self.places, self._ids = places, whole.ids
        trainer = SimpleNamespace(fit=whole.trainer.fit)  # without `prepare`: the rows are prepared already
        self._work = Work(rows, Ids(len(places)), trainer, whole.predict, whole.seed)
        self._work.use(whole.given)
        self._work.first = whole.first

    def holds(self, state: Snapshot, k: int) -> bool:
        """Whether k candidates are left in the part."""
        return int(np.isin(state.candidates, self.places).sum()) >= k

    def batch(self, state: Snapshot, k: int) -> e.Ask:
        """The next batch. The first one is of typical rows, unless a batch of labels is there already."""
        here = self._narrowed(state)
        if state.round == 0 and len(here.labeled) < k:
            here = replace(here, labeled=here.labeled[:0], targets=here.targets[:0])
        ask = self._work.batch(here, k, True, lambda step: None)
        return replace(ask, ids=self._ids.at(self.places[self._work.ids.positions(ask.ids)]))

    def _narrowed(self, state: Snapshot) -> Snapshot:
        """The snapshot in rows of the part. The test sample and the advice on when to stop wait for the whole pool."""
        labeled, candidates = (np.isin(positions, self.places) for positions in (state.labeled, state.candidates))
        return replace(
            state,
            labeled=self._rows(state.labeled[labeled]),
            targets=state.targets[labeled],
            candidates=self._rows(state.candidates[candidates]),
            test=[],
            stop_revision=state.revision,
        )

    def _rows(self, positions: IntArray) -> IntArray:
        return np.searchsorted(self.places, positions)

    def explained(self, ids: list[Id]) -> Explanation | None:
        """Why the model picked these; None: no model did."""
        said = self._work.last_outputs
        rows = self._rows(self._ids.positions(ids)).tolist()
        return None if said is None else replace(self._work.explained(said, rows), ids=self._ids.array(ids))

    def probabilities(self, positions: IntArray) -> Tensor | None:
        """What the last model says about rows of the part."""
        return self._work.probabilities(self._rows(positions))
