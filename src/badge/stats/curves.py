"""Learning curves: the repeats of one strategy in one setting on one grid of label counts; also of batches and seconds."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.names import name_of
from badge.stats.results import Results, Setting, check_setting


class Curve(NamedTuple):
    """R repeats at T numbers of labels; NaN where a repeat has no model with that number."""

    labels: NDArray[np.int64]  # [T], rising
    seeds: tuple[int, ...]  # [R], rising
    values: NDArray[np.float64]  # [R, T]

    def at(self, labels: int) -> dict[int, float]:
        """The value of each seed at this number of labels, for the seeds with such a model.

        Args:
            labels: a number of labels.
        """
        t = int(np.searchsorted(self.labels, labels))
        if t == len(self.labels) or self.labels[t] != labels:
            return {}
        return {s: float(v) for s, v in zip(self.seeds, self.values[:, t], strict=True) if not np.isnan(v)}


class Mean(NamedTuple):
    """The mean of the repeats at each number of labels, with its standard error (NaN for one repeat)."""

    labels: NDArray[np.int64]  # [T]
    repeats: NDArray[np.int64]  # [T]
    mean: NDArray[np.float64]  # [T]
    error: NDArray[np.float64]  # [T]


def learning_curve(results: Results, setting: Setting, strategy: str, column: str = "test_accuracy") -> Curve:
    """The learning curve of every repeat of a strategy in a setting. It is empty if there are none.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        setting: a `Setting`: data, model and batch size.
        strategy: the name of the strategy.
        column: the column of the results to plot against the number of labels.

    Returns:
        A `Curve`: labels [T] and values [repeats, T], NaN where a repeat has no round.

    Raises:
        InputError: `results` is not a `Results`, or `setting` is not a `Setting`.
        UnknownNameError: no column has this name.

    >>> from badge.stats import Results, Setting
    >>> table = Results.of({"data": ["a"] * 3, "model": ["m"] * 3, "strategy": ["rand"] * 3, "batch_size": [10] * 3,
    ...                     "seed": [0, 0, 1], "labels": [10, 20, 10], "test_accuracy": [0.5, 0.7, 0.6]})
    >>> curve = learning_curve(table, Setting("a", "m", 10), "rand")
    >>> curve.labels.tolist(), curve.values.tolist()
    ([10, 20], [[0.5, 0.7], [0.6, nan]])
    """
    check_setting(results, setting)
    runs = results.by_strategy.get((setting, name_of(strategy, "a strategy")), ())
    values = results.column(column)
    labels = np.unique(np.concatenate([results.labels[run.rows] for run in runs] or [np.empty(0, np.int64)]))
    grid = np.full((len(runs), len(labels)), np.nan)
    for r, run in enumerate(runs):
        grid[r, np.searchsorted(labels, results.labels[run.rows])] = values[run.rows]
    return Curve(labels, tuple(run.seed for run in runs), grid)


def mean_curve(curve: Curve) -> Mean:
    """The mean and the standard error σ̂/√R of the repeats, at each number of labels. One −inf makes the mean −inf.

    Args:
        curve: the curves of all repeats.

    Returns:
        A `Mean`: labels, number of repeats, mean and standard error, each [T].

    >>> import numpy as np
    >>> mean = mean_curve(Curve(np.array([10, 20]), (0, 1), np.array([[0.5, 0.7], [0.6, np.nan]])))
    >>> mean.repeats.tolist(), mean.mean.round(3).tolist(), mean.error.round(3).tolist()
    ([2, 1], [0.55, 0.7], [0.05, nan])
    """
    there = ~np.isnan(curve.values)
    keep = there.any(axis=0)
    values, there = curve.values[:, keep], there[:, keep]
    repeats = there.sum(axis=0)
    mean = np.where(there, values, 0.0).sum(axis=0) / np.maximum(repeats, 1)
    centre = np.where(np.isfinite(mean), mean, 0.0)
    squares = np.where(there & np.isfinite(values), values - centre, 0.0) ** 2
    deviation = np.sqrt(squares.sum(axis=0) / np.maximum(repeats - 1, 1))
    error = np.where((repeats > 1) & np.isfinite(mean), deviation / np.sqrt(np.maximum(repeats, 1)), np.nan)
    return Mean(curve.labels[keep], repeats, mean, error)


class Diversity(NamedTuple):
    """Means over the repeats, by the number of labels of the model that picked the batch."""

    log_det: Mean  # ln det of the batch's Gram matrix; −inf if the batch of a repeat was linearly dependent
    mean_norm: Mean  # mean length of the batch's gradient embeddings


class Timing(NamedTuple):
    """Mean seconds over the repeats, by the number of labels of the model of the round."""

    select: Mean
    predict: Mean
    train: Mean


def batch_diversity(results: Results, setting: Setting, strategy: str) -> Diversity:
    """The log-determinant and the mean norm of the batches of a strategy. Both are empty if the results lack them.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        setting: a `Setting`: data, model and batch size.
        strategy: the name of the strategy.

    Returns:
        Mean curves over the number of labels.

    Raises:
        InputError: `results` is not a `Results`, or `setting` is not a `Setting`.

    >>> from badge.stats import example
    >>> batch_diversity(example(), example().settings[0], "badge").log_det.mean.tolist()
    []
    """
    return Diversity(*(_mean(results, setting, strategy, name) for name in ("log_det", "mean_norm")))


def round_times(results: Results, setting: Setting, strategy: str) -> Timing:
    """The seconds of each part of a round. They are empty if the results lack them.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        setting: a `Setting`: data, model and batch size.
        strategy: the name of the strategy.

    Returns:
        Mean curves over the number of labels.

    Raises:
        InputError: `results` is not a `Results`, or `setting` is not a `Setting`.

    >>> from badge.stats import example
    >>> round_times(example(), example().settings[0], "badge").select.mean.tolist()
    []
    """
    return Timing(*(_mean(results, setting, strategy, f"{part}_seconds") for part in Timing._fields))


def _mean(results: Results, setting: Setting, strategy: str, column: str) -> Mean:
    return mean_curve(learning_curve(results, setting, strategy, column))
