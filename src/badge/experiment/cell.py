"""One cell of an experiment: a thin loop over `ActiveLearner`, with stored labels in place of a person.

The journal is the learner's own, with four kinds of events added: `start` (once, first), `round` (one per trained
model), `resume` (taken up again under other versions) and `end`. Round r trains on the labels of asks 0 … r and chooses
ask r + 1; the order on disk is ask, round, tell. What is missing at the end of a journal is computed again, from the same
seeds, so a cell that was killed ends with the same picks and accuracies.
"""

import math
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from badge import data, strategies
from badge.core.catalog import names
from badge.core.numbers import positive, whole
from badge.core.threads import threads
from badge.data import Dataset
from badge.data.own import is_own_file
from badge.errors import InputError
from badge.experiment.model import LINEAR, passes, trainer_of
from badge.experiment.origin import Held, check_data, code_digests, data_digest, git_revision, held, versions
from badge.experiment.resuming import check_start, check_whole_batches, goes_on, journal_path
from badge.features import gradient_embedding
from badge.journal import Journal
from badge.journal.events import Data, End, Resume, Round, Start, shown_model
from badge.learner.learner import ActiveLearner
from badge.models import predict
from badge.strategies import ALBL
from badge.strategies.explain import log_det
from badge.training import Frozen
from badge.training.fit import align, prepared
from badge.training.trainer import Trainer

#: where a run without a number of labels ends, if the pool lasts that long (as in the authors' code)
MOST_LABELS = 50_000

#: called after each round with the labels so far, the labels at the end, and the test accuracy
Notify = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Cell:
    """The settings of one run; everything that its picks and accuracies depend on, besides the machine.

    Args:
        data: a name of `badge.data.NAMES`, a file, "package.module:load", or a `Dataset`.
        model: "mlp", "resnet18", "vgg11", "linear", or "package.module:function".
        strategy: a name, "package.module:function", or a function.
        batch_size: labels per round.
        initial: labels of the first round.
        labels: number at which the run ends; None: the end of the pool, at most 50,000.
        seed: seed of everything that is drawn.
        threads: number of threads; the last bits depend on it.
        width: width of the network; None: its default.
        lr: learning rate; None: the paper's for that kind of data.
        max_epochs: most epochs of one training; None: the trainer's default.
        raw: keep the features of tables unscaled.
        text: the column of texts, where `data` is a file.
        label: the column of labels, where `data` is a file.
        encoder: "hf:…", which turns the texts into vectors.
        first: "typiclust" or "kmeanspp" picks the initial labels, from these vectors or from the features; None draws them.

    >>> Cell("letter", "mlp", "badge", batch_size=100).name
    'letter-mlp-b100-badge-s0'
    """

    data: str
    model: str
    strategy: str
    batch_size: int
    initial: int = 100
    labels: int | None = None
    seed: int = 0
    threads: int = 1
    width: int | None = None
    lr: float | None = None
    max_epochs: int | None = None
    raw: bool = False
    text: str | None = None
    label: str | None = None
    encoder: str | None = None
    first: str | None = None

    def __post_init__(self) -> None:
        objects = {"data": "; in a program also a Dataset", "strategy": "; in a program also a function"}
        for field in ("data", "strategy", "model", "text", "label", "encoder", "first"):
            name = Held.of(getattr(self, field)) if field in objects else getattr(self, field)
            if not isinstance(name, str) and (name is not None or field in ("data", "strategy", "model")):
                raise InputError(f"{field} must be a name, not {name!r:.80}{objects.get(field, '')}")
            object.__setattr__(self, field, name)
        if not is_own_file(self.data) and any((self.text, self.label, self.encoder)):
            raise InputError(f"text, label and encoder are for data in a file; {self.data} is none")
        for field in ("batch_size", "initial", "threads", "labels", "width", "max_epochs", "seed"):
            value = getattr(self, field)
            if value is not None or field not in ("labels", "width", "max_epochs"):
                object.__setattr__(self, field, whole(value, field, least=0 if field == "seed" else 1))
        if self.lr is not None:
            object.__setattr__(self, "lr", positive(self.lr, "lr"))
        if self.labels is not None and self.labels < self.initial:
            raise InputError(f"labels ({self.labels}) must be at least the initial ones ({self.initial})")

    @property
    def name(self) -> str:
        """The name of the journal; characters that a file name should not have, such as `:`, become `_`."""
        first = () if self.first is None else (f"first_{self.first}",)
        parts = (self.data, self.model, f"b{self.batch_size}", self.strategy, *first, f"s{self.seed}")
        return "-".join(re.sub(r"[^\w.-]", "_", part) for part in parts)

    @property
    def shown_model(self) -> str:
        """The model as tables name it."""
        return shown_model(self.model, self.first)


def run_cell(cell: Cell, folder: Path, notify: Notify = lambda labels, total, accuracy: None) -> None:
    """Run a cell to its end, from wherever its journal stops.

    With more `labels` than before it goes on, with the same bits as if it had been asked for that number at once.

    Args:
        cell: what to run.
        folder: where its journal is.
        notify: called with (labels, labels at the end, test accuracy) after each round.

    Raises:
        JournalError: the journal is of another cell, damaged or in use.
        DataError: the data cannot be had.

    >>> import tempfile
    >>> from badge import stats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_cell(Cell("digits", "mlp", "rand", batch_size=20, initial=20, labels=40, max_epochs=5), Path(folder))
    ...     stats.load(folder)
    Results(1 run of 1 strategy in 1 setting, 2 rows)
    """
    with Journal(journal_path(cell, folder), sync=False) as journal:
        continue_cell(journal, cell, notify)


def continue_cell(journal: Journal, cell: Cell, notify: Notify) -> None:
    """Run a cell in a journal that is open already."""
    with threads(cell.threads):
        more = False
        if journal.records:
            start = check_start(journal.records[0], cell, journal.path)
            marks = [r for r in journal.records if isinstance(r, End) or (isinstance(r, Resume) and r.more)]
            last = marks[-1] if marks else None
            more = goes_on(cell, start, last, journal.path)
            if isinstance(last, End) and not more:
                return
        if more:
            check_whole_batches(journal, cell)
        dataset = dataset_of(cell)
        if cell.model == LINEAR:  # it reads rows of numbers: images too
            dataset = replace(dataset, X_train=_flat(dataset.X_train), X_test=_flat(dataset.X_test))
        _start(journal, cell, dataset, more)
        _rounds(journal, cell, dataset, notify)


def _start(journal: Journal, cell: Cell, dataset: Dataset, more: bool) -> None:
    """Write `start`, or `resume` where versions have changed or the run goes on to more labels (`more`)."""
    if not journal.records:
        about = {key: getattr(dataset, key) for key in ("rows", "total", "complete", "text")}
        described = Data(name=dataset.name, **about, digest=data_digest(dataset))
        code = code_digests(cell) or None
        journal.append(Start(cell=asdict(cell), data=described, code=code, versions=versions(), git=git_revision()))
        return
    check_data(journal.records[0], dataset, journal.path)
    last = [record for record in journal.records if isinstance(record, Start | Resume)][-1]
    if more or (last.versions, last.git) != (versions(), git_revision()):
        labels = cell.labels if more else None
        journal.append(Resume(more=more, labels=labels, versions=versions(), git=git_revision()))


def _rounds(journal: Journal, cell: Cell, dataset: Dataset, notify: Notify) -> None:
    trainer = trainer_of(cell, dataset)
    pool, classes = torch.from_numpy(dataset.X_train), dataset.classes
    total = min(cell.labels or MOST_LABELS, len(pool))
    # albl is told the number of batches after the first, which sets its rates
    batches = max(1, math.ceil((total - cell.initial) / cell.batch_size))
    strategy = ALBL(rounds=batches) if cell.strategy == "albl" else held(cell.strategy)
    options: dict[str, Any] = {}
    if cell.first is not None:  # it picks from the features, or from what a frozen encoder makes of them (None)
        vectors = None if isinstance(trainer, Frozen) else pool.reshape(len(pool), -1).float()
        options |= {"first": cell.first, "embeddings": vectors}
    if cell.strategy in names(lambda one: one.passes):
        options["predict"] = passes
    learner = ActiveLearner(
        pool, trainer, classes=classes, strategy=strategy, seed=cell.seed, journal=journal, **options
    )
    if not learner.batches:
        learner.ask(min(cell.initial, total))
    recorded = list({record.round: record for record in journal.records if isinstance(record, Round)}.values())
    if recorded and recorded[-1].picked is None and recorded[-1].labels < total:
        recorded.pop()  # it was the last, and has chosen nothing
    while not recorded or recorded[-1].labels < total:
        # otherwise a process died after it chose the next batch, or the last round now has a batch to choose
        if len(learner.batches) == len(recorded) + 1 and len(learner.pending):
            learner.tell(learner.pending, dataset.y_train[learner.pending])
        recorded.append(_round(len(recorded), learner, trainer, cell, dataset, total))
        journal.append(recorded[-1])
        journal.sync()  # once a round: a round that a power loss takes is computed again
        notify(recorded[-1].labels, total, recorded[-1].test_accuracy)
    reason = "labels reached" if cell.labels == total else "pool exhausted" if total < MOST_LABELS else "50,000 labels"
    journal.append(End(reason=reason, labels=cell.labels))
    journal.sync()


def _round(number: int, learner: ActiveLearner, trainer: Any, cell: Cell, dataset: Dataset, total: int) -> Round:
    """Train, test, choose: the record of one round. The batch may have been chosen before the process was killed."""
    started = time.perf_counter()
    count = len(learner.labels)
    model, fit = learner.model, trainer.last
    assert fit is not None
    before_test = time.perf_counter()
    tested = align(predict(model, prepared(trainer, dataset.X_test)), model, dataset.classes)
    said = tested.probabilities.argmax(dim=1).numpy(force=True)
    predict_seconds = time.perf_counter() - before_test
    record = Round(
        round=number,
        labels=count,
        test_accuracy=float(np.mean(said == dataset.y_test)),
        train_accuracy=fit.train_accuracy,
        epochs=fit.epochs,
        restarts=fit.restarts,
        train_seconds=learner.seconds["train"],
        predict_seconds=predict_seconds,
    )
    record = replace(record, **_by_class(said, dataset))  # type: ignore[arg-type]
    if count >= total:
        return replace(record, seconds=time.perf_counter() - started)
    ids = learner.pending if len(learner.pending) else learner.ask(min(cell.batch_size, total - count))
    # A strategy that reads nothing needs no pass over the pool: only its batch is looked at. A frozen encoder has kept
    # its pass, and the rest costs little.
    unread = not strategies.declaration(strategies.get(learner.strategy)).reads and isinstance(trainer, Trainer)
    batch = predict(model, torch.from_numpy(dataset.X_train[ids])) if unread else learner.outputs[ids]
    features = gradient_embedding(batch)  # as in `badge.explain`, without its numbers about the whole pool
    rows = features.rows(torch.arange(len(batch), device=batch.device))
    diversity = log_det(rows, features.rank_bound)
    return replace(
        record,
        predict_seconds=predict_seconds + learner.seconds["predict"],
        select_seconds=learner.seconds["select"],
        mean_norm=float(rows.double().sq_norms().sqrt().mean()),
        log_det=diversity if math.isfinite(diversity) else None,
        picked=ids.tolist(),
        seconds=time.perf_counter() - started,
    )


def _by_class(said: np.ndarray[Any, Any], dataset: Dataset) -> dict[str, float]:
    """What accuracy hides where classes are of different sizes: the mean F1 of all, the mean recall of the rarest third."""
    right = np.bincount(dataset.y_test[said == dataset.y_test], minlength=dataset.classes)
    there, told = (np.bincount(y, minlength=dataset.classes) for y in (dataset.y_test, said))
    sizes = np.bincount(dataset.y_train, minlength=dataset.classes)
    rare = np.argsort(sizes, kind="stable")[: max(1, dataset.classes // 3)]
    f1, recall = 2 * right / np.maximum(there + told, 1), right / np.maximum(there, 1)
    return {"macro_f1": float(f1.mean()), "rare_recall": float(recall[rare].mean())}


def _flat(x: Any) -> Any:
    return x.reshape(len(x), -1)


def dataset_of(cell: Cell) -> Dataset:
    """The data set of a cell; a worker keeps the last one, because strategies are the inner loop of a grid."""
    if isinstance(own := held(cell.data), Dataset):
        return own
    return load(cell.data, cell.seed, cell.raw, cell.text, cell.label, cell.encoder)


@lru_cache(maxsize=1)
def load(name: str, seed: int, raw: bool, text: str | None, label: str | None, encoder: str | None) -> Dataset:
    if not is_own_file(name):
        return data.resolve(name, seed, standardise=not raw)
    encode = None if encoder is None else lambda texts: Frozen(encoder).prepare(texts).numpy()
    return data.load_file(name, seed, text, label, encode, standardise=not raw)
