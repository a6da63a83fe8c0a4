"""Ask and tell: Algorithm 1 of the paper as a loop that a team can stop and take up again at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from badge import strategies
from badge.core.numbers import flag, whole
from badge.core.progress import bar
from badge.errors import BadgeError, InputError
from badge.journal import Event, InMemory, Journal
from badge.journal import events as e
from badge.journal.events import Id, Label
from badge.learner import calls
from badge.learner.advice import Advice, Agreement, advice, agreement
from badge.learner.book import Book, Item, item_in
from badge.learner.calls import Checked
from badge.learner.classes import Classes, one_class, short
from badge.learner.history import History, Story
from badge.learner.ids import Ids, as_list, own_ids
from badge.learner.ledger import Ledger
from badge.learner.opening import Settings, current_strategy, describe
from badge.learner.team import PartWork, Team
from badge.learner.transfer import imported
from badge.learner.work import Snapshot, Work, check_arguments, first_batch, without_taken
from badge.models import predict
from badge.models.pools import length
from badge.outputs import Outputs
from badge.strategies.explain import Explanation
from badge.training.fit import Trains


class ActiveLearner:
    """Asks for the labels that teach a model most, and takes them as they come.

    Args:
        pool: a tensor, an array, a table, a list or a map-style Dataset. Labels that it carries are not looked at.
        trainer: a `badge.Trainer`, a scikit-learn estimator, or any object with `fit(examples, labels, rng) -> model`;
            `labels` are whole numbers from 0.
        classes: their number, or a list of names, which are then the labels to tell.
        strategy: a name of `badge.strategies.NAMES`, or any callable (outputs, k, rng, labeled=None) -> positions.
        seed: a whole number, or None, which draws one. Without it a journal goes on with its own, and a new one has 0.
        initial: labels that exist already, {id: label}.
        journal: a file; None keeps everything in memory.
        ids: what examples are called where that is not their position: a sequence of texts or whole numbers, or the name of
            the column of a table that holds them.
        predict: `predict(model, pool) -> Outputs`, where `badge.predict` needs arguments, e.g.
            `functools.partial(badge.predict, tokenizer=tokenizer)`.
        on_event: called with every event after it is on disk.
        multilabel: a label is a list of classes.
        first: picks while there is no model, in place of a uniform draw: "typiclust", "kmeanspp" or another cold start.
        embeddings: [N, D] of a pretrained model, for `first`; None: from a `Frozen` trainer.

    Raises:
        InputError: an argument cannot mean anything.
        JournalError: the journal is damaged, in use, or of another pool, strategy, seed or set of classes.

    With a `journal`, everything asked and told is on disk before `ask` and `tell` return, and a learner that opens the
    same journal goes on with the same picks (docs/loop.md). Threads may share a learner.

    >>> import badge, numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> truth = (x[:, 0] > 0).astype(int)
    >>> learner = badge.ActiveLearner(x, LogisticRegression(), classes=2, seed=1)
    >>> for k in (10, 5, 5):
    ...     ids = learner.ask(k)
    ...     learner.tell(ids, truth[ids])
    >>> len(learner.labels), len(learner.pending), bool(learner.model.score(x, truth) > 0.9)
    (20, 0, True)
    """

    def __init__(
        self,
        pool: Any,
        trainer: Trains | Any,
        *,
        classes: int | Sequence[Label],
        strategy: str | Any = "badge",
        seed: int | Literal["recorded"] | None = "recorded",
        initial: Mapping[Any, Any] | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
        ids: Sequence[Id] | str | None = None,
        predict: Callable[[Any, Any], Outputs] = predict,
        on_event: Callable[[Event], object] | None = None,
        multilabel: bool = False,
        first: str | Any = None,
        embeddings: Any = None,
    ) -> None:
        check_arguments(trainer, journal, initial, predict)
        multilabel, n = flag(multilabel, "multilabel"), length(pool)
        if seed is not None and not (isinstance(seed, str) and seed == "recorded"):
            seed = whole(seed, "seed", least=0)
        strategies.get(strategy)  # refuses an unknown strategy, before anything is written
        if first is None and strategy == "auto" and (embeddings is not None or hasattr(trainer, "prepare")):
            first = "typiclust"
        cold = first_batch(first, embeddings, trainer, n)
        pool, own = (pool, None) if ids is None else own_ids(pool, ids, n)
        names, known = Ids(n, own), Classes(classes, multilabel)
        told = None if initial is None else calls.initial(Ledger(names, known), dict(initial.items()))
        began = None if first is None else describe(first)
        settings = Settings(known.header, describe(strategy), seed, told, multilabel, began)
        self.pool, self.on_event = pool, on_event
        shared = isinstance(journal, Journal)
        self._journal = Journal(journal) if isinstance(journal, str | os.PathLike) else journal or InMemory()
        try:
            self._book = Book(self._journal, pool, names, settings, shared)
        except BaseException:
            self._journal.close()
            raise
        ledger = self._book.ledger()
        assert ledger.header is not None
        self.seed = ledger.header.seed
        self._work = Work(pool, names, trainer, predict, self.seed)
        self._work.use(current_strategy(ledger, strategy, self._journal.path))
        self._work.first = cold
        timed = [ask.select_seconds for _, ask in ledger.asks if ask.select_seconds is not None]
        self._work.seconds["select"] = timed[-1] if timed else 0.0
        self._explained: tuple[int, Explanation] | None = None
        self._part: PartWork | None = None  # while the page waits for the rest of a large pool
        self._story: Story | None = None  # what `history` has read so far

    # -- ask and tell --------------------------------------------------------------------------------------------

    def ask(self, k: int, people: int = 1, progress: bool = False, *, of: int | None = None) -> NDArray[Any]:
        """The `k` ids to label next, in pick order, never one that is labelled, skipped or pending.

        Before there are labels of two classes, or enough for a model, `first` picks the batch, or it is drawn uniformly;
        `uniform_because` says why. Labels can be told while this trains.

        Args:
            k: number of ids to ask for.
            people: number of people who label each id.
            progress: draw a progress bar on standard error.
            of: the old name of `people`.

        Returns:
            `k` distinct ids; fewer where ids got a label while this trained.

        Raises:
            InputError: fewer than `k` candidates are left.
            JournalError: the journal cannot be written. Nothing was asked then.
        """
        k, people, progress = whole(k, "k"), whole(people if of is None else of, "people"), flag(progress, "progress")
        with bar("train · predict · pick", 3, progress) as advance:
            return self._asked(k, people, lambda now: self._work.batch(now, k, not self._book.shared, advance))

    def _asked(self, k: int, people: int, batch: Callable[[Snapshot], e.Ask]) -> NDArray[Any]:
        """Pick a batch on a snapshot, and write down what of it is still free."""
        book = self._book
        with self._work.busy():
            with book.lock(writing=True):
                ledger = book.ledger()
                now = Snapshot(ledger)
                if k > len(now.candidates):
                    skipped = f", {len(ledger.skipped)} skipped" if ledger.skipped else ""
                    done = f"{len(ledger.labels)} of {book.ids.length} are labelled, {len(ledger.pending)} pending{skipped}"
                    raise InputError(f"asked for {k} of {len(now.candidates)} candidates ({done})")
            picked = batch(now)
            with book.lock(writing=True):
                record = without_taken(picked, book.ledger(), now.number)
                event = book.append(record, people=people)
        self._notify(event)
        return book.ids.array(record.ids)

    def tell(
        self,
        ids: Iterable[Any] | Mapping[Any, Any],
        labels: Iterable[Any] | None = None,
        by: str | None = None,
        unasked: bool = False,
    ) -> None:
        """Take labels of pending ids: all of a batch, or some of it. A label that is known already has no effect.

        Args:
            ids: ids that were asked, or a dict {id: label}.
            labels: a label for each id: a class, or a list of classes with `multilabel=True`.
            by: who labelled. If several people label an id, the majority counts.
            unasked: also take labels of ids that were never asked.

        Raises:
            InputError: an id was not asked or has another label already, or a label is not a class. Nothing is written then.
            JournalError: the journal cannot be written.
        """
        unasked = flag(unasked, "unasked")
        if labels is None:
            if not isinstance(ids, Mapping):
                raise InputError(f"labels are missing: tell(ids, labels), or tell({{id: label}}), not {short(ids)}")
            labels, ids = list(ids.values()), list(ids)
        self._write(lambda ledger: calls.tell(ledger, ids, labels, by, unasked))

    def relabel(self, id: Any, label: Any, by: str | None = None) -> None:
        """Correct the label of one id; with `by`, the label that this person gave, if several people label the id.

        Args:
            id: an id that has a label.
            label: the right label.
            by: the person to correct, where several people have labelled the id.

        Raises:
            InputError: the id has no label, or the label is not a class.
        """
        self._write(lambda ledger: calls.relabel(ledger, id, label, by))

    def skip(self, ids: Iterable[Any], reason: str | None = None) -> None:
        """Never ask these ids again: nobody can label them. They do not count as labelled.

        Args:
            ids: ids without a label.
            reason: why, for the journal.

        Raises:
            InputError: an id is unknown or has a label.
        """
        self._write(lambda ledger: calls.skip(ledger, ids, reason))

    def unskip(self, ids: Iterable[Any]) -> None:
        """Put skipped ids back into the pool.

        Args:
            ids: ids that were skipped; others stay as they are.

        Raises:
            InputError: an id is unknown.
        """
        self._write(lambda ledger: calls.unskip(ledger, ids))

    def release(self, ids: Iterable[Any]) -> None:
        """Put pending ids back into the pool. Labels that people have given already are kept.

        Args:
            ids: ids that were asked and have no label; others stay as they are.

        Raises:
            InputError: an id is unknown.
        """
        self._write(lambda ledger: calls.release(ledger, ids))

    def add_class(self, name: Label | None = None) -> None:
        """Add a class: its name, or nothing if classes are numbers. The trainer must be able to learn it.

        Args:
            name: the new class; None if classes are numbers.

        Raises:
            InputError: there is such a class already.
        """
        self._write(lambda ledger: calls.add_class(ledger, name))

    def use(self, strategy: str | Any) -> None:
        """Another strategy from now on; it starts without memory. Waits for an `ask` that is under way.

        Args:
            strategy: a name, or any callable (outputs, k, rng, labeled=None) -> positions.

        Raises:
            UnknownNameError: there is no strategy of this name.
        """
        strategies.get(strategy)  # refuses an unknown strategy
        with self._work.busy():
            event = self._book.write(lambda ledger: (e.Use(strategy=describe(strategy)), ()))
            self._work.use(strategy)
        self._notify(event)

    def import_csv(self, path: str | Path, id: str = "id", label: str = "label", by: str | None = None) -> int:
        """Take the labels of a CSV file; the number of new ones.

        Args:
            path: the file.
            id: name of the column of ids.
            label: name of the column of labels.
            by: name of the column that says who labelled; None: a column "by" if there is one.

        Returns:
            The number of labels that were not known before.

        Raises:
            InputError: a column is missing, or an id or label is unknown. Nothing is written then.
        """
        with self._book.lock(writing=True):
            told = imported(path, self._book.ledger(), id, label, by)
            events = [self._book.append(*checked) for checked in told]
        for event in events:
            self._notify(event)
        return sum(len(event["ids"]) for event in events if event["event"] == "tell")

    def _write(self, make: Callable[[Ledger], Checked | None], **fields: Any) -> Event | None:
        event = self._book.write(make, **fields)
        self._notify(event)
        return event

    def _notify(self, event: Event | None) -> None:
        if event is not None and self.on_event is not None:
            self.on_event(event)

    # -- what is known, without a model ----------------------------------------------------------------------------

    @property
    def labels(self) -> dict[Id, Any]:
        """The labels so far: {id: label}."""
        return self._book.look(lambda now: {id: now.classes.decode(code) for id, code in now.labels.items()})

    @property
    def pending(self) -> NDArray[Any]:
        """Ids that were asked and have no label yet, in the order asked."""
        return self._book.look(lambda now: now.ids.array(now.pending))

    @property
    def skipped(self) -> dict[Id, str | None]:
        """Ids that nobody can label: {id: reason}."""
        return self._book.look(lambda now: dict(now.skipped))

    @property
    def withdrawn(self) -> dict[Id, Any]:
        """Ids that have left the pool: {id: label}, None if they had none."""
        return self._book.look(lambda now: {id: now.said(code) for id, code in now.withdrawn.items()})

    @property
    def candidates(self) -> NDArray[Any]:
        """Ids that can still be asked, ascending."""
        return self._book.look(lambda now: now.ids.array(now.ids.at(now.candidates())))

    @property
    def left(self) -> int:
        """Number of ids that can still be asked."""
        return self._book.look(lambda now: now.ids.length - len(now.labels) - len(now.pending) - len(now.skipped))

    def item(self, id: Any) -> Item:
        """What is known about one id.

        Args:
            id: an id of the pool.

        Returns:
            An `Item`: its label, who gave which, whether it is pending or skipped.

        Raises:
            InputError: the id is unknown.
        """
        return self._book.look(lambda now: item_in(now, id))

    @property
    def batches(self) -> list[NDArray[Any]]:
        """Every batch asked so far, in order."""
        return self._book.look(lambda now: [now.ids.array(ask.ids) for _, ask in now.asks])

    @property
    def classes(self) -> list[Label]:
        """The labels that can be told."""
        return self._book.look(lambda now: list(now.classes.names))

    @property
    def votes(self) -> dict[Id, dict[str, Any]]:
        """Who gave which label, for ids that several people label."""
        return self._book.look(lambda now: {id: now.said_by(id) for id in now.votes})

    @property
    def history(self) -> History:
        """Every label given, in order: when, by whom, what the model had predicted before, prequential accuracy."""
        with self._book.lock():
            self._book.ledger()
            story, self._story = self._story or Story(), None  # read twice where an interrupt comes in between
            rows = story.read(self._journal.records[story.events :])
            self._story = story
        return rows

    def agreement(self) -> Agreement:
        """How far people agree on what several of them labelled: per example, and Cohen's κ per pair of people.

        Returns:
            An `Agreement`: `items`, `kappa` and `counts` per pair of people, and `ties`.
        """
        return self._book.look(lambda now: agreement(now.votes, now.pending))

    def advice(self) -> Advice:
        """Whether more labels are worth it: do predictions still change, and how often were they right?

        Returns:
            An `Advice`: `stop`, `kappa`, `accuracy` with its interval, and `text`, which says it in sentences.
        """
        with self._book.lock():
            now = self._book.ledger()
            only = one_class(now.classes, now.labeled()[1])
            return advice(now.stability, self.history, len(now.labels), only)

    @property
    def uniform_because(self) -> str | None:
        """Why no model picked the last batch although there are labels, and what picked it; else None."""
        return self._book.look(lambda now: now.asks[-1][1].uniform if now.asks else None)

    def positions(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Where in the pool the examples of these ids are.

        Args:
            ids: ids of the pool.

        Returns:
            Their row numbers, int64.

        Raises:
            InputError: an id is unknown.
        """
        return self._book.ids.positions(self._book.ids.plain(ids))

    @property
    def round(self) -> int:
        """Number of asks before the labels last changed; the model's randomness derives from (seed, round)."""
        return self._book.look(lambda now: now.label_round)

    @property
    def team(self) -> Team:
        """For several people at one pool: requests with numbers, decisions, comments, a test sample."""
        return Team(self)

    # -- the model and what it says --------------------------------------------------------------------------------

    @property
    def trainer(self) -> Any:
        return self._work.trainer

    @trainer.setter
    def trainer(self, trainer: Any) -> None:
        self._work.trainer = trainer

    @property
    def strategy(self) -> Any:
        """What picks: its name, or the object that was given; `use` changes it."""
        return self._work.given

    @property
    def seconds(self) -> dict[str, float]:
        """What the last training, prediction and selection took."""
        return self._work.seconds

    @property
    def model(self) -> Any:
        """The model of the labels so far; trained when it is needed, from scratch, and kept until the labels change."""
        with self._work.busy():
            return self._work.model(self._book.look(Snapshot))

    @property
    def outputs(self) -> Outputs:
        """What the model says about the whole pool; row numbers are positions."""
        with self._work.busy():
            return self._work.outputs(self._book.look(Snapshot))

    def score(self, examples: Any, labels: Iterable[Any]) -> float:
        """The accuracy of the model on other examples of the same kind as the pool.

        Args:
            examples: examples of the kind that the pool holds.
            labels: the label of each.

        Returns:
            The share that the model gets right, between 0 and 1.

        Raises:
            InputError: the numbers of examples and labels differ, or a label is not a class.
        """
        with self._work.busy():
            state = self._book.look(Snapshot)
            said = self._work.said(state, examples)
        told = [state.classes.encode(label, n) for n, label in enumerate(as_list(labels, "labels"))]
        if len(told) != len(said):
            raise InputError(f"{len(said)} examples and {len(told)} labels: one label for each example is needed")
        return sum(a == b for a, b in zip(said, told, strict=True)) / len(told)

    def explain(self, ids: Iterable[Any] | None = None) -> Explanation:
        """Why the last batch, by the model that picked it; or these ids, by the model of now.

        Args:
            ids: ids of the pool; None: the last batch.

        Returns:
            An `Explanation` with a row per id. `gain` is what each added to the objective of the strategy, with the labels of
            then; None if the strategy has no objective.

        Raises:
            InputError: no model has picked a batch yet, or an id is unknown.
        """
        with self._work.busy():
            if ids is not None:
                named, now = self._book.ids.plain(ids), self._book.look(Snapshot)
                return self._work.explained(self._work.outputs(now), named, now)
            number, ask = self._book.look(Ledger.last_pick)
            if self._explained is None or self._explained[0] != number:
                then = self._book.look(lambda _: Snapshot(self._book.ledger_at(ask.labels or number - 1)))
                # the model that picked is still there, or it is trained again: the same labels and seed, the same model
                outputs = self._work.outputs(then, keep=False)
                self._explained = (number, self._work.explained(outputs, ask.ids, then))
            return self._explained[1]

    # -- the end -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Release the journal; the learner cannot be asked or told after it."""
        if not self._journal.closed:
            with suppress(BadgeError):
                self._book.keep()
        self._journal.close()

    def __enter__(self) -> ActiveLearner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        way_out = "open it again from its journal, or keep learner.model"
        raise InputError(f"a learner holds an open journal and cannot be copied or pickled: {way_out}")

    def __repr__(self) -> str:
        labelled, pending = self._book.look(lambda now: (len(now.labels), len(now.pending)))
        return f"ActiveLearner({self._book.ids.length:,} examples: {labelled:,} labelled, {pending:,} pending)"
