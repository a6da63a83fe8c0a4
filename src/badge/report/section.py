"""A section of the report as plain data: `Study`, what it is made from, and `Section`, its words, figures and tables.

Each module of `badge.report.sections` makes one. A `Table` is a CSV file, where a paper prints it also LaTeX; missing values
are empty cells. `Statistics` are those of the paper's protocol.
"""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge import stats
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.core.spreadsheet import safe
from badge.core.writing import replacing
from badge.errors import InputError
from badge.report.drawings import Drawing
from badge.stats import Budgets, LabelsSaved, Matrix, Mean, NormalizedErrors, Note, Penalty, Results
from badge.stats.results import compared

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
    columns = zip(*rows, strict=True) if rows else [("none",)] * len(header)
    right = ["r" if all(v == "" or isinstance(v, int | float | None) for v in column) else "l" for column in columns]
    titles = [TITLES.get(name, name.translate(_SPECIAL)) for name in header]
    lines = [titles, *([_latex_cell(value) for value in row] for row in rows)]
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    top = [rf"\begin{{tabular}}{{{''.join(right)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*top, *body, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "--"
    if isinstance(value, float):
        return (r"$\infty$" if value > 0 else r"$-\infty$") if math.isinf(value) else f"{value:.4g}"
    return str(value).translate(_SPECIAL)


class Statistics(NamedTuple):
    """The paper's statistics of a table of results, with notes."""

    strategies: tuple[str, ...]
    budgets: tuple[Budgets, ...]
    penalty: Penalty
    errors: NormalizedErrors
    saved: LabelsSaved
    ranking: Matrix | None  # the penalty matrix over the settings and seeds that all strategies share
    notes: tuple[Note, ...]


def chosen_strategies(results: Results, wanted: Sequence[str] | None = None) -> tuple[tuple[str, ...], list[Note]]:
    """The strategies to compare: the wanted ones; else those in the results that are the paper's or the user's own.

    If these are fewer than two, all strategies are compared.
    """
    there = compared(results, None)
    if wanted is not None:
        wanted = compared(results, wanted)
        if lacking := [name for name in wanted if name not in there]:
            raise InputError(f"there are no results of the strategy {lacking[0]!r}; there are of {', '.join(there)}")
        return wanted, []
    usual = tuple(name for name in there if name in PAPER_STRATEGIES or name not in STRATEGIES)
    chosen = usual if len(usual) >= 2 else there
    notes = []
    if absent := [name for name in PAPER_STRATEGIES if name not in there]:
        notes.append(Note("missing strategies", f"no results at all of {', '.join(absent)}"))
    if others := [name for name in there if name not in chosen]:
        text = f"{', '.join(others)}: not among the paper's seven; --strategies names others to compare"
        notes.append(Note("strategies left out of the comparisons", text))
    return chosen, notes


def evaluate(results: Results, strategies: Sequence[str] | None = None) -> Statistics:
    """Compute all statistics of the paper's protocol.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        strategies: names of the strategies to compare; None: the paper's and your own, or all if these are fewer than two.

    Returns:
        `Statistics`: label budgets, penalty matrix, normalised errors, labels saved, and notes.

    Raises:
        InputError: `results` is not a `Results`, or a strategy is not in it.

    >>> from badge.stats import example
    >>> evaluate(example()).penalty.overall.values.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    names, notes = chosen_strategies(results, strategies)
    budgets = tuple(stats.label_budgets(results, setting) for setting in results.settings)
    penalty, errors = stats.penalty_matrix(results, names), stats.normalized_errors(results, names)
    saved = stats.saved_labels(results, names)
    partial = [(data, text) for data, text in results.completeness.items() if len(set(text.split(" of "))) > 1]
    notes = [Note("data sets used in part", f"{data}: {text} rows") for data, text in reversed(partial)] + notes
    notes += [*results.notes, *stats.coverage_notes(results, names), *stats.capped_notes(results)]
    notes += [*stats.budget_notes(results, budgets), *penalty.notes, *errors.notes, *saved.notes]
    return Statistics(names, budgets, penalty, errors, saved, _ranking(results, names, penalty), tuple(notes))


def _ranking(results: Results, names: tuple[str, ...], penalty: Penalty) -> Matrix | None:
    """A strategy that lacks a setting or a seed cannot lose there, so only what all of them have is ranked."""
    paired = results.paired(names)
    if paired is None:
        return None
    whole = sum(run.strategy in names for run in results.runs) == sum(run.strategy in names for run in paired.runs)
    return penalty.overall if whole else stats.penalty_matrix(paired, names).overall


class Study(NamedTuple):
    """What a section is made from: the results, their statistics, and the names of the figures above it on the page."""

    results: Results
    statistics: Statistics
    drawn: tuple[str, ...] = ()


class Section(NamedTuple):
    """One section of the page. `words` is a jinja2 template of `values`, and of `figures` where those stand."""

    name: str  # its anchor
    title: str
    words: str
    values: Mapping[str, Any] = {}
    figures: Sequence[Sequence[Drawing]] = ()  # each group begins a new row on a wide screen
    tables: Sequence[Table] = ()
    shown: bool = True  # a section that is not shown still writes its tables
