"""`badge run`, `badge grid` and `badge demo`: the paper's experiments."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from badge.cli.options import Strategies, names_of
from badge.core import catalog

if TYPE_CHECKING:
    from badge.experiment import Cell, Executor


MODELS = ", ".join(catalog.MODELS)
COLD = ", ".join(catalog.names(lambda row: row.cold))


class Where(str, Enum):
    ray = "ray"


Out = Annotated[Path, Option("--out", help="Folder for the journals, one per run.")]
Verbose = Annotated[bool, Option("--verbose", help="Print the traceback of every run that fails.")]
Workers = Annotated[int | None, Option("--workers", min=1, help="Number of processes. (default: the number of cores)")]
On = Annotated[Where | None, Option("--on", help="Run on a Ray cluster. (default: in processes on this machine)")]
Address = Annotated[str | None, Option("--address", help="Address of the cluster. (default: $RAY_ADDRESS, else local)")]


def run(
    data: Annotated[str, Option(help="A name, your own file (.csv, .jsonl, …), or package.module:load.")] = "digits",
    text: Annotated[str | None, Option(help='Column of texts in your file. (default: "text", if there is one)')] = None,
    label: Annotated[str | None, Option(help='Column of labels in your file. (default: "label")')] = None,
    encoder: Annotated[str | None, Option(metavar="hf:NAME", help="Pretrained encoder for texts; not trained.")] = None,
    model: Annotated[
        str | None, Option(help=f"{MODELS} or package.module:build. (default: mlp; --encoder: linear)")
    ] = None,
    strategy: Strategies = None,
    batch_size: Annotated[int, Option(min=1, help="Labels per round.")] = 100,
    initial: Annotated[int, Option(min=1, help="Labels of the first round.")] = 100,
    first: Annotated[str | None, Option(help=f"Picks the first round: {COLD}. (default: uniform)")] = None,
    labels: Annotated[int | None, Option(min=1, help="Labels at the end. (default: all, up to 50,000)")] = None,
    seeds: Annotated[int, Option(min=1, help="Number of repeats, with the seeds 0, 1, …")] = 1,
    out: Out = Path("runs"),
    workers: Workers = None,
    threads: Annotated[int, Option(min=1, help="Threads per run. The last bits of the results depend on it.")] = 1,
    width: Annotated[int | None, Option(min=1, help="Width of the network. (default: the paper's)")] = None,
    lr: Annotated[float | None, Option(min=0.0, help="Learning rate. (default: the paper's)")] = None,
    max_epochs: Annotated[int | None, Option(min=1, help="Most epochs per training.")] = None,
    raw: Annotated[bool, Option("--raw", help="Do not standardise the features.")] = False,
    on: On = None,
    address: Address = None,
    verbose: Verbose = False,
) -> None:
    """Run active learning on one data set and network, with the paper's protocol.

    You can stop it at any moment. To resume, run the same command again.

    Data sets: {data_sets}.
    Models: {models}. `badge strategies` lists the strategies. The default is badge.

    [bold]Examples[/bold]

    BADGE and uniform sampling with three seeds, then a report:
        badge run --data digits --strategy badge,rand --batch-size 50 --labels 400 --seeds 3 --out runs/
        badge report runs/

    Your own texts in a table, with a pretrained encoder and a first round of typical examples:
        badge run --data reviews.csv --text review --label stars --encoder hf:folder-or-name --first typiclust

    Your own data, from the function load() in mydata.py of the current directory:
        badge run --data mydata:load --model mlp --batch-size 100 --labels 2000
    """
    from badge.experiment import Cell

    own = {"text": text, "label": label, "encoder": encoder, "first": first}
    network = model or ("mlp" if encoder is None else "linear")
    cells = [
        Cell(data, network, name, batch_size, initial, labels, seed, threads, width, lr, max_epochs, raw, **own)
        for seed in range(seeds)
        for name in names_of(strategy) or ["badge"]
    ]
    _run_all(cells, out, workers, on=on, address=address, verbose=verbose)


run.__doc__ = (run.__doc__ or "").format(data_sets=", ".join(catalog.DATA_SETS), models=MODELS)


def grid(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Grid files. Those of the paper are in grids/.")],
    out: Out = Path("runs"),
    workers: Workers = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only list the runs that are left.")] = False,
    skip: Annotated[Path | None, Option(metavar="FILE", help="Table of `badge export`: skip the runs in it.")] = None,
    on: On = None,
    address: Address = None,
    verbose: Verbose = False,
) -> None:
    """Run grids of experiments: data × model × batch size × strategy × seed.

    To resume a grid, run the same command again: finished runs are skipped, the others resume.
    On another machine, without the journals, --skip leaves out the runs in a table of results.

    [bold]Examples[/bold]

    Every figure of the paper:
        badge grid grids/paper.toml grids/paper-ablation.toml --out runs/
        badge report runs/
    """
    from badge.experiment import finished
    from badge.experiment.grid import read_grids

    cells = read_grids(files)
    if skip is not None:
        cells = _without(cells, skip)
    if dry_run:
        left = [cell.name for cell in cells if not finished(cell, out)]
        typer.echo("\n".join([*left, f"{len(left)} of {len(cells)} cells left"]))
        return
    _run_all(cells, out, workers, on=on, address=address, verbose=verbose)


def demo(
    out: Annotated[Path | None, Option(help="Folder for the journals and the figure. (default: a new one)")] = None,
    workers: Workers = None,
) -> None:
    """Compare the paper's seven strategies on the digits data set in under a minute: table and figure."""
    import tempfile

    from badge.cli.demonstration import CELLS, table
    from badge.report import learning_curves
    from badge.stats import load

    folder = out or Path(tempfile.mkdtemp(prefix="badge-demo-"))
    _run_all(CELLS, folder, workers, summary=False)
    results, picture = load(folder), folder / "learning-curves.png"
    typer.echo(table(results))
    learning_curves(results, picture)
    typer.echo(f"learning curves: {picture}")
    typer.echo(f"for the whole report: badge report {folder}")


def _without(cells: list[Cell], table: Path) -> list[Cell]:
    """The cells that have not ended in the table, and those without a number of labels: their end is not known here."""
    from badge.stats import Setting, load

    results = load(table)
    ends = {(run.setting, run.strategy, run.seed): int(results.labels[run.rows.stop - 1]) for run in results.runs}

    def end(cell: Cell) -> int:
        return ends.get((Setting(cell.data, cell.shown_model, cell.batch_size), cell.strategy, cell.seed), 0)

    left = [cell for cell in cells if cell.labels is None or end(cell) < cell.labels]
    typer.echo(f"{len(cells) - len(left)} of {len(cells)} cells are in {table}", err=True)
    return left


def _run_all(
    cells: list[Cell],
    out: Path,
    workers: int | None,
    summary: bool = True,
    on: Where | None = None,
    address: str | None = None,
    verbose: bool = False,
) -> None:
    """Run cells, print what came out of them, and end with code 1 if one failed."""
    from badge.experiment import Display, Processes, Serial, run_cells
    from badge.experiment.display import final_accuracies
    from badge.experiment.runner import log_path

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(workers or cores, len(cells))
    executor: Executor = Serial() if count == 1 else Processes(count)
    if on is not None:
        from badge.cluster.cells import RayCells

        executor = RayCells(out, workers, address)
    try:
        failed = run_cells(cells, out, executor, Display(cells))
    except KeyboardInterrupt:
        typer.echo(f"stopped; nothing in {out} is lost. Run the same command again to resume", err=True)
        raise typer.Exit(130) from None
    if summary:
        typer.echo(f"{final_accuracies(cells, out)}\njournals: {out}")
    for outcome in failed:
        details = f"\n{outcome.details}" if verbose else ""
        typer.echo(f"failed: {outcome.cell.name}: {outcome.error}{details}", err=True)
    if failed:
        if log_path(out).is_file():
            typer.echo(f"tracebacks: {log_path(out)}", err=True)
        raise typer.Exit(1)
