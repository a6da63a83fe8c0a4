"""Strategies on frozen encoders by budget: accuracy above `rand` from the same start, data set and seed."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import REFERENCE, STRATEGIES
from badge.stats import Results, Setting

__all__ = ["BUDGETS", "above_reference", "by_budget"]

#: Rounds after the first batch: low, middle and high budgets.
BUDGETS = {"low (1–3)": (1, 3), "middle (4–10)": (4, 10), "high (11–19)": (11, 19)}

Pair = tuple[Setting, int]


def above_reference(results: Results, rounds: tuple[int, int]) -> dict[str, dict[Pair, float]]:
    """Of each strategy and each (setting, seed): points of mean accuracy above `rand` in these rounds."""
    means: dict[tuple[Setting, int], dict[str, float]] = defaultdict(dict)
    for run in results.runs:
        accuracy: NDArray[np.float64] = results.test_accuracy[run.rows]
        some = accuracy[rounds[0] : rounds[1] + 1]
        if len(some) == rounds[1] - rounds[0] + 1:
            means[run.setting, run.seed][run.strategy] = 100 * float(some.mean())
    found: dict[str, dict[Pair, float]] = defaultdict(dict)
    for pair, by_strategy in means.items():
        if REFERENCE in by_strategy:
            for strategy, mean in by_strategy.items():
                found[strategy][pair] = mean - by_strategy[REFERENCE]
    return found


def by_budget(results: Results) -> str:
    """A row per strategy: mean ± half a 95 % t interval over pairs of setting and seed, and in how many it is ahead."""
    columns = {name: above_reference(results, rounds) for name, rounds in BUDGETS.items()}
    known = {strategy for column in columns.values() for strategy in column} - {REFERENCE}
    lines = [f"| strategy | {' | '.join(columns)} | pairs |", "| --- | " + "--- | " * len(columns) + "--- |"]
    for strategy in [name for name in STRATEGIES if name in known]:
        cells = [_cell(np.array(list(column[strategy].values()))) for column in columns.values()]
        pairs = max(len(column[strategy]) for column in columns.values())
        lines.append(f"| `{strategy}` | {' | '.join(cells)} | {pairs} |")
    return "\n".join(lines)


def _cell(values: NDArray[np.float64]) -> str:
    if len(values) == 0:
        return "–"
    ahead = f"{int((values > 0).sum())} of {len(values)}"
    if len(values) == 1:
        return f"{values[0]:+.1f} (ahead in {ahead})"
    from scipy.stats import t

    half = float(t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return f"{values.mean():+.1f} ± {half:.1f} (ahead in {ahead})"
