"""Labels saved: the number of labels that a strategy needs for `rand`'s final accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import REFERENCE
from badge.core.rng import derive
from badge.stats.checks import compared
from badge.stats.curves import learning_curve
from badge.stats.results import Note, Results, Setting

__all__ = ["LabelsSaved", "Saving", "labels_to_reach", "saved_labels"]

#: Bootstrap draws, and the share of them that the interval covers.
DRAWS = 2000
COVERAGE = 0.95
ROUNDING = 1e-12


class Saving(NamedTuple):
    """One strategy in one setting (None: the median over all settings). inf: `rand`'s final accuracy is not reached."""

    setting: Setting | None
    strategy: str
    repeats: int  # seeds shared with rand; for the median: settings
    target: float  # rand's final mean accuracy
    labels: float  # that the strategy needs for it
    reference_labels: float  # that rand needs for it
    ratio: float  # labels / reference_labels: 0.4 means 40 % of the labels
    low: float
    high: float


class LabelsSaved(NamedTuple):
    savings: tuple[Saving, ...]  # by setting, then by strategy
    medians: tuple[Saving, ...]  # by strategy
    notes: tuple[Note, ...]


def labels_to_reach(
    labels: NDArray[np.int64], accuracy: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The number of labels at which each curve (row) first reaches its target, linearly interpolated; inf if it never does.

    >>> import numpy as np
    >>> labels_to_reach(np.array([100, 200, 300]), np.array([[0.5, 0.75, 1.0]]), np.array([0.875])).tolist()
    [250.0]
    """
    reached = accuracy >= target[:, None] - ROUNDING
    first = reached.argmax(axis=1)
    rows = np.arange(len(accuracy))
    before = np.maximum(first - 1, 0)
    low, high = accuracy[rows, before], accuracy[rows, first]
    rise = np.where(high > low, high - low, 1.0)
    share = np.where(first > 0, np.clip((target - low) / rise, 0.0, 1.0), 1.0)
    at = labels[before] + share * (labels[first] - labels[before])
    return np.where(reached.any(axis=1), at, np.inf)


def saved_labels(results: Results, strategies: Sequence[str] | None = None, seed: int = 0) -> LabelsSaved:
    """For each setting and strategy the labels that reach `rand`'s final accuracy, as a ratio to `rand`'s own number.

    The interval is a paired percentile bootstrap: each draw takes seeds with replacement, the same for the strategy and
    for `rand`, and recomputes everything, the target included. Both curves are means over the seeds that the two share,
    at the label counts that all of these runs have.

    >>> from badge.stats import example
    >>> saving = saved_labels(example(), ["badge"]).savings[0]
    >>> saving.labels, saving.reference_labels, saving.ratio
    (300.0, 500.0, 0.6)
    """
    names = compared(results, strategies)
    savings: list[Saving] = []
    notes: list[Note] = []
    draws: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for setting in results.settings:
        if (setting, REFERENCE) not in results.by_strategy:
            notes.append(Note("left out of labels saved", f"{setting}: there is no {REFERENCE} to compare with"))
            continue
        for name in names:
            if name != REFERENCE and (setting, name) in results.by_strategy:
                saving, ratios = _saving(results, setting, name, seed, notes)
                if saving is not None:
                    savings.append(saving)
                    draws[name].append(ratios)
    medians = tuple(
        _median([saving for saving in savings if saving.strategy == name], np.array(draws[name]))
        for name in names
        if draws[name]
    )
    return LabelsSaved(tuple(savings), medians, tuple(notes))


def _saving(
    results: Results, setting: Setting, name: str, seed: int, notes: list[Note]
) -> tuple[Saving | None, NDArray[np.float64]]:
    ours, base = learning_curve(results, setting, name), learning_curve(results, setting, REFERENCE)
    seeds = sorted(set(ours.seeds) & set(base.seeds))
    mine = ours.values[[ours.seeds.index(s) for s in seeds]]
    theirs = base.values[[base.seeds.index(s) for s in seeds]]
    mine_at, theirs_at = ~np.isnan(mine).any(axis=0), ~np.isnan(theirs).any(axis=0)
    if not seeds or not mine_at.any() or not theirs_at.any():
        notes.append(Note("left out of labels saved", f"{setting}: {name} and {REFERENCE} share no seed"))
        return None, np.empty(0)
    cut = int(base.labels[theirs_at][-1])
    if cut < base.labels[-1]:
        text = f"{setting}: {name} is compared at {cut:,} labels, the last that all paired {REFERENCE} runs have"
        notes.append(Note("unequal numbers of rounds", text))
    # the first row weighs every seed equally: the estimate itself; the others are the bootstrap draws
    rng = derive(seed, "labels saved", *setting, name)
    picks = rng.integers(len(seeds), size=(DRAWS, len(seeds)))
    counts = (picks[:, :, None] == np.arange(len(seeds))).sum(axis=1)
    counts, drawn = np.unique(counts, axis=0, return_inverse=True)  # five seeds have only 126 distinct resamples
    weights = np.vstack([np.ones(len(seeds)), counts]) / len(seeds)
    mine_mean, theirs_mean = weights @ mine[:, mine_at], weights @ theirs[:, theirs_at]
    target = theirs_mean[:, -1]
    needed = labels_to_reach(ours.labels[mine_at], mine_mean, target)
    reference = labels_to_reach(base.labels[theirs_at], theirs_mean, target)
    ratios = needed / np.maximum(reference, 1)
    resampled = ratios[1:][drawn.ravel()]
    low, high = _interval(resampled) if len(seeds) > 1 else (np.nan, np.nan)
    if np.isinf(needed[0]):
        text = f"{setting}: {name} does not reach {REFERENCE}'s final accuracy of {target[0]:.4f}"
        notes.append(Note("final accuracy of rand not reached", text))
    estimate = (float(target[0]), float(needed[0]), float(reference[0]), float(ratios[0]))
    return Saving(setting, name, len(seeds), *estimate, low, high), resampled


def _interval(ratios: NDArray[np.float64]) -> tuple[float, float]:
    """The percentile interval, by order statistics: no arithmetic between a finite ratio and inf."""
    edge = (1 - COVERAGE) / 2
    low, high = np.quantile(ratios, [edge, 1 - edge], method="inverted_cdf")
    return float(low), float(high)


def _median(savings: list[Saving], draws: NDArray[np.float64]) -> Saving:
    """The (lower) median of the settings' ratios; unreached settings count as inf. No interval where one has none."""
    middle = np.quantile(draws, 0.5, axis=0, method="inverted_cdf")
    ratio = float(np.quantile([saving.ratio for saving in savings], 0.5, method="inverted_cdf"))
    known = all(saving.repeats > 1 for saving in savings)
    edges = _interval(middle) if known else (np.nan, np.nan)
    return Saving(None, savings[0].strategy, len(savings), np.nan, np.nan, np.nan, ratio, *edges)
