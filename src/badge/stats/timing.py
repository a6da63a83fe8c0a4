"""Where the time went: seconds of selection, prediction and training, round by round."""

from __future__ import annotations

from typing import NamedTuple

from badge.stats.curves import Mean, learning_curve, mean_curve
from badge.stats.results import Results, Setting

__all__ = ["Timing", "round_times"]


class Timing(NamedTuple):
    """Mean seconds over the repeats, by the number of labels of the round's model."""

    select: Mean
    predict: Mean
    train: Mean


def round_times(results: Results, setting: Setting, strategy: str) -> Timing:
    """Seconds of each part of a round; empty where the results do not hold them.

    >>> from badge.stats import example
    >>> results = example()
    >>> round_times(results, results.settings[0], "badge").select.labels.tolist()
    []
    """
    names = ("select_seconds", "predict_seconds", "train_seconds")
    return Timing(*(mean_curve(learning_curve(results, setting, strategy, name)) for name in names))
