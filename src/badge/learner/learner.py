"""Ask and tell: Algorithm 1 of the paper as a loop that a team can stop and take up again at any moment."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np

from badge import strategies
from badge.core.numbers import whole
from badge.core.rng import derive, fresh_seed, generator
from badge.errors import InputError, JournalError
from badge.journal import Event, Journal
from badge.learner.classes import Classes
from badge.learner.ledger import Ledger, changes, check_header
from badge.models import predict
from badge.models.digest import fingerprint
from badge.models.pools import length, take
from badge.outputs import Outputs
from badge.strategies import Stateful
from badge.strategies.explain import Explanation, explain
from badge.strategies.select import choose
from badge.training.fit import Trains, align, fit_model, is_estimator, prepared

__all__ = ["ActiveLearner"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]


class ActiveLearner:
    """Asks for the labels that teach a model most, and takes them as they come.

    `pool` is a tensor, an array, a table, a list or a map-style Dataset; ids are positions in it. `trainer` is a
    `badge.Trainer`, a scikit-learn estimator or any object with `fit(examples, labels, rng) -> model`; `labels` are
    whole numbers from 0. `classes` is their number or a list of names, which are then the labels to tell. `initial`
    holds labels that exist already. `predict(model, pool) -> Outputs` stands in for `badge.predict` where that needs
    arguments, e.g. `functools.partial(badge.predict, tokenizer=tokenizer)`.

    With a `journal`, everything asked and told is on disk before `ask` and `tell` return, and a learner that opens the
    same journal goes on with the same picks: they depend on the seed, the pool, the labels told and the number of asks
    alone. Without one, all is in memory.

    >>> import badge, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> truth = (x[:, 0] > 0).astype(int)
    >>> learner = badge.ActiveLearner(x, LogisticRegression(), classes=2, seed=0)
    >>> for k in (10, 5, 5):
    ...     ids = learner.ask(k)
    ...     learner.tell(ids, truth[ids])
    >>> len(learner.labeled), len(learner.pending), bool(learner.model.score(x, truth) > 0.9)
    (20, 0, True)
    """

    def __init__(
        self,
        pool: Any,
        trainer: Trains | Any,
        *,
        classes: int | Sequence[int | str],
        strategy: str | Any = "badge",
        seed: int | None = 0,
        initial: Mapping[int, Any] | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
        predict: Callable[[Any, Any], Outputs] = predict,
    ) -> None:
        if not hasattr(trainer, "fit"):
            raise InputError(f"a trainer has fit(examples, labels, rng) -> model; {type(trainer).__name__} has no fit")
        if is_estimator(trainer) and not hasattr(trainer, "predict_proba"):
            raise InputError(f"{type(trainer).__name__} gives no probabilities (predict_proba): use one that does")
        generator(seed)  # refuses what is not a seed
        self.pool, self.trainer, self.predict = pool, trainer, predict
        self.strategy = strategies.get(strategy)
        self._memory = self.strategy if isinstance(self.strategy, Stateful) else None
        self._blank = self._memory.state() if self._memory is not None else None
        self._ledger = Ledger(length(pool), Classes(classes))
        self._owns_journal = not isinstance(journal, Journal)  # else it may hold events of an experiment too
        self._journal = Journal(journal) if isinstance(journal, str | os.PathLike) else journal
        self._path = self._journal.path if self._journal else None
        self._trained: tuple[int, Any] | None = None  # (revision of the labels, the model of them)
        self._predicted: tuple[int, Outputs] | None = None
        self._revision = 0
        #: what the last training, prediction and selection took
        self.seconds: dict[str, float] = {"train": 0.0, "predict": 0.0, "select": 0.0}
        try:
            self.seed = self._open(strategy, seed, initial)
        except BaseException:
            self.close()
            raise

    def _open(self, strategy: Any, seed: int | None, initial: Mapping[int, Any] | None) -> int:
        """Write the header of a new journal, or check that of an old one and replay it; the seed in force."""
        events = self._journal.events if self._journal else []
        wanted: Event = {
            "event": "learner",
            "format": 1,
            "pool": fingerprint(self.pool),
            "classes": self._ledger.classes.header,
            "strategy": describe(strategy),
            "seed": seed,
            "initial": None if initial is None else self._ledger.initial(initial),
        }
        headers = [event for event in events if event.get("event") == "learner"]
        if events and not headers and self._owns_journal:
            raise JournalError(f"{self._path} holds something else than a learner's journal: use another file")
        if headers:
            check_header(headers[0], wanted, self._path)
            self._ledger.replay(events, self._path)
            timed = [e["select_seconds"] for e in events if e.get("event") == "ask" and "select_seconds" in e]
            self.seconds["select"] = timed[-1] if timed else 0.0
            return int(headers[0]["seed"])
        header = {
            **wanted,
            "seed": fresh_seed() if seed is None else int(seed),
            "initial": wanted["initial"] or {"ids": [], "labels": []},
        }
        if self._journal:
            self._journal.append(header)
        self._ledger.apply(header)
        return int(header["seed"])

    # -- ask and tell --------------------------------------------------------------------------------------------

    def ask(self, k: int) -> IntArray:
        """The `k` ids to label next, in pick order, never one that is labelled or pending.

        While the labels hold fewer than two classes there is nothing to learn from them: the batch is drawn uniformly,
        which gives the paper's M initial examples.
        """
        candidates = self._ledger.candidates()
        k = whole(k, "k")
        if k > len(candidates):
            raise InputError(
                f"asked for {k} of {len(candidates)} candidates ({len(self._ledger.labels)} of {self._ledger.length} "
                f"are labelled, {len(self._ledger.pending)} pending)"
            )
        round = len(self._ledger.batches)
        rng = derive(self.seed, "ask", round)
        event: Event = {"event": "ask", "round": round}
        if len(set(self._ledger.labels.values())) < 2:
            ids = rng.choice(candidates, size=k, replace=False)
            event["ids"] = ids.tolist()
        else:
            ids = self._choose(candidates, k, rng)
            event |= {"ids": ids.tolist(), "select_seconds": self.seconds["select"]}
            if self._memory is not None:
                event["memory"] = changes(self._ledger.memory, self._memory.state())
        self._write(event)
        return ids

    def tell(self, ids: Iterable[Any], labels: Iterable[Any]) -> None:
        """Take labels of pending ids: all of a batch, or some of it. Told again with the same label is no matter."""
        self._write(self._ledger.tell(ids, labels))

    def relabel(self, id: int, label: Any) -> None:
        """Correct the label of one id."""
        self._write(self._ledger.relabel(id, label))

    def _write(self, event: Event | None) -> None:
        """Journal first, state second: what the state holds is on disk."""
        if event is None:
            return
        if self._journal:
            self._journal.append(event)
        self._ledger.apply(event)
        self._revision += event["event"] != "ask"

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def pending(self) -> IntArray:
        """Ids that were asked and not told yet, in the order asked."""
        return np.array(list(self._ledger.pending), dtype=np.int64)

    @property
    def labeled(self) -> dict[int, int | str]:
        """The labels so far: {id: label}."""
        return {id: self._ledger.classes.decode(code) for id, code in self._ledger.labels.items()}

    @property
    def candidates(self) -> IntArray:
        """Ids that are neither labelled nor pending, ascending."""
        return self._ledger.candidates()

    @property
    def batches(self) -> list[IntArray]:
        """Every batch asked so far, in order."""
        return list(self._ledger.batches)

    # -- the model and what it says --------------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The model of the labels so far; trained when it is needed, from scratch, and kept until the labels change."""
        if self._trained is None or self._trained[0] != self._revision:
            if not self._ledger.labels:
                raise InputError("there is no model before the first label: ask, and tell labels")
            ids, codes = self._ledger.labeled()
            self._trained = self._predicted = None  # frees the old one before the new one is made
            started = time.perf_counter()
            model = fit_model(self.trainer, take(self._examples, ids), codes, derive(self.seed, "train", self.round))
            self.seconds["train"] = time.perf_counter() - started
            self._trained = (self._revision, model)
        return self._trained[1]

    @cached_property
    def _examples(self) -> Any:
        """The pool as the trainer sees it; not before it is needed, since an encoder may have to go over it."""
        return prepared(self.trainer, self.pool)

    @property
    def round(self) -> int:
        """Number of asks before the labels last changed; the model's randomness derives from (seed, round)."""
        return self._ledger.label_round

    @property
    def outputs(self) -> Outputs:
        """What the model says about the whole pool; row numbers are ids."""
        model = self.model
        if self._predicted is None or self._predicted[0] != self._revision:
            started = time.perf_counter()
            outputs = align(self.predict(model, self._examples), model, len(self._ledger.classes))
            if len(outputs) != self._ledger.length:
                raise InputError(f"predict gave {len(outputs)} rows for a pool of {self._ledger.length}")
            self.seconds["predict"] = time.perf_counter() - started
            self._predicted = (self._revision, outputs)
        return self._predicted[1]

    def explain(self, ids: Sequence[int] | IntArray | None = None) -> Explanation:
        """Why these ids (None: the last batch): see `badge.explain`; from the model as it is now."""
        if ids is None and not self._ledger.batches:
            raise InputError("nothing was asked yet, so there is no batch to explain")
        return explain(self.outputs, self._ledger.batches[-1] if ids is None else ids)

    def _choose(self, candidates: IntArray, k: int, rng: np.random.Generator) -> IntArray:
        memory, conditioned = self._memory, strategies.needs_labeled(self.strategy) or self._memory is not None
        if not conditioned and strategies.reads(self.strategy) == "nothing":  # then no model is needed either
            outputs, labeled = None, None
        else:
            outputs, (labeled_ids, codes) = self.outputs, self._ledger.labeled()
            labeled = outputs[labeled_ids] if conditioned else None
        started = time.perf_counter()
        if memory is not None and labeled is not None:
            memory.restore(self._ledger.memory or self._blank or {})  # a call that failed half-way must leave no trace
            if self.round == len(self._ledger.batches):
                memory.observe(labeled_ids, _predicted_classes(labeled) == codes)
        ids = choose(self.strategy, self._ledger.length if outputs is None else outputs, k, rng, candidates, labeled)
        if memory is not None:
            memory.picked(ids)
        self.seconds["select"] = time.perf_counter() - started
        return ids

    # -- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release the journal; the learner cannot be asked or told after it."""
        if self._journal:
            self._journal.close()

    def __enter__(self) -> ActiveLearner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        n = self._ledger
        return f"ActiveLearner({n.length:,} examples: {len(n.labels):,} labelled, {len(n.pending):,} pending)"


def describe(strategy: Any) -> Any:
    """A strategy for the header of a journal: its name, or its class and parameters."""
    if isinstance(strategy, str):
        return strategy
    if hasattr(strategy, "__qualname__"):
        return f"{strategy.__module__}.{strategy.__qualname__}"
    kind = type(strategy)
    names = [name for name in inspect.signature(kind).parameters if hasattr(strategy, name)]
    parameters = {name: repr(getattr(strategy, name)) for name in names}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "parameters": parameters}


def _predicted_classes(outputs: Outputs) -> IntArray:
    p = outputs.probabilities
    codes: IntArray = ((p[:, 0] > 0.5).long() if p.shape[1] == 1 else p.argmax(dim=1)).numpy(force=True)
    return codes
