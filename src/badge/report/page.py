"""The page: one HTML file with every figure and table in it, and nothing to fetch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import badge
from badge.core.writing import replacing
from badge.stats import LabelsSaved, Matrix, Note, Results, Saving, Setting

if TYPE_CHECKING:
    from badge.report.build import Statistics
    from badge.report.drawings import Dots, Heat, Lines
    from badge.report.paper import Counterpart

__all__ = ["write_page"]


class Picture(NamedTuple):
    name: str
    title: str
    svg: Any
    first: bool  # begins a row: the first of a setting's two figures


class DataRow(NamedTuple):
    name: str
    rows: str
    partial: bool
    models: str
    batch_sizes: str


def write_page(
    path: Path,
    results: Results,
    statistics: Statistics,
    sections: Mapping[str, Sequence[tuple[Lines | Heat | Dots, str]]],
    index: Sequence[Counterpart],
    source: str,
) -> None:
    """Fill the template that lies beside this module."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("badge.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    pictures = {
        name: [Picture(drawing.name, drawing.title, Markup(svg), _begins_row(drawing.name)) for drawing, svg in section]
        for name, section in sections.items()
    }
    overall = statistics.penalty.overall
    text = environment.get_template("report.html").render(
        version=badge.__version__,
        source=source,
        runs=len(results.runs),
        results=results,
        strategies=statistics.strategies,
        data=_data_rows(results),
        headline=headline(overall, statistics.saved),
        overall=overall,
        budgets=statistics.budgets,
        pictures=pictures,
        saved=statistics.saved,
        saved_table=_saved_table(statistics.saved),
        interval=interval,
        index=index,
        note_groups=_grouped(statistics.notes),
    )
    with replacing(path) as file:
        file.write(text)


def _begins_row(name: str) -> bool:
    return name.startswith(("log-det-", "samplers-")) or (name.startswith("curves-") and not name.endswith("-zoomed"))


def headline(matrix: Matrix, saved: LabelsSaved) -> list[str]:
    """One or two sentences: who is beaten least, and how many labels that saves.

    >>> from badge.stats import example, penalty_matrix, saved_labels
    >>> headline(penalty_matrix(example()).overall, saved_labels(example()))[0]
    'In this one setting, badge is beaten least.'
    """
    if not matrix.settings:
        return ["No setting has label budgets, so no strategies were compared: see the notes."]
    if len(matrix.strategies) < 2:
        return ["There is one strategy only: nothing to compare it with."]
    averages = matrix.averages
    least = averages.min()
    names = [name for name, value in zip(matrix.strategies, averages.tolist(), strict=True) if value <= least + 1e-9]
    who = f"{_join(names)} {'is' if len(names) == 1 else 'are'} beaten least"
    if matrix.settings == 1:
        lines = [f"In this one setting, {who}."]
    else:
        pronoun = "it" if len(names) == 1 else "each of them"
        others = least * len(matrix.strategies) / (len(matrix.strategies) - 1)  # the column's own 0 is none of them
        rate = f"another strategy wins against {pronoun} in {others:.2g} settings"
        lines = [f"In {matrix.settings} settings, {who}: on average, {rate}."]
    entry = next((m for m in saved.medians if m.strategy == names[0]), None)
    if entry is not None and math.isfinite(entry.ratio):
        share = f"{entry.ratio:.0%}".replace("%", " %")
        median = ", in the median setting" if matrix.settings > 1 else ""
        lines.append(
            f"{names[0]} reaches rand's final accuracy with {share} of rand's labels{median} "
            f"(95 % interval {interval(entry)})."
        )
    return lines


def interval(entry: Saving) -> str:
    """The bootstrap interval in words: "0.61 to 0.70", "above 0.9", "unknown with one repeat"."""
    if math.isnan(entry.low):
        return "unknown with one repeat"
    if math.isinf(entry.low):
        return "never reached"
    return f"above {entry.low:.2f}" if math.isinf(entry.high) else f"{entry.low:.2f} to {entry.high:.2f}"


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _data_rows(results: Results) -> list[DataRow]:
    rows = []
    for name in sorted({setting.data for setting in results.settings}):
        here = [setting for setting in results.settings if setting.data == name]
        said = results.completeness.get(name, "")
        used, _, whole = said.partition(" of ")
        models = ", ".join(sorted({setting.model for setting in here}))
        sizes = ", ".join(f"{size:,}" for size in sorted({setting.batch_size for setting in here}))
        rows.append(DataRow(name, said or "not said", bool(said) and used != whole, models, sizes))
    return rows


def _saved_table(saved: LabelsSaved) -> dict[Setting, dict[str, Saving]]:
    table: dict[Setting, dict[str, Saving]] = {}
    for entry in saved.savings:
        if entry.setting is not None:
            table.setdefault(entry.setting, {})[entry.strategy] = entry
    return table


def _grouped(notes: Sequence[Note]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for note in notes:
        groups.setdefault(note.topic, []).append(note.text)
    return groups
