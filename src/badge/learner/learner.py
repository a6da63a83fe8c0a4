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
    """An active learning loop: it asks for labels, takes them in any order, and trains the model between batches.

    Args:
        pool: a tensor, an array, a table, a list or a map-style Dataset. Labels in it are ignored.
        trainer: a `badge.Trainer`, a scikit-learn estimator, or any object with `fit(examples, labels, rng) -> model`;
            `labels` are whole numbers from 0.
        classes: the number of classes, or a list of their names. With names, the labels are these names.
        strategy: a name of `badge.strategies.NAMES`, or any callable (outputs, k, rng, labeled=None) -> positions.
        seed: the same seed gives the same picks; None draws a new seed. By default an existing journal keeps its seed, and
            a new one gets 0.
        initial: labels that exist before the loop, {id: label}.
        journal: the file to write the journal to; None keeps it in memory.
        ids: the ids of the examples, texts or whole numbers: a sequence, or the name of a column of a table. None: their
            positions in the pool.
        predict: a function `predict(model, pool) -> Outputs`. Set it to pass options to `badge.predict`:
            `functools.partial(badge.predict, tokenizer=tokenizer)`.
        on_event: a function that is called with every event, after it is on disk.
        multilabel: an example may have any number of classes; its label is a list of them.
        first: the strategy that picks while there is no model: "typiclust", "kmeanspp" or another cold start. None: draw
            uniformly (with "auto" and embeddings: typiclust).
        embeddings: embeddings [N, D] of a pretrained model, for `first`. None: those of a `Frozen` trainer.

    Raises:
        InputError: an argument is invalid.
        JournalError: the journal is damaged, in use, or belongs to another pool, strategy, seed or list of classes.

    With a `journal`, batches and labels are on disk before `ask` and `tell` return. A learner that opens the same journal
    resumes with the same picks (docs/loop.md). Threads may share a learner.

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
        """Ask for the `k` ids to label next. Ids that are labelled, skipped or pending are never picked.

        While the labels are too few to train a model, or all of one class, `first` picks the batch, or it is drawn
        uniformly. `uniform_because` gives the reason. Other threads can tell labels while this one trains.

        Args:
            k: the number of ids to ask for.
            people: the number of people who label each id.
            progress: show a progress bar on standard error.
            of: the old name of `people`.

        Returns:
            `k` distinct ids in pick order; fewer if some were labelled or skipped during the training.

        Raises:
            InputError: fewer than `k` candidates are left.
            JournalError: the journal cannot be written. The batch does not count as asked.
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
        """Record labels of pending ids, for a whole batch or part of it. Telling the same label again has no effect.

        Args:
            ids: ids that were asked for, or a dict {id: label}.
            labels: a label for each id: a class, or a list of classes with `multilabel=True`.
            by: the name of the person who labelled. If several people label an id, the majority decides.
            unasked: accept labels of ids that were never asked for.

        Raises:
            InputError: an id was not asked for, an id has another label already, or a label is not a class. Nothing is
                written.
            JournalError: the journal cannot be written.
        """
        unasked = flag(unasked, "unasked")
        if labels is None:
            if not isinstance(ids, Mapping):
                raise InputError(f"labels are missing: tell(ids, labels), or tell({{id: label}}), not {short(ids)}")
            labels, ids = list(ids.values()), list(ids)
        self._write(lambda ledger: calls.tell(ledger, ids, labels, by, unasked))

    def relabel(self, id: Any, label: Any, by: str | None = None) -> None:
        """Correct the label of one id.

        Args:
            id: an id that has a label.
            label: the right label.
            by: the person whose label to correct, if several people label the id.

        Raises:
            InputError: the id has no label (of this person), or the label is not a class.
        """
        self._write(lambda ledger: calls.relabel(ledger, id, label, by))

    def skip(self, ids: Iterable[Any], reason: str | None = None) -> None:
        """Never ask for these ids again, because nobody can label them. They do not count as labelled.

        Args:
            ids: ids without a label.
            reason: the reason, for the journal.

        Raises:
            InputError: an id is unknown or has a label.
        """
        self._write(lambda ledger: calls.skip(ledger, ids, reason))

    def unskip(self, ids: Iterable[Any]) -> None:
        """Put skipped ids back into the pool.

        Args:
            ids: ids that were skipped. Other ids are left unchanged.

        Raises:
            InputError: an id is unknown.
        """
        self._write(lambda ledger: calls.unskip(ledger, ids))

    def release(self, ids: Iterable[Any]) -> None:
        """Put pending ids back into the pool. Labels that people have already given are kept.

        Args:
            ids: ids that were asked for and have no label. Other ids are left unchanged.

        Raises:
            InputError: an id is unknown.
        """
        self._write(lambda ledger: calls.release(ledger, ids))

    def add_class(self, name: Label | None = None) -> None:
        """Add a class. The trainer must be able to learn it.

        Args:
            name: the name of the new class; None if classes are numbers.

        Raises:
            InputError: the class exists already, or `name` does not fit the other classes (names, or numbers).
        """
        self._write(lambda ledger: calls.add_class(ledger, name))

    def use(self, strategy: str | Any) -> None:
        """Change the strategy. The new one starts without memory. This waits until a running `ask` has ended.

        Args:
            strategy: a name, or any callable (outputs, k, rng, labeled=None) -> positions.

        Raises:
            UnknownNameError: no strategy has this name.
        """
        strategies.get(strategy)  # refuses an unknown strategy
        with self._work.busy():
            event = self._book.write(lambda ledger: (e.Use(strategy=describe(strategy)), ()))
            self._work.use(strategy)
        self._notify(event)

    def import_csv(self, path: str | Path, id: str = "id", label: str = "label", by: str | None = None) -> int:
        """Record the labels of a CSV file.

        Args:
            path: the CSV file.
            id: the name of the column of ids.
            label: the name of the column of labels.
            by: the name of the column of people. None: the column "by", if there is one.

        Returns:
            The number of labels that are new.

        Raises:
            InputError: a column is missing, or an id or a label is unknown. Nothing is written.
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
        """Ids that were asked for and have no label yet, in the order asked."""
        return self._book.look(lambda now: now.ids.array(now.pending))

    @property
    def skipped(self) -> dict[Id, str | None]:
        """Skipped ids: {id: reason}."""
        return self._book.look(lambda now: dict(now.skipped))

    @property
    def withdrawn(self) -> dict[Id, Any]:
        """Ids that have left the pool: {id: label}, or {id: None} for ids without a label."""
        return self._book.look(lambda now: {id: now.said(code) for id, code in now.withdrawn.items()})

    @property
    def candidates(self) -> NDArray[Any]:
        """Ids that can still be asked for, in ascending order."""
        return self._book.look(lambda now: now.ids.array(now.ids.at(now.candidates())))

    @property
    def left(self) -> int:
        """The number of ids that can still be asked for."""
        return self._book.look(lambda now: now.ids.length - len(now.labels) - len(now.pending) - len(now.skipped))

    def item(self, id: Any) -> Item:
        """Everything known about one id.

        Args:
            id: an id of the pool.

        Returns:
            An `Item`: its label, the label of each person, and whether it is pending or skipped.

        Raises:
            InputError: the id is unknown.
        """
        return self._book.look(lambda now: item_in(now, id))

    @property
    def batches(self) -> list[NDArray[Any]]:
        """Every batch so far, in order."""
        return self._book.look(lambda now: [now.ids.array(ask.ids) for _, ask in now.asks])

    @property
    def classes(self) -> list[Label]:
        """The names of the classes, or their numbers."""
        return self._book.look(lambda now: list(now.classes.names))

    @property
    def votes(self) -> dict[Id, dict[str, Any]]:
        """The label of each person, for ids that several people label: {id: {person: label}}."""
        return self._book.look(lambda now: {id: now.said_by(id) for id in now.votes})

    @property
    def history(self) -> History:
        """Every label given, in order: its time, its person, the model's earlier prediction, the prequential accuracy."""
        with self._book.lock():
            self._book.ledger()
            story, self._story = self._story or Story(), None  # read twice where an interrupt comes in between
            rows = story.read(self._journal.records[story.events :])
            self._story = story
        return rows

    def agreement(self) -> Agreement:
        """How far people agree on the examples that several of them labelled.

        Returns:
            An `Agreement`: `items`, the agreement per example; `kappa` (Cohen's κ) and `counts` per pair of people; and
            `ties`.
        """
        return self._book.look(lambda now: agreement(now.votes, now.pending))

    def advice(self) -> Advice:
        """Whether more labels are worth their cost: how far predictions still change, and how often they were right.

        Returns:
            An `Advice`: `stop`, `kappa`, `accuracy` with its interval, and `text`, the same in sentences.
        """
        with self._book.lock():
            now = self._book.ledger()
            only = one_class(now.classes, now.labeled()[1])
            return advice(now.stability, self.history, len(now.labels), only)

    @property
    def uniform_because(self) -> str | None:
        """Why no model picked the last batch although there are labels, and what did pick it. None: a model picked it."""
        return self._book.look(lambda now: now.asks[-1][1].uniform if now.asks else None)

    def positions(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """The positions of these ids in the pool.

        Args:
            ids: ids of the pool.

        Returns:
            Row numbers, int64.

        Raises:
            InputError: an id is unknown.
        """
        return self._book.ids.positions(self._book.ids.plain(ids))

    @property
    def round(self) -> int:
        """The number of batches asked for before the labels last changed. (seed, round) seeds the training of the model."""
        return self._book.look(lambda now: now.label_round)

    @property
    def team(self) -> Team:
        """Calls for several people who label one pool: numbered requests, decisions, comments, a test sample."""
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
        """The strategy: its name, or the object that was passed. `use` changes it."""
        return self._work.given

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds that the last training, prediction and selection took."""
        return self._work.seconds

    @property
    def model(self) -> Any:
        """The model of the labels so far. It is trained from scratch when needed, and kept until the labels change."""
        with self._work.busy():
            return self._work.model(self._book.look(Snapshot))

    @property
    def outputs(self) -> Outputs:
        """The model's outputs for the whole pool, one row per position."""
        with self._work.busy():
            return self._work.outputs(self._book.look(Snapshot))

    def score(self, examples: Any, labels: Iterable[Any]) -> float:
        """The accuracy of the model on other examples, such as a test set.

        Args:
            examples: examples of the same kind as those of the pool.
            labels: the label of each example.

        Returns:
            The share that the model predicts correctly, between 0 and 1.

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
        """Explain the last batch, by the model that picked it; or explain `ids`, by the current model.

        Args:
            ids: ids of the pool. None: the last batch.

        Returns:
            An `Explanation` with a row per id. `gain` is what each id added to the objective of the strategy, given the
            labels at that time; it is None if the strategy has no objective.

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
        """Close the journal. After that, `ask`, `tell` and every other call that writes raise an error."""
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
