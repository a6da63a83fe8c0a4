"""The slow part of an ask, on a snapshot of the labels: train a model, predict the pool, pick a batch.

`Work` sees a `Snapshot`, never the ledger, so that labels can be told while it runs. What a learner is given for this work
is checked by `check_arguments` and `first_batch`, before anything is written.
"""

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from badge import strategies
from badge.core.catalog import check_first
from badge.core.log import log
from badge.core.rng import derive
from badge.core.rows import Listed
from badge.core.writing import ThreadLock
from badge.errors import InputError, ModelError, in_short
from badge.journal import Journal
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner.advice import compare, stop_set
from badge.learner.classes import Code, one_class
from badge.learner.ids import Ids, IntArray
from badge.learner.ledger import Ledger
from badge.learner.memory import changes, plain_state, restore
from badge.learner.opening import describe
from badge.models import predict
from badge.models.estimator import lacks_embedding
from badge.models.pools import take
from badge.outputs import Outputs
from badge.strategies import Stateful, Strategy
from badge.strategies.choose import choose
from badge.strategies.explain import Explanation, explain, gains
from badge.strategies.request import Request
from badge.training.fit import align, fit_model, is_estimator, lacks_labels, prepared

#: a strategy for the time without a model, and its embeddings (None: from a frozen encoder)
Cold = tuple[Strategy, Outputs | None]


class Snapshot:
    """All that a model and a batch depend on, besides pool, seed and strategy."""

    def __init__(self, ledger: Ledger) -> None:
        self.number = ledger.number  # of the last event
        self.round, self.label_round = ledger.round, ledger.label_round  # of the batch; of the model
        self.labeled, self.targets = ledger.labeled()  # positions, and what a trainer is given
        self.candidates = ledger.candidates()
        self.memory, self.strategy = ledger.memory, ledger.strategy
        self.classes, self.class_count = ledger.classes, len(ledger.classes)  # some may be added while this trains
        self.revision, self.stop_revision = ledger.revision, ledger.stop_revision
        self.stop, self.test = dict(ledger.stop), list(ledger.test)
        self.taught = self.revision, self.class_count  # identifies the model of this state
        #: whether a batch was picked by a model before
        self.trained = any(ask.select_seconds is not None for _, ask in ledger.asks)


class Work:
    """Models and outputs of snapshots, the last of each kept; one computation at a time (`busy`)."""

    def __init__(self, pool: Any, ids: Ids, trainer: Any, predict: Callable[..., Outputs], seed: int) -> None:
        self.pool, self.ids, self.trainer, self.predict, self.seed = pool, ids, trainer, predict, seed
        self.busy, self._preparing, self._preparing_part = ThreadLock(), ThreadLock(), ThreadLock()
        #: what the last training, prediction and selection took
        self.seconds: dict[str, float] = {"train": 0.0, "predict": 0.0, "select": 0.0}
        self._trained: tuple[object, Any] | None = None  # (which labels, the model of them)
        self._predicted: tuple[object, Outputs] | None = None
        self._seen: tuple[Any, Any] | None = None  # (the trainer, the pool as it sees it)
        self.first: Cold | None = None  # what picks before there is a model, and from what

    def use(self, strategy: Any) -> None:
        self.given = strategy
        self.strategy = strategies.get(strategy)
        self.memory = self.strategy if isinstance(self.strategy, Stateful) else None
        self._blank = {} if self.memory is None else plain_state(self.memory)

    def prepare_part(self, state: Snapshot) -> tuple[IntArray, Any] | None:
        """The part of a large pool that its trainer prepares first, with the labelled examples: positions and rows.

        None: the trainer has no `part`, or prepares the whole pool at once.
        """
        part = getattr(self.trainer, "part", None)
        with self._preparing_part():
            return part(self.pool, state.labeled) if callable(part) else None

    def prepare(self) -> Any:
        """The pool as the trainer sees it, made when it is first needed: an encoder may have to go over it."""
        with self._preparing():
            if not self.is_prepared:
                self._seen = (self.trainer, prepared(self.trainer, self.pool))
            assert self._seen is not None
            return self._seen[1]

    @property
    def is_prepared(self) -> bool:
        return self._seen is not None and self._seen[0] is self.trainer

    def model(self, state: Snapshot, keep: bool = True) -> Any:
        """The model of a snapshot, from scratch; the same one as long as the labels are the same."""
        if self._trained is not None and self._trained[0] == state.taught:
            return self._trained[1]
        if not len(state.labeled):
            raise InputError("there is no model before the first label: ask, and tell labels")
        if keep:
            self._trained = self._predicted = None  # frees the old one before the new one is made
        started = time.perf_counter()
        rng = derive(self.seed, "train", state.label_round)
        model = fit_model(self.trainer, take(self.prepare(), state.labeled), state.targets, rng)
        self.seconds["train"] = time.perf_counter() - started
        log.info("trained on %d labels in %.2f s", len(state.labeled), self.seconds["train"])
        if keep:
            self._trained = (state.taught, model)
        return model

    def explained(self, outputs: Outputs, ids: list[Id], state: Snapshot) -> Explanation:
        """Why these ids were picked, with the caller's own ids; gains by the strategy and the labels of the snapshot."""
        places = self.ids.positions(ids)
        why = replace(explain(outputs, places), ids=self.ids.array(ids))
        strategy = self._strategy_of(state)
        if strategy is None:
            return why
        left = state.candidates if np.isin(places, state.candidates).all() else np.union1d(state.candidates, places)
        rng = derive(self.seed, "ask", state.round)
        request = Request(strategy, len(ids), rng, Listed(left), outputs[state.labeled])
        return replace(why, gain=gains(request, outputs, places))

    def _strategy_of(self, state: Snapshot) -> Strategy | None:
        """The strategy in use at a snapshot; None: an object that has been replaced since."""
        if describe(self.given) == state.strategy:
            return self.strategy
        return strategies.get(str(state.strategy)) if state.strategy in strategies.NAMES else None

    @property
    def last_outputs(self) -> Outputs | None:
        """What the last model says about the whole pool, if one is kept."""
        return None if self._predicted is None else self._predicted[1]

    def probabilities(self, positions: IntArray) -> torch.Tensor | None:
        """What the last model says about some positions, if it is kept."""
        said = self.last_outputs
        return None if said is None else said.probabilities[:].index_select(0, torch.from_numpy(positions))

    def outputs(self, state: Snapshot, keep: bool = True) -> Outputs:
        """What the model of a snapshot says about the whole pool; row numbers are positions."""
        if self._predicted is not None and self._predicted[0] == state.taught:
            return self._predicted[1]
        model = self.model(state, keep)
        started = time.perf_counter()
        outputs = self._predicted_by(model, state, self.prepare())
        if len(outputs) != self.ids.length:
            raise InputError(f"predict gave {len(outputs)} rows for a pool of {self.ids.length}")
        self.seconds["predict"] = time.perf_counter() - started
        log.info("predicted %d examples in %.2f s", len(outputs), self.seconds["predict"])
        if keep:
            self._predicted = (state.taught, outputs)
        return outputs

    def _predicted_by(self, model: Any, state: Snapshot, examples: Any) -> Outputs:
        # a network's logits do not show whether an example has several labels
        several = {"multilabel": True} if state.classes.multilabel and _is_ours(self.predict) else {}
        said = self.predict(model, examples, **several)
        return align(said, model, state.class_count, state.classes.multilabel)

    def said(self, state: Snapshot, examples: Any) -> list[Code]:
        """The predicted classes of examples that are not in the pool."""
        outputs = self._predicted_by(self.model(state), state, prepared(self.trainer, examples))
        return state.classes.predicted(outputs.probabilities[:].numpy(force=True))

    def batch(self, state: Snapshot, k: int, looks: bool, advance: Callable[[float], None]) -> e.Ask:
        """The next batch; with `looks`, also the model's predictions for it and how far it differs from the model before."""
        reason, outputs = None, None
        learns = bool((state.targets != state.targets[:1]).any())
        blind = self.memory is None and not strategies.declaration(self.strategy).reads  # needs no model
        if learns and not blind:
            try:
                self.model(state)
                advance(1)
                outputs = self.outputs(state)
                advance(1)
            except Exception as error:
                if state.trained or not lacks_labels(error):
                    raise
                why = error.__cause__ if isinstance(error, ModelError) and error.__cause__ is not None else error
                reason = f"{type(why).__name__}: {in_short(why)}"
                how = "drawn uniformly" if self.first is None else "picked by embeddings alone"
                what = f"no model can be trained on {len(state.labeled)} labels, the batch is {how}"
                warnings.warn(f"{what}: {reason}", stacklevel=3)
        if outputs is None and not (learns and blind):
            self._check_embeddings()
            return self._without_model(state, k, reason, None if blind else one_class(state.classes, state.targets))
        picks, memory = self._pick(state, outputs, k)
        advance(1)
        seconds = self.seconds["select"]
        ask = e.Ask(round=state.round, ids=self.ids.at(picks), memory=memory, select_seconds=seconds)
        return self._with_looks(ask, state, outputs, picks) if looks and outputs is not None else ask

    def _check_embeddings(self) -> None:
        """Refuse a model without embeddings (trees on NaN) before labels are paid for."""
        reads = strategies.declaration(self.strategy).reads if isinstance(self.given, str) else ()
        if "embeddings" in reads and _is_ours(self.predict) and (why := lacks_embedding(self.trainer, self.pool)):
            raise InputError(f"there will be no embeddings: {why}")

    def _without_model(self, state: Snapshot, k: int, reason: str | None, one_class: str | None) -> e.Ask:
        """A batch before there is a model: by the strategy for a cold start, or uniformly."""
        rng, cold = derive(self.seed, "ask", state.round), self.first
        if one_class and cold is None and hasattr(self.trainer, "prepare"):
            cold = strategies.get("kmeanspp"), None
        if cold is None:
            picks: IntArray = rng.choice(state.candidates, size=k, replace=False)
        else:
            picks = self._pick_cold(cold, state, k, rng)
        if one_class:
            how = "drawn uniformly" if cold is None else "picked by embeddings alone"
            reason = f"{one_class}: there is nothing to learn yet, and the batch was {how}"
        say = log.warning if reason else log.info
        say("picked %d without a model%s", k, f": {reason}" if reason else "")
        return e.Ask(round=state.round, ids=self.ids.at(picks), uniform=reason)

    def _pick_cold(self, cold: Cold, state: Snapshot, k: int, rng: np.random.Generator) -> IntArray:
        """Picks from the given embeddings, or from the trainer's, which may prepare a part of the pool first."""
        strategy, given = cold
        part = self.prepare_part(state) if given is None else None
        if part is not None:
            places, rows = part
            candidates, labeled = (np.flatnonzero(np.isin(places, ids)) for ids in (state.candidates, state.labeled))
            if len(candidates) >= k:
                outputs = Outputs(embeddings=rows)
                return places[choose(Request(strategy, k, rng, Listed(candidates), outputs[labeled]), outputs)]
        outputs = given or Outputs(embeddings=self.prepare())
        return choose(Request(strategy, k, rng, Listed(state.candidates), outputs[state.labeled]), outputs)

    def _pick(self, state: Snapshot, outputs: Outputs | None, k: int) -> tuple[IntArray, e.Memory | None]:
        """The positions that the strategy picks, and what changed in its memory."""
        started = time.perf_counter()
        memory = self.memory
        labeled = None if outputs is None else outputs[state.labeled]
        if memory is not None and labeled is not None:
            restore(memory, state.memory, self._blank)  # a call that failed half-way must leave no trace
            if state.label_round == state.round:
                said = state.classes.targets(state.classes.predicted(labeled.probabilities[:].numpy(force=True)))
                right = (said == state.targets).reshape(len(said), -1).all(axis=1)
                memory.observe(self.ids.keys(self.ids.at(state.labeled)), right)
        rng = derive(self.seed, "ask", state.round)
        picks = choose(Request(self.strategy, k, rng, Listed(state.candidates), labeled), outputs)
        if memory is not None:
            memory.picked(self.ids.keys(self.ids.at(picks)))
        self.seconds["select"] = time.perf_counter() - started
        log.info("picked %d in %.2f s", k, self.seconds["select"])
        return picks, None if memory is None else changes(state.memory, plain_state(memory))

    def _with_looks(self, ask: e.Ask, state: Snapshot, outputs: Outputs, picks: IntArray) -> e.Ask:
        """The ask with the model's predictions for the batch and the test sample, and how far it differs from the last."""

        def said(positions: IntArray) -> list[Code]:
            rows = outputs.probabilities.index_select(0, torch.from_numpy(positions).to(outputs.device))
            return state.classes.predicted(rows.numpy(force=True))

        ask = replace(ask, predicted=[state.classes.decode(code) for code in said(picks)])
        if state.test:
            there = [id for id in state.test if id in self.ids]
            codes = dict(zip(there, said(self.ids.positions(there)), strict=True))
            ask = replace(ask, test=[state.classes.decode(codes[id]) if id in codes else None for id in state.test])
        if state.stop_revision != state.revision:  # a new model
            ids = [id for id in state.stop if id in self.ids] or stop_set(self.ids, self.seed)
            now = dict(zip(ids, said(self.ids.positions(ids)), strict=True))
            ask = replace(ask, stop=compare(state.stop, now, state.revision, len(state.labeled)))
        return ask


def without_taken(batch: e.Ask, ledger: Ledger, number: int) -> e.Ask:
    """The batch without ids that got a label or were skipped since event `number`, which it was chosen after."""
    if ledger.number == number:
        return batch
    free = [i for i, id in enumerate(batch.ids) if ledger.is_free(id)]
    said = None if batch.predicted is None else [batch.predicted[i] for i in free]
    k = len(batch.ids) if len(free) < len(batch.ids) else None
    return replace(batch, ids=[batch.ids[i] for i in free], predicted=said, k=k, labels=number)


def _is_ours(given: Callable[..., Outputs]) -> bool:
    return given is predict or (isinstance(given, partial) and given.func is predict)


def check_arguments(trainer: Any, journal: Any, initial: Any, predict: Any) -> None:
    if not hasattr(trainer, "fit"):
        raise InputError(f"a trainer has fit(examples, labels, rng) -> model; {type(trainer).__name__} has no fit")
    if is_estimator(trainer) and not hasattr(trainer, "predict_proba"):
        raise InputError(f"{type(trainer).__name__} gives no probabilities (predict_proba): use one that does")
    if not isinstance(journal, str | os.PathLike | Journal | None):
        raise InputError(f"a journal is a file name, not {journal!r}")
    if initial is not None and not hasattr(initial, "items"):
        raise InputError(f"initial holds labels by id, {{id: label}}, not {type(initial).__name__}")
    if not callable(predict):
        raise InputError(f"predict is a function (model, pool) -> Outputs, not {type(predict).__name__}")


def first_batch(first: Any, embeddings: Any, trainer: Any, rows: int) -> Cold | None:
    """The strategy of the first batch and its outputs (None: those of a frozen encoder); None: a uniform draw."""
    if first is None:
        if embeddings is not None:
            raise InputError("embeddings are for the first batch: name what picks it, first='typiclust'")
        return None
    strategy = strategies.get(first)
    if embeddings is None:
        check_first(first)
        if not hasattr(trainer, "prepare"):
            raise InputError(f"first={first!r} picks from embeddings of a pretrained model: pass embeddings= [N, D]")
        return strategy, None
    outputs = embeddings if isinstance(embeddings, Outputs) else Outputs(embeddings=embeddings)
    if not outputs.has_probabilities:
        check_first(first)
    if len(outputs) != rows:
        raise InputError(f"embeddings have {len(outputs)} rows for a pool of {rows}")
    return strategy, outputs
