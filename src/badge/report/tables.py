"""Tables of a report as CSV files, and those that a paper prints as LaTeX too. Empty cells are missing values."""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge.core.spreadsheet import safe
from badge.core.writing import replacing
from badge.stats import Mean, Results

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


def by_strategy(results: Results, means: Callable[..., Sequence[Mean]]) -> Iterator[tuple[Any, ...]]:
    """Rows (data, model, batch size, strategy, labels, repeats, mean, error, mean, error, …) at all label counts that any of
    `means(results, setting, strategy)` has."""
    for setting, strategy in results.by_strategy:
        found = means(results, setting, strategy)
        grid = np.unique(np.concatenate([mean.labels for mean in found]))
        repeats, columns = np.zeros(len(grid), dtype=np.int64), np.full((2 * len(found), len(grid)), np.nan)
        for i, mean in enumerate(found):
            at = np.searchsorted(grid, mean.labels)
            repeats[at] = np.maximum(repeats[at], mean.repeats)
            columns[2 * i : 2 * i + 2, at] = mean.mean, mean.error
        for row in zip(grid.tolist(), repeats.tolist(), *columns.tolist(), strict=True):
            yield *setting, strategy, *row


#: LaTeX with the rules of booktabs: what has to be escaped, and the headers of a paper (names of strategies stay).
_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "[": "{[}",  # else an option of the line end before it
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)  # fmt: skip
TITLES = {
    "data": "Data", "model": "Model", "batch_size": "Batch size", "strategy": "Strategy", "repeats": "Repeats",
    "labels": "Labels", "rand_labels": "Labels (\\texttt{rand})", "rand_final_accuracy": "Accuracy (\\texttt{rand})",
    "ratio": "Ratio", "ratio_low": "Ratio, low", "ratio_high": "Ratio, high",
    "smallest_labels": "First labels", "n0": "$n_0$", "budgets": "Budgets", "why_empty": "Remark",
}  # fmt: skip


def latex_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""A tabular of these rows; numbers to the right, with four significant digits.

    >>> print(latex_table(["strategy", "my_own"], [["badge", 0.25], ["rand", float("inf")]]))
    \begin{tabular}{lr}
    \toprule
    Strategy & my\_own \\
    \midrule
    badge & 0.25 \\
    rand & $\infty$ \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    right = ["r" if rows and all(_is_number(row[i]) for row in rows) else "l" for i in range(len(header))]
    titles = [TITLES.get(name, name.translate(_SPECIAL)) for name in header]
    lines = [titles, *([_latex_cell(value) for value in row] for row in rows)]
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    top = [rf"\begin{{tabular}}{{{''.join(right)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*top, *body, r"\bottomrule", r"\end{tabular}", ""])


def _is_number(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, int | float) and not isinstance(value, bool))


def _latex_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "--"
    if isinstance(value, float):
        return (r"$\infty$" if value > 0 else r"$-\infty$") if math.isinf(value) else f"{value:.4g}"
    return str(value).translate(_SPECIAL)
