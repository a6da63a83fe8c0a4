"""Tables of a report as CSV files, and those that a paper prints as LaTeX too. Empty cells are missing values."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge.core.spreadsheet import safe
from badge.core.writing import replacing
from badge.report.latex import latex_table
from badge.stats import Mean, Results, Setting

#: The columns that name a setting.
SETTING = ("data", "model", "batch_size")


class Table(NamedTuple):
    """One table: `<name>.csv`, and `<name>.tex` where `latex` is set."""

    name: str
    header: Sequence[str]
    rows: Iterable[Sequence[Any]]
    latex: bool = False

    def write(self, folder: Path) -> None:
        rows = list(self.rows)
        with replacing(folder / f"{self.name}.csv") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([cell(name) for name in self.header])
            writer.writerows([cell(value) for value in row] for row in rows)
        if self.latex:
            with replacing(folder / f"{self.name}.tex") as file:
                file.write(latex_table(self.header, rows))


def cell(value: Any) -> Any:
    """A float with ten significant digits, nothing for NaN and None, all else as it is.

    >>> cell(1 / 3), cell(2.0), cell(float("nan")), cell(float("-inf"))
    ('0.3333333333', '2', '', '-inf')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.10g}" if isinstance(value, float) else safe(value) if isinstance(value, str) else value


def by_strategy(results: Results, rows: Any) -> Iterator[tuple[Any, ...]]:
    """(data, model, batch size, strategy, *row) for every row of `rows(results, setting, strategy)`."""
    setting: Setting
    for setting, strategy in results.by_strategy:
        yield from ((*setting, strategy, *row) for row in rows(results, setting, strategy))


def side_by_side(*means: Mean) -> list[list[Any]]:
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
