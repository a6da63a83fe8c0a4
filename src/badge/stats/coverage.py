"""Notes on what is missing from results: repeats, rounds, strategies, the baseline."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from badge.core.catalog import REFERENCE
from badge.stats.columns import Note
from badge.stats.results import Results, Run

#: The paper trains until the training accuracy exceeds this.
TARGET = 0.99


def coverage_notes(results: Results, strategies: Sequence[str]) -> list[Note]:
    """Notes on missing repeats, unequal numbers of rounds, and strategies or the baseline missing from a setting.

    Args:
        results: what `badge.stats.load` gave.
        strategies: names, in the order to show.

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
        seeds = {run.seed for found in runs.values() for run in found}
        ends = [int(results.labels[run.rows.stop - 1]) for found in runs.values() for run in found]
        for name, found in runs.items():
            lacking = sorted(seeds - {run.seed for run in found})
            if found and lacking:
                text = f"{setting}: {name} lacks seed{'s' * (len(lacking) > 1)} {_names(lacking)}"
                notes.append(Note("missing repeats", f"{text}; it is paired on the {len(found)} it has"))
            short = {run.seed: int(results.labels[run.rows.stop - 1]) for run in found}
            if short := {seed: end for seed, end in short.items() if end < max(ends)}:
                stops = _names(f"seed {seed} at {end:,}" for seed, end in short.items())
                text = f"{setting}: {name} stops before {max(ends):,} labels: {stops}"
                notes.append(Note("unequal numbers of rounds", text))
            notes += _holes(results, f"{setting}: {name}", found)
    return notes


def capped_notes(results: Results) -> list[Note]:
    """The number of rounds of each setting that ended at a training accuracy of 99 % or less, by strategy.

    Args:
        results: what `badge.stats.load` gave.

    >>> from badge.stats import example
    >>> capped_notes(example())  # no training accuracies, no notes
    []
    """
    accuracy = results.column("train_accuracy")
    notes = []
    for setting in results.settings:
        found: Counter[str] = Counter()
        lowest, rounds = 1.0, 0
        for (where, name), runs in results.by_strategy.items():
            for run in runs if where == setting else ():
                below = accuracy[run.rows][accuracy[run.rows] <= TARGET]
                rounds += run.rows.stop - run.rows.start
                if len(below):
                    found[name] += len(below)
                    lowest = min(lowest, float(below.min()))
        if found:
            who = _names(f"{name} {count:,}" for name, count in found.items())
            count = f"{found.total():,} of {rounds:,} rounds"
            text = f"{setting}: {count}, down to {lowest:.4f} ({who}); they count as they are"
            notes.append(Note("rounds that ended at 99 % training accuracy or less", text))
    return notes


def _holes(results: Results, who: str, runs: Sequence[Run]) -> list[Note]:
    """A note on label counts inside a run's range that another repeat has and this run lacks."""
    rows = [results.labels[run.rows] for run in runs]
    grid = np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)
    holes = sum(int(((grid > own[0]) & (grid < own[-1])).sum()) - max(len(own) - 2, 0) for own in rows)
    text = f"{who}: {holes:,} label counts lie between the rounds of some repeats; means there are over fewer repeats"
    return [Note("unequal numbers of rounds", text)] if holes else []


def _names(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)
