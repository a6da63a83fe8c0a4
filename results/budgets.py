"""Labels saved by budget: what a strategy needs for the accuracy that `rand` has with a part of its labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from badge.core.catalog import REFERENCE
from badge.stats import Results, labels_to_reach, learning_curve, mean_curve

__all__ = ["SHARES", "labels_needed"]

#: Parts of the labels that `rand` ends with.
SHARES = {"a quarter": 0.25, "half": 0.5, "all": 1.0}


def labels_needed(results: Results, strategies: Sequence[str], share: float) -> dict[str, float]:
    """Labels for `rand`'s accuracy at this share of its run, divided by `rand`'s: the median over settings, by strategy.

    >>> from badge.stats import example
    >>> labels_needed(example(), ["badge", "rand"], 1.0)
    {'badge': 0.6, 'rand': 1.0}
    """
    found: dict[str, list[float]] = {name: [] for name in strategies}
    for setting in results.settings:
        base = mean_curve(learning_curve(results, setting, REFERENCE))
        end = base.labels[0] + share * (base.labels[-1] - base.labels[0])
        target = base.mean[[np.searchsorted(base.labels, end, side="right") - 1]]
        needed = {}
        for name in {*strategies, REFERENCE}:
            mean = mean_curve(learning_curve(results, setting, name))
            needed[name] = float(labels_to_reach(mean.labels, mean.mean[None], target)[0])
        for name in strategies:
            found[name].append(needed[name] / needed[REFERENCE])
    return {name: float(np.median(ratios)) for name, ratios in found.items()}
