"""The batches, round by round: how diverse they are, and how many seconds they took."""

from typing import NamedTuple

from badge.stats.curves import Mean, learning_curve, mean_curve
from badge.stats.results import Results, Setting


class Diversity(NamedTuple):
    """Means over the repeats, by the number of labels of the model that chose the batch."""

    log_det: Mean  # of the batch's Gram matrix; −inf where a repeat's batch was linearly dependent
    mean_norm: Mean  # of the batch's gradient embeddings


class Timing(NamedTuple):
    """Mean seconds over the repeats, by the number of labels of the round's model."""

    select: Mean
    predict: Mean
    train: Mean


def batch_diversity(results: Results, setting: Setting, strategy: str) -> Diversity:
    """Log-determinant and mean norm of a strategy's batches; both empty if the results do not hold them.

    Args:
        results: what `badge.stats.load` gave.
        setting: data, model and batch size.
        strategy: its name.

    Returns:
        Mean curves over the number of labels.

    >>> from badge.stats import example
    >>> batch_diversity(example(), example().settings[0], "badge").log_det.mean.tolist()
    []
    """
    return Diversity(*(_mean(results, setting, strategy, name) for name in ("log_det", "mean_norm")))


def round_times(results: Results, setting: Setting, strategy: str) -> Timing:
    """Seconds of each part of a round; empty if the results do not hold them.

    Args:
        results: what `badge.stats.load` gave.
        setting: data, model and batch size.
        strategy: its name.

    Returns:
        Mean curves over the number of labels.

    >>> from badge.stats import example
    >>> round_times(example(), example().settings[0], "badge").select.mean.tolist()
    []
    """
    return Timing(*(_mean(results, setting, strategy, f"{part}_seconds") for part in Timing._fields))


def _mean(results: Results, setting: Setting, strategy: str, column: str) -> Mean:
    return mean_curve(learning_curve(results, setting, strategy, column))
