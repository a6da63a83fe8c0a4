"""What a section of the report is made from, and what it is: plain data, made by one module of `badge.report.sections`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from badge import stats
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.errors import InputError
from badge.report.drawings import Drawing
from badge.report.tables import Table
from badge.stats import Budgets, LabelsSaved, Matrix, NormalizedErrors, Note, Penalty, Results
from badge.stats.results import compared


class Statistics(NamedTuple):
    """The paper's statistics of some results, and what to know about them."""

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
    """All statistics of the paper's protocol.

    Args:
        results: what `badge.stats.load` gave.
        strategies: names; None: the paper's, and the user's own.

    Returns:
        `Statistics`: label budgets, penalty matrix, normalised errors, labels saved, and notes.

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
