"""The paper's evaluation, from stored results to every number of its figures; needs numpy and scipy, not torch.

>>> from badge import stats
>>> results = stats.example()                     # or stats.load("runs/"), stats.load("results.csv")
>>> stats.penalty_matrix(results).overall.averages.tolist()
[0.0, 0.5]
"""

import numpy as np

from badge.stats.budgets import Budgets, budget_notes, budget_values, label_budgets
from badge.stats.cdf import Cdf, NormalizedErrors, error_cdf, normalized_errors
from badge.stats.columns import OPTIONAL, REQUIRED, Note
from badge.stats.curves import Curve, Diversity, Mean, Timing, batch_diversity, learning_curve, mean_curve, round_times
from badge.stats.flat import write
from badge.stats.labels_saved import LabelsSaved, Saving, labels_to_reach, saved_labels
from badge.stats.notes import capped_notes, coverage_notes
from badge.stats.penalty import Matrix, Penalty, beats, critical_value, group_by, penalty_matrix, t_score
from badge.stats.reading import load
from badge.stats.results import Results, Run, Setting

__all__ = [
    "OPTIONAL", "REQUIRED", "Budgets", "Cdf", "Curve", "Diversity", "LabelsSaved", "Matrix", "Mean",
    "NormalizedErrors", "Note", "Penalty", "Results", "Run", "Saving", "Setting", "Timing", "batch_diversity",
    "beats", "budget_notes", "budget_values", "capped_notes", "coverage_notes", "critical_value", "error_cdf",
    "example", "group_by", "label_budgets", "labels_to_reach", "learning_curve", "load", "mean_curve",
    "normalized_errors", "penalty_matrix", "round_times", "saved_labels", "t_score", "write",
]  # fmt: skip


def example() -> Results:
    """Made-up results for trying things out: `badge` and `rand`, five rounds of 100 labels, three seeds.

    Returns:
        A `Results` table of one setting.

    >>> example()
    Results(6 runs of 2 strategies in 1 setting, 30 rows)
    """
    labels = np.arange(100, 600, 100)
    curves = {"badge": [0.4, 0.6, 0.8, 0.85, 0.9], "rand": [0.4, 0.4, 0.6, 0.7, 0.8]}
    rows = [
        ("letter", "mlp", name, 100, seed, int(n), round(accuracy + wiggle, 3))
        for name, curve in curves.items()
        for seed, wiggle in enumerate((-0.01, 0.0, 0.01))
        for n, accuracy in zip(labels, curve, strict=True)
    ]
    return Results.of(dict(zip(REQUIRED, zip(*rows, strict=True), strict=True)))
