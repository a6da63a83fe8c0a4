"""Every table and every curve of a report as a CSV file. Empty cells are missing values; `-inf` and `inf` are meant.

What a paper prints (matrices, labels saved, budgets) is there in LaTeX too.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.spreadsheet import safe
from badge.core.writing import replacing
from badge.report.latex import latex_table
from badge.report.paper import Counterpart
from badge.stats import (
    Budgets,
    Cdf,
    LabelsSaved,
    Matrix,
    Mean,
    Note,
    Results,
    batch_diversity,
    learning_curve,
    mean_curve,
    round_times,
)

__all__ = [
    "write_budgets",
    "write_cdfs",
    "write_curves",
    "write_diversity",
    "write_index",
    "write_labels_saved",
    "write_matrices",
    "write_matrix",
    "write_notes",
    "write_timing",
]

_WHERE = ("data", "model", "batch_size", "strategy")


def cell(value: Any) -> Any:
    """A float with ten significant digits, nothing for NaN and None, all else as it is.

    >>> cell(1 / 3), cell(2.0), cell(float("nan")), cell(float("-inf"))
    ('0.3333333333', '2', '', '-inf')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.10g}" if isinstance(value, float) else safe(value) if isinstance(value, str) else value


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], latex: bool = False) -> None:
    rows = list(rows)
    with replacing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([cell(name) for name in header])
        writer.writerows([cell(value) for value in row] for row in rows)
    if latex:
        with replacing(path.with_suffix(".tex")) as file:
            file.write(latex_table(header, rows))


def _matrix_rows(matrix: Matrix) -> list[list[Any]]:
    rows = [[name, *values] for name, values in zip(matrix.strategies, matrix.values.tolist(), strict=True)]
    return [*rows, ["average", *matrix.averages.tolist()]]


def write_matrix(path: Path, matrix: Matrix) -> None:
    _write(path, ["strategy", *matrix.strategies], _matrix_rows(matrix), latex=True)


def write_matrices(path: Path, by: str, groups: Mapping[Any, Matrix], strategies: Sequence[str]) -> None:
    rows = [[group, *row] for group, matrix in groups.items() for row in _matrix_rows(matrix)]
    _write(path, [by, "strategy", *strategies], rows, latex=True)


def write_cdfs(path: Path, groups: Mapping[tuple[str, Any], Mapping[str, Cdf]]) -> None:
    """`groups`: ("all" | "batch_size" | "model", value) -> strategy -> CDF."""
    rows = (
        [by, group, strategy, *point]
        for (by, group), cdfs in groups.items()
        for strategy, cdf in cdfs.items()
        for point in zip(cdf.errors.tolist(), cdf.weights.tolist(), cdf.share.tolist(), strict=True)
    )
    _write(path, ["group_by", "group", "strategy", "normalized_error", "weight", "cdf"], rows)


def write_curves(path: Path, results: Results) -> None:
    rows: list[Sequence[Any]] = []
    for setting, strategy in results.by_strategy:
        mean = mean_curve(learning_curve(results, setting, strategy))
        columns = (mean.labels, mean.repeats, mean.mean, mean.error)
        rows += [(*setting, strategy, *row) for row in zip(*(c.tolist() for c in columns), strict=True)]
    _write(path, [*_WHERE, "labels", "repeats", "test_accuracy", "standard_error"], rows)


def write_diversity(path: Path, results: Results) -> None:
    rows: list[Sequence[Any]] = []
    for setting, strategy in results.by_strategy:
        rows += [(*setting, strategy, *row) for row in _side_by_side(*batch_diversity(results, setting, strategy))]
    header = ["labels", "repeats", "log_det", "log_det_standard_error", "mean_norm", "mean_norm_standard_error"]
    _write(path, [*_WHERE, *header], rows)


def write_timing(path: Path, results: Results) -> None:
    rows: list[Sequence[Any]] = []
    for setting, strategy in results.by_strategy:
        rows += [(*setting, strategy, *row) for row in _side_by_side(*round_times(results, setting, strategy))]
    names = ("select_seconds", "predict_seconds", "train_seconds")
    header = [part for name in names for part in (name, f"{name}_standard_error")]
    _write(path, [*_WHERE, "labels", "repeats", *header], rows)


def _side_by_side(*means: Mean) -> list[list[Any]]:
    """Rows [labels, repeats, mean, error, mean, error, …] over all label counts that any of the means has."""
    grid = np.unique(np.concatenate([mean.labels for mean in means]))
    repeats = np.zeros(len(grid), dtype=np.int64)
    columns = []
    for mean in means:
        at = np.searchsorted(grid, mean.labels)
        repeats[at] = np.maximum(repeats[at], mean.repeats)
        for values in (mean.mean, mean.error):
            column = np.full(len(grid), np.nan)
            column[at] = values
            columns.append(column.tolist())
    return [list(row) for row in zip(grid.tolist(), repeats.tolist(), *columns, strict=True)]


def write_labels_saved(path: Path, saved: LabelsSaved) -> None:
    """One row per setting and strategy, then the medians over all settings (`repeats`: the number of settings)."""
    rows = []
    for entry in (*saved.savings, *saved.medians):
        where = ("median", "", "") if entry.setting is None else entry.setting
        numbers = (
            entry.repeats,
            entry.target,
            entry.labels,
            entry.reference_labels,
            entry.ratio,
            entry.low,
            entry.high,
        )
        rows.append((*where, entry.strategy, *numbers))
    header = ["repeats", "rand_final_accuracy", "labels", "rand_labels", "ratio", "ratio_low", "ratio_high"]
    _write(path, [*_WHERE, *header], rows, latex=True)


def write_budgets(path: Path, budgets: Sequence[Budgets]) -> None:
    rows = [
        (*entry.setting, entry.smallest, entry.saturated, " ".join(map(str, entry.values)), entry.why_empty)
        for entry in budgets
    ]
    _write(path, [*_WHERE[:3], "smallest_labels", "n0", "budgets", "why_empty"], rows, latex=True)


def write_index(path: Path, index: Sequence[Counterpart]) -> None:
    rows = [(row.number, row.what, " ".join(row.ours), row.state) for row in index]
    _write(path, ["paper_figure", "what", "figures", "state"], rows)


def write_notes(path: Path, notes: Sequence[Note]) -> None:
    _write(path, ["topic", "note"], notes)
