"""A whole report: statistics, tables, figures, page."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.core.names import path_of
from badge.core.progress import bar
from badge.core.writing import folder_for
from badge.errors import InputError, MissingExtraError
from badge.report import drawings as plan
from badge.report import tables
from badge.report.page import write_page
from badge.report.paper import counterparts
from badge.report.saving import save_all
from badge.stats import (
    Budgets,
    Cdf,
    LabelsSaved,
    Matrix,
    Note,
    Penalty,
    Results,
    budget_notes,
    capped_notes,
    coverage_notes,
    error_cdf,
    group_by,
    label_budgets,
    normalized_errors,
    penalty_matrix,
    saved_labels,
)
from badge.stats.checks import compared

__all__ = ["Report", "Statistics", "build", "chosen_strategies", "evaluate"]

#: The two samplers on gradient embeddings that the paper sets side by side.
SAMPLERS = ("badge", "kdpp")
#: The paper's ablations: left out of its matrices, shown in its figures of batch diversity.
ABLATIONS = ("kdpp", "kcenter-grad")


class Statistics(NamedTuple):
    """Everything that a report says in numbers."""

    strategies: tuple[str, ...]
    budgets: tuple[Budgets, ...]
    penalty: Penalty
    by_batch_size: dict[int, Matrix]
    by_model: dict[str, Matrix]
    cdfs: dict[tuple[str, Any], dict[str, Cdf]]
    cdf_settings: dict[tuple[str, Any], int]
    saved: LabelsSaved
    notes: tuple[Note, ...]


class Report(NamedTuple):
    """What was written, and the numbers in it."""

    page: Path
    figures: int
    statistics: Statistics


def chosen_strategies(results: Results, wanted: Sequence[str] | None = None) -> tuple[tuple[str, ...], list[Note]]:
    """The strategies to compare: those wanted; else the paper's seven and one's own, as far as there are results.

    Where these are fewer than two, all strategies are compared.

    >>> from badge.stats import example
    >>> chosen_strategies(example())[0]
    ('badge', 'rand')
    """
    there = compared(results, None)
    if wanted is not None:
        wanted = compared(results, wanted)
        for name in wanted:
            if name not in there:
                raise InputError(f"there are no results of the strategy {name!r}; there are of {', '.join(there)}")
        if len(set(wanted)) < len(wanted):
            raise InputError(f"a strategy is named twice: {', '.join(wanted)}")
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

    >>> from badge.stats import example
    >>> evaluate(example()).penalty.overall.values.tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    names, notes = chosen_strategies(results, strategies)
    budgets = tuple(label_budgets(results, setting) for setting in results.settings)
    penalty = penalty_matrix(results, names)
    errors = normalized_errors(results, names)
    groups: list[tuple[str, Any]] = [("all", "all")]
    groups += [("batch_size", size) for size in sorted({s.batch_size for s in errors.settings})]
    groups += [("model", model) for model in sorted({s.model for s in errors.settings})]
    tables_of = {(by, group): errors if by == "all" else errors.where(**{by: group}) for by, group in groups}
    saved = saved_labels(results, names)
    notes += [*results.notes, *coverage_notes(results, names), *capped_notes(results), *budget_notes(results, budgets)]
    notes += [*penalty.notes, *errors.notes, *saved.notes]
    for data, text in results.completeness.items():
        used, _, whole = text.partition(" of ")
        if used != whole:
            notes.insert(0, Note("data sets used in part", f"{data}: {text} rows"))
    return Statistics(
        names,
        budgets,
        penalty,
        group_by(penalty, "batch_size"),
        group_by(penalty, "model"),
        {key: {name: error_cdf(table, name) for name in names} for key, table in tables_of.items()},
        {key: len(set(table.settings)) for key, table in tables_of.items()},
        saved,
        tuple(notes),
    )


def build(
    results: Results,
    out: str | Path,
    strategies: Sequence[str] | None = None,
    *,
    source: str = "",
    progress: bool = False,
    workers: int | None = None,
) -> Report:
    """Write `report.html`, `figures/` (SVG and PNG) and the CSV files into the folder `out`.

    `workers`: processes that draw; None takes one per core, at most four. Above one, call from under
    `if __name__ == "__main__":`, as with every use of `multiprocessing`.
    """
    for package in ("scipy", "matplotlib", "jinja2"):  # before any work is done
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError("the report", package, "study")
    folder = path_of(out, "the folder of a report")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out names a folder")
    folder_for(folder)
    with bar("statistics and tables", total=2, enabled=progress) as advance:
        statistics = evaluate(results, strategies)
        advance(1)
        _write_tables(folder, results, statistics)
        advance(1)
    sections = _figures(results, statistics)
    drawings = [drawing for section in sections.values() for drawing in section]
    count = min(os.cpu_count() or 1, 4) if workers is None else workers
    with bar("drawing figures", total=len(drawings), enabled=progress) as advance:
        pictures = save_all(drawings, folder / "figures", count, advance)
    page = folder / "report.html"
    index = counterparts(results, pictures)
    tables.write_index(folder / "paper_figures.csv", index)
    drawn = {name: [(d, pictures[d.name]) for d in ds] for name, ds in sections.items()}
    write_page(page, results, statistics, drawn, index, source)
    return Report(page, len(drawings), statistics)


def _write_tables(folder: Path, results: Results, statistics: Statistics) -> None:
    names = statistics.strategies
    tables.write_matrix(folder / "penalty_matrix.csv", statistics.penalty.overall)
    by_size, by_model = statistics.by_batch_size, statistics.by_model
    tables.write_matrices(folder / "penalty_matrix_by_batch_size.csv", "batch_size", by_size, names)
    tables.write_matrices(folder / "penalty_matrix_by_model.csv", "model", by_model, names)
    tables.write_cdfs(folder / "cdf.csv", statistics.cdfs)
    tables.write_curves(folder / "curves.csv", results)
    tables.write_diversity(folder / "diversity.csv", results)
    tables.write_timing(folder / "timing.csv", results)
    tables.write_labels_saved(folder / "labels_saved.csv", statistics.saved)
    tables.write_budgets(folder / "budgets.csv", statistics.budgets)
    tables.write_notes(folder / "notes.csv", statistics.notes)


def _figures(results: Results, statistics: Statistics) -> dict[str, list[plan.Lines | plan.Heat | plan.Dots]]:
    """The drawings of each section of the page; titles of groups hold the number of settings."""
    names = statistics.strategies
    overall = statistics.penalty.overall
    heats = [plan.Heat("penalty-all", f"All settings ({overall.settings})", overall)]
    for by, groups in (("batch size", statistics.by_batch_size), ("model", statistics.by_model)):
        for group, matrix in groups.items():
            shown = f"Batch size {group:,}" if by == "batch size" else f"Model {group}"
            heats.append(plan.Heat(plan.slug("penalty", by, group), f"{shown} ({matrix.settings})", matrix))
    cdfs = []
    for (by, group), found in statistics.cdfs.items():
        shown = {
            "all": "All settings",
            "batch_size": f"Batch size {group:,}" if by == "batch_size" else "",
            "model": f"Model {group}",
        }[by]
        title = f"{shown} ({statistics.cdf_settings[by, group]})"
        cdfs.append(plan.cdf_lines(plan.slug("cdf", *((by, group) if by != "all" else ("all",))), title, found))
    wide = (*names, *(name for name in ABLATIONS if name in results.strategies and name not in names))
    curves, diversity, samplers = [], [], []
    for setting in results.settings:
        curves.append(plan.accuracy_lines(results, setting, names))
        zoomed = plan.accuracy_lines(results, setting, names, zoom=True)
        curves += [zoomed] if zoomed.window else []
        diversity += [plan.diversity_lines(results, setting, wide, what) for what in ("log_det", "mean_norm")]
        if all((setting, name) in results.by_strategy for name in SAMPLERS):
            drawing = plan.accuracy_lines(results, setting, SAMPLERS)
            samplers.append(drawing._replace(name=plan.slug("samplers", drawing.name)))
            samplers.append(plan.time_lines(results, setting, SAMPLERS))
    sections: dict[str, Sequence[plan.Lines | plan.Heat | plan.Dots]] = {
        "penalty": heats if overall.settings else [],
        "cdf": [drawing for drawing in cdfs if drawing.lines],
        "saved": [plan.saved_dots(statistics.saved)] if statistics.saved.medians else [],
        "curves": [drawing for drawing in curves if drawing.lines],
        "diversity": [drawing for drawing in diversity if drawing.lines],
        "samplers": [drawing for drawing in samplers if drawing.lines],
    }
    return _with_names_of_their_own(sections)


def _with_names_of_their_own(
    sections: dict[str, Sequence[plan.Lines | plan.Heat | plan.Dots]],
) -> dict[str, list[plan.Lines | plan.Heat | plan.Dots]]:
    """File names differ even where data sets are called "a b" and "a-b"."""
    counts: dict[str, int] = {}
    unique: dict[str, list[plan.Lines | plan.Heat | plan.Dots]] = {name: [] for name in sections}
    for section, drawings in sections.items():
        for drawing in drawings:
            seen = counts[drawing.name] = counts.get(drawing.name, 0) + 1
            unique[section].append(drawing if seen == 1 else drawing._replace(name=f"{drawing.name}-{seen}"))
    return unique
