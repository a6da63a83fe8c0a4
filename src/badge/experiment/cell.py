"""One cell of an experiment: a thin loop over `ActiveLearner`, with stored labels in place of a person.

The journal is the learner's own, with four kinds of events added: `start` (once, first), `round` (one per trained
model), `resume` (taken up again under other versions) and `end`. Round r trains on the labels of asks 0 … r and chooses
ask r + 1; the order on disk is ask, round, tell. What is missing at the end of a journal is computed again, from the same
seeds, so a cell that was killed ends with the same picks and accuracies.
"""

import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from badge import data, strategies
from badge.core.threads import threads
from badge.data import Dataset
from badge.data.texts import is_own_file
from badge.experiment import origin
from badge.experiment.grid import Cell, held, journal_path
from badge.features import gradient_embedding
from badge.journal import Journal
from badge.journal.events import Data, End, Resume, Round, RunSettings, Start
from badge.learner.learner import ActiveLearner
from badge.models import predict
from badge.outputs import Outputs
from badge.strategies import ALBL, Stateful
from badge.strategies.bald import compares
from badge.strategies.explain import log_det
from badge.training import Frozen, networks
from badge.training.fit import align, prepared
from badge.training.linear import Linear, LinearHead
from badge.training.trainer import Trainer

#: where a run without a number of labels ends, if the pool lasts that long (as in the authors' code)
MOST_LABELS = 50_000

#: the model that is a linear head on the features
LINEAR = "linear"
#: what a strategy that compares several passes is given: their number, and the share of its inputs that a linear head drops
PASSES, DROPPED = 20, 0.5

#: called after each round with the labels so far, the labels at the end, and the test accuracy
Notify = Callable[[int, int, float], None]


def run_cell(cell: Cell, folder: Path, notify: Notify = lambda labels, total, accuracy: None) -> None:
    """Run a cell, or resume it from its journal.

    You can run a finished cell again with more `labels`. The results are the same, bit for bit, as those of one longer run.

    Args:
        cell: the settings of the run.
        folder: the folder of its journal.
        notify: a function that is called after each round, with (labels, labels at the end, test accuracy).

    Raises:
        JournalError: the journal is damaged, in use, or belongs to other settings.
        DataError: the data cannot be loaded.

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
            start = origin.check_start(journal.records[0], cell, journal.path)
            marks = [r for r in journal.records if isinstance(r, End) or (isinstance(r, Resume) and r.more)]
            last = marks[-1] if marks else None
            more = origin.goes_on(cell, start, last, journal.path)
            if more:
                origin.check_whole_batches(journal, cell)
            elif isinstance(last, End):
                return
        dataset = dataset_of(cell)
        if cell.model == LINEAR:  # it reads rows of numbers: images too
            train, test = (x.reshape(len(x), -1) for x in (dataset.X_train, dataset.X_test))
            dataset = replace(dataset, X_train=train, X_test=test)
        _start(journal, cell, dataset, more)
        _rounds(journal, cell, dataset, notify)


def _start(journal: Journal, cell: Cell, dataset: Dataset, more: bool) -> None:
    """Write `start`, or `resume` where versions have changed or the run goes on to more labels (`more`)."""
    now: dict[str, Any] = {"versions": origin.versions(), "git": origin.git_revision(Path.cwd())}
    if not journal.records:
        about = {key: getattr(dataset, key) for key in ("name", "rows", "total", "complete", "text")}
        described = Data(**about, digest=origin.data_digest(dataset))
        settings, code = RunSettings(**vars(cell)), origin.code_digests(cell) or None
        journal.append(Start(cell=settings, data=described, code=code, **now))
        return
    origin.check_data(journal.records[0], dataset, journal.path)
    last = [record for record in journal.records if isinstance(record, Start | Resume)][-1]
    if more or {"versions": last.versions, "git": last.git} != now:
        journal.append(Resume(more=more, labels=cell.labels if more else None, **now))


def _rounds(journal: Journal, cell: Cell, dataset: Dataset, notify: Notify) -> None:
    trainer = trainer_of(cell, dataset)
    pool = torch.from_numpy(dataset.X_train)
    total = min(cell.labels or MOST_LABELS, len(pool))
    # albl is told the number of batches after the first, which sets its rates
    batches = max(1, math.ceil((total - cell.initial) / cell.batch_size))
    strategy = ALBL(rounds=batches) if cell.strategy == "albl" else held(cell.strategy)
    if isinstance(strategy, Stateful):
        strategy = deepcopy(strategy)  # cells may share an object, and each begins without memory
    options: dict[str, Any] = {"strategy": strategy, "seed": cell.seed, "journal": journal}
    if cell.first is not None:  # it picks from the features, or from what a frozen encoder makes of them (None)
        vectors = None if isinstance(trainer, Frozen) else pool.reshape(len(pool), -1).float()
        options |= {"first": cell.first, "embeddings": vectors}
    if compares(strategies.get(strategy)):
        options["predict"] = passes
    learner = ActiveLearner(pool, trainer, classes=dataset.classes, **options)
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
    started, count = time.perf_counter(), len(learner.labels)
    model, fit = learner.model, trainer.last
    before_test = time.perf_counter()
    tested = align(predict(model, prepared(trainer, dataset.X_test)), model, dataset.classes)
    said = tested.probabilities.argmax(dim=1).numpy(force=True)
    predict_seconds = time.perf_counter() - before_test
    record = Round(
        round=number,
        labels=count,
        test_accuracy=float(np.mean(said == dataset.y_test)),
        **_by_class(said, dataset),  # type: ignore[arg-type]
        **{name: getattr(fit, name) for name in ("train_accuracy", "epochs", "restarts")},
        train_seconds=learner.seconds["train"],
        predict_seconds=predict_seconds,
    )
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


def trainer_of(cell: Cell, dataset: Dataset) -> Trainer | Linear:
    """The paper's training of the cell's network; a linear head; or the frozen encoder that "package.module:make" gives."""
    if cell.model == LINEAR:
        return Linear()
    build = networks.resolve(cell.model, cell.width)
    if ":" in cell.model and isinstance(made := build(dataset.shape, dataset.classes), Frozen):
        return made
    options: dict[str, Any] = {} if cell.max_epochs is None else {"max_epochs": cell.max_epochs}
    return Trainer(lambda: build(dataset.shape, dataset.classes), lr=cell.lr or dataset.lr, **options)


def passes(model: nn.Module, pool: Any) -> Outputs:
    """What several passes with dropout say. A linear head, which is fitted without it, drops half of its inputs."""
    if isinstance(model, LinearHead):
        model = nn.Sequential(nn.Dropout(DROPPED), model)
    return predict(model, pool, passes=PASSES)


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
