"""`badge report` and `badge export`: stored results to the paper's figures and tables, or to one flat table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from badge.cli.options import Strategies, names_of
from badge.core.text_table import text_table

if TYPE_CHECKING:
    from badge.stats import Matrix

_SOURCE = "The results: folders of journals, journals (.jsonl) or flat tables (.csv, .parquet)."
_Source = Annotated[list[Path], Argument(help=_SOURCE)]


def report(
    source: _Source,
    out: Annotated[Path, Option("--out", "-o", help="Folder to write to.")] = Path("report"),
    strategies: Strategies = None,
    png: Annotated[bool, Option("--png", help="Also write every figure as PNG.")] = False,
    pdf: Annotated[bool, Option("--pdf", help="Also write every figure as PDF.")] = False,
) -> None:
    """Write a report: a page, its figures as SVG, its tables as CSV, and tables for a paper as LaTeX.

    Without --strategies, it compares the paper's seven strategies and your own.

    [bold]Examples[/bold]

    All results of a folder:
        badge report runs/ --out report/

    Runs from two machines:
        badge report runs/ elsewhere/runs/ --out report/

    The ablation of the paper's appendix:
        badge report runs/ --strategies badge,kdpp,kcenter-grad,rand --out ablation/
    """
    from badge.report import build
    from badge.stats import load

    name = ", ".join(path.name or str(path) for path in source)
    formats = [ending for ending, wanted in (("png", png), ("pdf", pdf)) if wanted]
    results = load(source, progress=True)
    written = build(results, out, names_of(strategies) or None, source=name, progress=True, formats=formats)
    typer.echo(_matrix(written.statistics.penalty.overall))
    typer.echo(f"{written.page} and {written.figures} figures written")
    if topics := Counter(note.topic for note in written.statistics.notes):
        typer.echo(f"notes: {', '.join(f'{topic} ({count})' for topic, count in topics.items())}")


def export(source: _Source, out: Annotated[Path, Option("--out", "-o", help="The file: .csv or .parquet.")]) -> None:
    """Write all results as one flat table, which `badge report` also reads.

    Example: badge export runs/ -o all.csv
    """
    from badge.stats import load, write

    results = load(source, progress=True)
    write(results, out)
    typer.echo(f"{out}: {len(results):,} rows of {len(results.runs):,} runs")
    for note in results.notes:
        typer.echo(f"{note.topic}: {note.text}", err=True)


def _matrix(matrix: Matrix) -> str:
    plural = "s" * (matrix.settings != 1)
    title = f"Penalty matrix, {matrix.settings} setting{plural}: how much the row beats the column"
    rows = [[f"{value:.2f}" for value in row] for row in matrix.values.tolist()]
    for i, row in enumerate(rows):
        row[i] = "–"
    rows.append([f"{value:.2f}" for value in matrix.averages.tolist()])
    names = [*matrix.strategies, "average"]
    table = text_table(["", *matrix.strategies], [[name, *row] for name, row in zip(names, rows, strict=True)])
    average = "average: mean of the column over all strategies, as the authors have it; lower is better"
    return f"{title}\n{table}\n{average}"
