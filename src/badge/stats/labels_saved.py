"""Labels saved: the number of labels that a strategy needs for `rand`'s final accuracy."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import REFERENCE
from badge.core.rng import derive
from badge.stats.budgets import ROUNDING
from badge.stats.columns import Note
from badge.stats.curves import learning_curve
from badge.stats.penalty import critical_value
from badge.stats.results import Results, Setting, compared

Floats = NDArray[np.float64]

#: Confidence of the intervals, and the bootstrap draws for the medians.
CONFIDENCE = 0.95
DRAWS = 2000
#: Below this number of repeats a setting has no interval; below this number of data sets the median over settings has none.
FEWEST_REPEATS, FEWEST_DATA_SETS = 3, 5


class Saving(NamedTuple):
    """The saving of a strategy in a setting (None: the median over settings); inf if the target is not reached."""

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


def labels_to_reach(labels: NDArray[np.int64], accuracy: Floats, target: Floats) -> Floats:
    """The number of labels at which each curve first reaches its target, linearly interpolated; inf if it never does.

    Args:
        labels: numbers of labels, [T], ascending.
        accuracy: one curve per row, [R, T].
        target: the target of each curve, [R].

    Returns:
        Numbers of labels, [R].

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
    return np.where(reached.any(axis=1), labels[before] + share * (labels[first] - labels[before]), np.inf)


def saved_labels(results: Results, strategies: Sequence[str] | None = None, seed: int = 0) -> LabelsSaved:
    """The labels that each strategy needs to reach `rand`'s final accuracy, as a ratio to those of `rand`.

    Both curves are means over the seeds that the two strategies share, at the numbers of labels that all these runs have.
    The 95 % interval of a ratio is Student's t on its logarithm. Its standard error is a jackknife over the seeds:
    everything, including the target, is recomputed without each seed. A curve that does not reach the target counts with
    its last number of labels, and the interval is then open above. Medians are over the settings that all these strategies
    have. Their interval is a bootstrap over the data sets, because settings share data and seeds.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        strategies: names of strategies, in the order to show; None: all strategies in the results.
        seed: the seed of the bootstrap.

    Returns:
        `LabelsSaved`: a `Saving` for each setting and strategy, and the median of each strategy.

    Raises:
        InputError: `results` is not a `Results`, or `strategies` is not a list of names.

    >>> from badge.stats import example
    >>> saving = saved_labels(example(), ["badge"]).savings[0]
    >>> saving.labels, saving.reference_labels, saving.ratio
    (300.0, 500.0, 0.6)
    """
    names = compared(results, strategies)
    savings: list[Saving] = []
    notes: list[Note] = []
    for setting in results.settings:
        if (setting, REFERENCE) not in results.by_strategy:
            notes.append(Note("left out of labels saved", f"{setting}: there is no {REFERENCE} to compare with"))
            continue
        for name in names:
            if name != REFERENCE and (setting, name) in results.by_strategy:
                saving = _saving(results, setting, name, notes)
                savings += [] if saving is None else [saving]
    everywhere = [found for name in names if (found := {s.setting for s in savings if s.strategy == name})]
    shared = set.intersection(*everywhere) if everywhere else set()
    each = {name: [s for s in savings if s.strategy == name and s.setting in shared] for name in names}
    medians = tuple(_median(found, derive(seed, "labels saved", name)) for name, found in each.items() if found)
    return LabelsSaved(tuple(savings), medians, tuple(notes))


def _saving(results: Results, setting: Setting, name: str, notes: list[Note]) -> Saving | None:
    """What a strategy saves in one setting, by the mean curves of the seeds that it shares with the baseline."""
    ours, base = learning_curve(results, setting, name), learning_curve(results, setting, REFERENCE)
    seeds = sorted(set(ours.seeds) & set(base.seeds))
    mine, theirs = (curve.values[[curve.seeds.index(s) for s in seeds]] for curve in (ours, base))
    mine_at, theirs_at = (~np.isnan(values).any(axis=0) for values in (mine, theirs))
    if not seeds or not mine_at.any() or not theirs_at.any():
        notes.append(Note("left out of labels saved", f"{setting}: {name} and {REFERENCE} share no seed"))
        return None
    cut = int(base.labels[theirs_at][-1])
    if cut < base.labels[-1]:
        text = f"{setting}: {name} is compared at {cut:,} labels, the last that all paired {REFERENCE} runs have"
        notes.append(Note("unequal numbers of rounds", text))
    # the first row weighs all seeds alike, for the estimate; each of the others leaves one seed out
    n = len(seeds)
    weights = np.vstack([np.full(n, 1 / n), (1 - np.eye(n)) / max(n - 1, 1)])
    mine_mean, theirs_mean = weights @ mine[:, mine_at], weights @ theirs[:, theirs_at]
    target = theirs_mean[:, -1]
    needed = labels_to_reach(ours.labels[mine_at], mine_mean, target)
    reference = np.maximum(labels_to_reach(base.labels[theirs_at], theirs_mean, target), 1)
    if np.isinf(needed[0]):
        text = f"{setting}: {name} does not reach {REFERENCE}'s final accuracy of {target[0]:.4f}"
        notes.append(Note("final accuracy of rand not reached", text))
    low, high = t_interval(np.log(np.clip(needed, 1, ours.labels[mine_at][-1]) / reference))
    estimate = (float(target[0]), float(needed[0]), float(reference[0]), float(needed[0] / reference[0]))
    return Saving(setting, name, n, *estimate, low, high if np.isfinite(needed).all() else high + np.inf)


def t_interval(logs: Floats) -> tuple[float, float]:
    """The interval of exp(logs[0]): Student's t with the jackknife's standard error, from the estimates without each seed.

    NaN for fewer than three seeds.

    >>> import numpy as np
    >>> [round(edge, 3) for edge in t_interval(np.log([0.5, 0.45, 0.5, 0.55]))]
    [0.304, 0.823]
    """
    estimate, without = logs[0], logs[1:]
    repeats = len(without)
    if repeats < FEWEST_REPEATS:
        return np.nan, np.nan
    half = critical_value(repeats, 1 - CONFIDENCE) * np.sqrt((repeats - 1) * without.var())
    return float(np.exp(estimate - half)), float(np.exp(estimate + half))


def expanded(tail: float, count: int) -> float:
    """The share of draws to cut off on either side of a bootstrap of `count` things, so that its interval is as wide as
    Student's t would make that of a mean (Hesterberg 2015, "What Teachers Should Know About the Bootstrap").

    >>> round(expanded(0.025, 9), 4), round(expanded(0.025, 1000), 4)
    (0.0072, 0.0248)
    """
    return NormalDist().cdf(-critical_value(count, 2 * tail) * (count / (count - 1)) ** 0.5)


def _median(savings: list[Saving], rng: np.random.Generator) -> Saving:
    """The median of the settings' ratios, where one that is not reached counts as inf; its interval over the data sets."""
    groups: dict[str, list[float]] = defaultdict(list)
    for saving in savings:
        assert saving.setting is not None
        groups[saving.setting.data].append(saving.ratio)
    ratio, sets = float(np.median([saving.ratio for saving in savings])), list(groups.values())
    low = high = np.nan
    if len(sets) >= FEWEST_DATA_SETS:
        picks = rng.integers(len(sets), size=(DRAWS, len(sets)))
        draws = [np.median([value for i in row for value in sets[i]]) for row in picks.tolist()]
        edge = expanded((1 - CONFIDENCE) / 2, len(sets))
        low, high = (float(v) for v in np.quantile(draws, [edge, 1 - edge], method="inverted_cdf"))
    return Saving(None, savings[0].strategy, len(savings), np.nan, np.nan, np.nan, ratio, low, high)
