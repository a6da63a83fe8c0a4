"""Notes on results: what is missing from them, and whether options, code and data differ among the runs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import REFERENCE
from badge.journal.events import Start, shown_model
from badge.stats.columns import Note
from badge.stats.results import Results, Setting

#: The paper trains until the training accuracy exceeds this.
TARGET = 0.99


def coverage_notes(results: Results, strategies: Sequence[str]) -> list[Note]:
    """Notes on missing repeats, unequal numbers of rounds, and settings without some strategy or the baseline `rand`.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        strategies: names of strategies, in the order to show.

    Returns:
        The notes; [] if nothing is missing.

    >>> from badge.stats import example
    >>> coverage_notes(example(), ["badge", "rand", "marg"])
    [Note(topic='missing strategies', text='letter · mlp · B = 100: no marg')]
    """
    notes = []
    for setting in results.settings:
        runs = {name: results.by_strategy.get((setting, name), ()) for name in dict.fromkeys((*strategies, REFERENCE))}
        if absent := [name for name in strategies if not runs[name] and name != REFERENCE]:
            notes.append(Note("missing strategies", f"{setting}: no {_names(absent)}"))
        if not runs[REFERENCE]:
            text = f"{setting}: no {REFERENCE}, so no label budgets, normalised errors or labels saved"
            notes.append(Note("missing baseline", text))
        ends = {(name, run.seed): int(results.labels[run.rows.stop - 1]) for name in runs for run in runs[name]}
        seeds, end = {seed for _, seed in ends}, max(ends.values(), default=0)
        for name, found in runs.items():
            lacking = sorted(seeds - {run.seed for run in found})
            if found and lacking:
                text = f"{setting}: {name} lacks seed{'s' * (len(lacking) > 1)} {_names(lacking)}"
                notes.append(Note("missing repeats", f"{text}; it is paired on the {len(found)} it has"))
            if stops := _names(f"seed {s} at {at:,}" for (one, s), at in ends.items() if one == name and at < end):
                notes.append(
                    Note("unequal numbers of rounds", f"{setting}: {name} stops before {end:,} labels: {stops}")
                )
            if holes := _holes([results.labels[run.rows] for run in found]):
                text = f"{setting}: {name}: {holes:,} label counts lie between the rounds of some repeats"
                notes.append(Note("unequal numbers of rounds", f"{text}; means there are over fewer repeats"))
    return notes


def _holes(rows: Sequence[NDArray[np.int64]]) -> int:
    """The number of label counts inside a run's range that another repeat has and this run lacks."""
    grid = np.unique(np.concatenate([*rows, np.empty(0, np.int64)]))
    return sum(int(((grid > own[0]) & (grid < own[-1])).sum()) - max(len(own) - 2, 0) for own in rows)


def capped_notes(results: Results) -> list[Note]:
    """Notes on rounds that ended at a training accuracy of 99 % or less: how many, by setting and strategy.

    Args:
        results: a `Results` table, from `badge.stats.load`.

    Returns:
        One note for each such setting.

    >>> from badge.stats import example
    >>> capped_notes(example())  # no training accuracies, no notes
    []
    """
    accuracy = results.column("train_accuracy")
    notes = []
    for setting in results.settings:
        reached = {
            name: np.concatenate([accuracy[run.rows] for run in runs])
            for (where, name), runs in results.by_strategy.items()
            if where == setting
        }
        capped = {name: rounds[rounds <= TARGET] for name, rounds in reached.items()}
        if who := _names(f"{name} {len(rounds):,}" for name, rounds in capped.items() if len(rounds)):
            below, rounds = np.concatenate([*capped.values()]), sum(map(len, reached.values()))
            count = f"{len(below):,} of {rounds:,} rounds, down to {below.min():.4f}"
            text = f"{setting}: {count} ({who}); they count as they are"
            notes.append(Note("rounds that ended at 99 % training accuracy or less", text))
    return notes


def _names(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)


#: Fields of a cell that may differ between the runs of one setting.
_NO_OPTIONS = ("data", "model", "batch_size", "strategy", "seed", "labels", "threads")


def data_names(starts: Sequence[Start]) -> dict[str, str]:
    """Names of data for a report: the data set's own name, if no other data have it."""
    called: dict[str, set[str]] = defaultdict(set)
    for start in starts:
        data = start.cell.data
        called[data].add(start.data.name or data if start.data else data)
    counts = Counter([*called, *(name for names in called.values() for name in names)])
    return {data: name for data, (name, *more) in called.items() if not more and name != data and counts[name] == 1}


def mixed_options(starts: Sequence[Start]) -> list[Note]:
    """Settings with runs of different options (width, learning rate …): their curves do not compare."""
    found: dict[tuple[Setting, str], set[str]] = defaultdict(set)
    for cell in (start.cell for start in starts):
        setting = Setting(cell.data, shown_model(cell.model, cell.first), cell.batch_size)
        for name in vars(cell).keys() - set(_NO_OPTIONS):
            found[setting, name].add(str(getattr(cell, name)))
    return [
        Note("runs with different options", f"{setting}: {name} is {' and '.join(sorted(values))}")
        for (setting, name), values in sorted(found.items())
        if len(values) > 1
    ]


def mixed_origins(starts: Sequence[Start]) -> list[Note]:
    """Notes on runs with different digests: of the user's code, or of the data at one seed.

    >>> from badge.journal.events import RunSettings
    >>> cell = RunSettings(data="own:load", model="mlp", strategy="rand", batch_size=10)
    >>> [note.topic for note in mixed_origins([Start(cell=cell, code={"data": digest}) for digest in "ab"])]
    ['runs of different code']
    """
    code: dict[tuple[str, str], set[str]] = defaultdict(set)
    data: dict[tuple[str, int, bool], set[str]] = defaultdict(set)
    for start in starts:
        for part, digest in (start.code or {}).items():
            code[getattr(start.cell, part), part].add(digest)
        if start.data is not None and start.data.digest:
            data[start.cell.data, start.cell.seed, start.cell.raw].add(start.data.digest)
    notes = [
        Note("runs of different code", f"{name} ({part}): {len(found)} versions of it made these runs")
        for (name, part), found in sorted(code.items())
        if len(found) > 1
    ]
    names = sorted({name for (name, _, _), found in data.items() if len(found) > 1})
    return notes + [Note("runs on different data", f"{name}: not the same examples at the same seed") for name in names]
