"""Cumulative distribution functions of normalised errors: mean error over `rand`'s mean error, over all settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import REFERENCE
from badge.errors import UnknownNameError
from badge.stats.budgets import ROUNDING, label_budgets
from badge.stats.columns import Note
from badge.stats.curves import learning_curve
from badge.stats.results import Results, Setting, compared


class NormalizedErrors(NamedTuple):
    """One row per (setting, label budget) with a positive error of `rand`, one column per strategy."""

    strategies: tuple[str, ...]
    settings: tuple[Setting, ...]  # [n], the setting of each row
    labels: tuple[int, ...]  # [n], the label budget of each row
    weights: NDArray[np.float64]  # [n], 1 / number of label budgets of the row's setting
    values: NDArray[np.float64]  # [n, S]; NaN where a strategy has no result
    notes: tuple[Note, ...]

    def where(self, **fixed: object) -> NormalizedErrors:
        """The rows of some settings, e.g. `where(batch_size=100)` or `where(model="mlp")`.

        Args:
            fixed: fields of `Setting`, with the value to keep.
        """
        keep = [i for i, s in enumerate(self.settings) if all(getattr(s, k) == v for k, v in fixed.items())]
        return self._replace(
            settings=tuple(self.settings[i] for i in keep),
            labels=tuple(self.labels[i] for i in keep),
            weights=self.weights[keep],
            values=self.values[keep],
        )


class Cdf(NamedTuple):
    """A step function: the share `share[i]` of the weight has a normalised error of at most `errors[i]`."""

    errors: NDArray[np.float64]  # [m], rising, distinct
    weights: NDArray[np.float64]  # [m], sums to 1
    share: NDArray[np.float64]  # [m], rises to 1


def normalized_errors(results: Results, strategies: Sequence[str] | None = None) -> NormalizedErrors:
    """The mean error of each strategy divided by that of `rand`, at every label budget of every setting.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        strategies: names of strategies, in the order to show; None: all strategies in the results.

    Returns:
        `NormalizedErrors`: one row per setting and budget, one column per strategy. Budgets where the error of `rand` is 0
        are left out, with a note.

    Raises:
        InputError: `results` is not a `Results`, or `strategies` is not a list of names.

    >>> from badge.stats import example
    >>> table = normalized_errors(example(), ["badge", "rand"])
    >>> table.labels, table.values.round(2).tolist()
    ((200, 300), [[0.67, 1.0], [0.5, 1.0]])
    """
    names = compared(results, strategies)
    rows: list[tuple[Setting, int, float, list[float]]] = []
    left_out: list[str] = []
    for setting in results.settings:
        budgets = label_budgets(results, setting).values
        curves = {name: learning_curve(results, setting, name) for name in (*names, REFERENCE)}
        for budget in budgets:
            found = {name: [1 - accuracy for accuracy in curve.at(budget).values()] for name, curve in curves.items()}
            errors = {name: float(np.mean(each)) if each else np.nan for name, each in found.items()}
            base = errors[REFERENCE]
            if base > ROUNDING:
                rows.append((setting, budget, 1 / len(budgets), [errors[name] / base for name in names]))
            else:
                why = f"has no {REFERENCE} result" if np.isnan(base) else f"{REFERENCE}'s error is 0"
                left_out.append(f"{setting} at {budget:,} labels: {why}")
    settings, labels, weights, ratios = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = np.array(ratios, dtype=np.float64).reshape(len(rows), len(names))
    for name, lacking in zip(names, np.isnan(table).sum(axis=0).tolist(), strict=True):
        if lacking:
            pairs = f"{lacking} of {len(rows)} (setting, budget) pairs"
            left_out.append(f"{name}: no result at {pairs}; its CDF is over the others")
    notes = tuple(Note("left out of the CDFs", text) for text in left_out)
    return NormalizedErrors(names, settings, labels, np.array(weights), table, notes)


def error_cdf(table: NormalizedErrors, strategy: str) -> Cdf:
    """The weighted CDF of the normalised errors of a strategy. A row weighs 1/n, for n label budgets in its setting.

    Args:
        table: the result of `normalized_errors`.
        strategy: the name of the strategy.

    Returns:
        A `Cdf`: the errors in ascending order, and the share of the total weight up to each.

    Raises:
        UnknownNameError: the table has no strategy of this name.

    >>> from badge.stats import example
    >>> cdf = error_cdf(normalized_errors(example()), "badge")
    >>> cdf.errors.round(2).tolist(), cdf.share.tolist()
    ([0.5, 0.67], [0.5, 1.0])
    """
    if strategy not in table.strategies:
        raise UnknownNameError("strategy", str(strategy), table.strategies)
    column = table.values[:, table.strategies.index(strategy)]
    there = ~np.isnan(column)
    errors, at = np.unique(np.round(column[there], 12), return_inverse=True)
    weights = np.bincount(at, weights=table.weights[there], minlength=len(errors)).astype(np.float64)
    weights /= max(weights.sum(), ROUNDING)
    share = np.cumsum(weights)
    share[-1:] = 1.0  # not 0.999…
    return Cdf(errors, weights, share)
