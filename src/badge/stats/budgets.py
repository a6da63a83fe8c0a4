"""Label budgets: the numbers of labels at which the paper compares strategies, while accuracy still rises."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from badge.core.catalog import REFERENCE
from badge.errors import InputError
from badge.stats.columns import Note
from badge.stats.curves import Curve, learning_curve
from badge.stats.results import Results, Setting, check_setting

#: `rand` counts as saturated where its mean accuracy reaches this share of its final value.
SHARE = 0.99
#: Means of equal accuracies may differ by rounding.
ROUNDING = 1e-12


class Budgets(NamedTuple):
    """The label budgets of one setting, or why there are none."""

    setting: Setting
    smallest: int  # M
    saturated: int | None  # n₀
    values: tuple[int, ...]  # L
    why_empty: str | None


def saturation(curve: Curve) -> tuple[int, int]:
    """(n₀, number of repeats it rests on) of `rand`'s curve.

    n₀ is the smallest number of labels at which the mean accuracy reaches 99 % of its final value, even if the mean
    falls below that again later. The mean is over the repeats that reach the largest number of labels, at the label
    counts that all of these have: a mean over changing repeats would jump where one of them ends.

    >>> saturation(Curve(np.array([100, 200, 300, 400]), (0,), np.array([[0.5, 0.795, 0.7, 0.8]])))
    (200, 1)
    """
    last = ~np.isnan(curve.values[:, -1])
    values = curve.values[last]
    shared = ~np.isnan(values).any(axis=0)
    mean = values[:, shared].mean(axis=0)
    first = (mean >= SHARE * mean[-1] - ROUNDING).argmax()
    return int(curve.labels[shared][first]), int(last.sum())


def budget_values(smallest: int, saturated: int, batch_size: int) -> tuple[int, ...]:
    """The label budgets of the paper: M + 2^(m−1)·B for m = 1 … ⌊log₂((n₀ − M)/B)⌋.

    Args:
        smallest: M, the smallest number of labels of any run.
        saturated: n₀, the number of labels at which `rand` is as good as at its end.
        batch_size: B, the number of labels per round.

    Returns:
        The budgets in ascending order; () if there are none.

    >>> budget_values(100, 900, 100)
    (200, 300, 500)
    >>> budget_values(100, 200, 100)
    ()
    """
    count = ((saturated - smallest) // batch_size).bit_length() - 1  # ⌊log₂ x⌋ = ⌊log₂ ⌊x⌋⌋ for x ≥ 1
    return tuple(smallest + 2 ** (m - 1) * batch_size for m in range(1, count + 1))


def label_budgets(results: Results, setting: Setting) -> Budgets:
    """The label budgets of a setting: the numbers of labels at which strategies are compared.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        setting: a `Setting`: data, model and batch size.

    Returns:
        `Budgets`. If it has no values, it gives the reason.

    Raises:
        InputError: there are no results for this setting.

    >>> from badge.stats import Results, Setting
    >>> n = 9
    >>> table = Results.of({"data": ["a"] * n, "model": ["m"] * n, "strategy": ["rand"] * n, "batch_size": [100] * n,
    ...                     "seed": [0] * n, "labels": range(100, 1000, 100), "test_accuracy": np.arange(1, 10) / 10})
    >>> label_budgets(table, Setting("a", "m", 100)).values
    (200, 300, 500)
    """
    check_setting(results, setting)
    if setting not in results.settings:
        raise InputError(f"there are no results of {setting}; there are of {'; '.join(map(str, results.settings[:5]))}")
    smallest = min(int(results.labels[run.rows.start]) for run in results.runs if run.setting == setting)
    curve = learning_curve(results, setting, REFERENCE)
    if not curve.seeds:
        return Budgets(setting, smallest, None, (), f"there is no {REFERENCE} to take n₀ from")
    saturated, _ = saturation(curve)
    values = budget_values(smallest, saturated, setting.batch_size)
    why = None if values else f"n₀ = {saturated:,} is fewer than two batches above M = {smallest:,}"
    return Budgets(setting, smallest, saturated, values, why)


def budget_notes(results: Results, budgets: Sequence[Budgets]) -> list[Note]:
    """Notes on settings without label budgets, and on settings where n₀ rests on some repeats of `rand` only.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        budgets: the label budgets of each setting.

    Returns:
        One note for each such setting.

    Raises:
        InputError: these are no results.

    >>> from badge.stats import example
    >>> budget_notes(example(), [label_budgets(example(), example().settings[0])])
    []
    """
    notes = []
    for entry in budgets:
        if entry.why_empty:
            notes.append(Note("settings without label budgets", f"{entry.setting}: {entry.why_empty}; not counted"))
        curve = learning_curve(results, entry.setting, REFERENCE)
        if curve.seeds and (used := saturation(curve)[1]) < len(curve.seeds):
            text = f"{entry.setting}: n₀ is from the {used} of {len(curve.seeds)} {REFERENCE} repeats that ran longest"
            notes.append(Note("unequal numbers of rounds", text))
    return notes
