"""Batch diversity: the log-determinant of the batch's Gram matrix and its mean gradient norm, round by round."""

from __future__ import annotations

from typing import NamedTuple

from badge.stats.curves import Mean, learning_curve, mean_curve
from badge.stats.results import Results, Setting

__all__ = ["Diversity", "batch_diversity"]


class Diversity(NamedTuple):
    """Means over the repeats, by the number of labels of the model that chose the batch."""

    log_det: Mean  # −inf where a repeat's batch was linearly dependent: a gap in the curve, as in the paper
    mean_norm: Mean


def batch_diversity(results: Results, setting: Setting, strategy: str) -> Diversity:
    """Log-determinant and mean norm of a strategy's batches; both empty where the results do not hold them.

    >>> from badge.stats import example
    >>> results = example()
    >>> batch_diversity(results, results.settings[0], "badge").log_det.mean.tolist()
    []
    """
    return Diversity(
        mean_curve(learning_curve(results, setting, strategy, "log_det")),
        mean_curve(learning_curve(results, setting, strategy, "mean_norm")),
    )
