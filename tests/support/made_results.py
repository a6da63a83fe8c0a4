"""Results made up by hand, for formulas whose values can be worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from badge import stats
from badge.stats import Results, Setting

A = Setting("a", "mlp", 100)
B = Setting("b", "vgg11", 100)
#: three repeats around a mean
SPREAD = (-0.01, 0.0, 0.01)


def table(runs: Mapping[tuple[Setting, str], Mapping[int, Sequence[float | None]]], initial: int = 100) -> Results:
    """Results of {(setting, strategy): {seed: accuracies of the rounds}}; None: the round is missing."""
    rows = [
        (*setting[:2], strategy, setting.batch_size, seed, initial + setting.batch_size * i, accuracy)
        for (setting, strategy), repeats in runs.items()
        for seed, accuracies in repeats.items()
        for i, accuracy in enumerate(accuracies)
        if accuracy is not None
    ]
    return Results.of(dict(zip(stats.REQUIRED, zip(*rows, strict=True), strict=True)))


def repeats(means: Sequence[float], spread: Sequence[float] = SPREAD) -> dict[int, list[float | None]]:
    return {seed: [mean + offset for mean in means] for seed, offset in enumerate(spread)}


#: nine rounds of 100 labels from 100 on; reaches 99 % of 0.9 at 900 labels only
RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
