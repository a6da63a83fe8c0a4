"""`badge report` and `badge export`: stored results to the paper's figures and tables, or to one flat table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from badge.cli.options import Strategies, names_of

if TYPE_CHECKING:
    from rich.console import Console

    from badge.stats import Matrix

_SOURCE = "Folders of journals, journals (.jsonl) or flat tables (.csv, .parquet): all of them together."
_Source = Annotated[list[Path], Argument(help=_SOURCE)]


def report(
    source: _Source,
    out: Annotated[Path, Option("--out", "-o", help="The folder to write to.")] = Path("report"),
    strategies: Strategies = None,
    png: Annotated[bool, Option("--png", help="Write every figure as PNG too.")] = False,
    pdf: Annotated[bool, Option("--pdf", help="Write every figure as PDF too.")] = False,
) -> None:
    """Write report.html, every figure as SVG, and every table as CSV, those for a paper as LaTeX too.

    Without --strategies the paper's seven are compared, and your own.

    [bold]Examples[/bold]

    Everything that was run:
        badge report runs/ --out report/

    Runs from two machines:
        badge report runs/ elsewhere/runs/ --out report/

    The ablation of the paper's appendix:
        badge report runs/ --strategies badge,kdpp,kcenter-grad,rand --out ablation/
    """
    from rich.console import Console

    from badge.report import build
    from badge.stats import load

    name = ", ".join(path.name or str(path) for path in source)
    formats = [ending for ending, wanted in (("png", png), ("pdf", pdf)) if wanted]
    results = load(source, progress=True)
    written = build(results, out, names_of(strategies) or None, source=name, progress=True, formats=formats)
    console, statistics = Console(), written.statistics
    _print_matrix(console, statistics.penalty.overall)
    console.print(f"{written.page} and {written.figures} figures written", highlight=False, soft_wrap=True)
    if topics := Counter(note.topic for note in statistics.notes):
        text = ", ".join(f"{topic} ({count})" for topic, count in topics.items())
        console.print(f"notes: {text}", highlight=False, soft_wrap=True)


def export(source: _Source, out: Annotated[Path, Option("--out", "-o", help="The file: .csv or .parquet.")]) -> None:
    """Write all results as one flat table, CSV or parquet, which `badge report` reads too.

    Example: badge export runs/ -o all.csv
    """
    from badge.stats import load, write

    results = load(source, progress=True)
    write(results, out)
    typer.echo(f"{out}: {len(results):,} rows of {len(results.runs):,} runs")
    for note in results.notes:
        typer.echo(f"{note.topic}: {note.text}", err=True)


def _print_matrix(console: Console, matrix: Matrix) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    plural = "s" * (matrix.settings != 1)
    title = f"Penalty matrix, {matrix.settings} setting{plural}: how much the row beats the column"
    names = [Column(name, justify="right", no_wrap=True) for name in matrix.strategies]
    table = Table(Column("", no_wrap=True), *names, box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for i, name in enumerate(matrix.strategies):
        table.add_row(name, *("–" if i == j else f"{value:.2f}" for j, value in enumerate(matrix.values[i].tolist())))
    table.add_section()
    table.add_row("average", *(f"{value:.2f}" for value in matrix.averages.tolist()))
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    wide = Console(width=max(console.width, needed))  # numbers stay whole, even where the terminal is narrow
    wide.print(title, highlight=False)
    wide.print(table)
    average = "mean of the column over all strategies, as the authors have it; lower is better"
    wide.print(f"average: {average}", highlight=False)
