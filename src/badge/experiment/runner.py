"""Many cells: skip the finished ones, fetch the data once, run the rest, collect what failed."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from badge import data, strategies
from badge.core.catalog import check_first
from badge.errors import BadgeError, InputError
from badge.experiment.cell import LINEAR, Notify, dataset_of, run_cell
from badge.experiment.display import Display
from badge.experiment.executor import Executor, Outcome, Serial, failure
from badge.experiment.grid import Cell, check_apart, held, journal_path
from badge.experiment.origin import finished
from badge.journal import Journal
from badge.journal.events import Failed
from badge.strategies.bald import compares
from badge.strategies.protocol import title
from badge.training import networks


def _run_in(folder: Path, cell: Cell, notify: Notify) -> None:
    run_cell(cell, folder, notify)


def run_cells(
    cells: Sequence[Cell], folder: str | Path, executor: Executor | None = None, display: Display | None = None
) -> list[Outcome]:
    """Run all cells that are not finished yet.

    Data sets are first loaded in this process, so each is downloaded only once. If one cannot be loaded, its cells fail at
    once.

    Args:
        cells: the settings of the runs.
        folder: the folder of the journals.
        executor: `Serial()`, `Processes(n)` or your own; None: `Serial()`, one cell after another in this process.
        display: a `Display` that shows the progress; None: a new one on standard error.

    Returns:
        The outcomes of the cells that failed; [] if none did.

    Raises:
        BadgeError: all cells use one data set, and it cannot be loaded.

    >>> import io, tempfile
    >>> from rich.console import Console
    >>> cells = [Cell("digits", "mlp", name, batch_size=20, initial=20, labels=40, max_epochs=5) for name in ("conf", "rand")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_cells(cells, folder, display=Display(cells, Console(file=io.StringIO())))
    ...     sorted(path.suffix for path in Path(folder).glob("*.jsonl"))
    []
    ['.jsonl', '.jsonl']
    """
    folder, executor, display = Path(folder), executor or Serial(), display or Display(cells)
    _check_names(cells)
    done: list[Cell] = []
    left: list[Cell] = []
    failed: list[Outcome] = []
    for cell in cells:
        try:
            (done if finished(cell, folder) else left).append(cell)
        except Exception as error:  # what is wrong with one journal is that cell's failure
            failed.append(failure(cell, error))
    lacking: dict[str, Exception | None] = {}  # data set -> why it cannot be had
    for cell in left:
        if cell.data not in lacking:
            lacking[cell.data] = None
            try:
                dataset_of(cell)  # which downloads it where it is missing
            except Exception as error:
                lacking[cell.data] = error
    # Without the data set of all cells nothing can run: one error. What a user's loader raises is told with each cell.
    if len({cell.data for cell in cells}) == 1 and isinstance(why := next(iter(lacking.values()), None), BadgeError):
        raise why
    failed += [failure(cell, why) for cell in left if (why := lacking[cell.data]) is not None]
    with display:
        for cell in done:
            display.ended(Outcome(cell), skipped=True)
        for outcome in failed:
            _log(outcome, folder)
            display.ended(outcome)
        waiting = [cell for cell in left if lacking[cell.data] is None]
        for outcome in executor.map(partial(_run_in, folder), waiting, display.round):
            if outcome.error is not None:
                failed.append(outcome)
                _record(outcome, folder)
                _log(outcome, folder)
            display.ended(outcome)
    return failed


def _check_names(cells: Sequence[Cell]) -> None:
    """Refuse a name that is wrong before anything runs: it is wrong for all cells."""
    check_apart(cells)
    for cell in cells:
        strategy = strategies.get(held(cell.strategy))
        if cell.first is not None:
            strategies.get(cell.first)
            check_first(cell.first)
        if cell.model != LINEAR:
            networks.resolve(cell.model, cell.width)
        if cell.model in networks.NETWORKS and compares(strategy):
            what = f"{title(strategy)} compares several passes with dropout, and {cell.model} has none"
            raise InputError(f"{what}: use {LINEAR}")
        if isinstance(held(cell.data), str):
            data.check_name(cell.data)


def _record(outcome: Outcome, folder: Path) -> None:
    """Write the failure into the cell's journal, for the report; the worker no longer holds it."""
    path = journal_path(outcome.cell, folder)
    if path.exists():
        # what cannot be written is known by now
        with suppress(BadgeError, OSError), Journal(path, sync=False) as journal:
            journal.append(Failed(error=outcome.error or ""))


def log_path(folder: Path) -> Path:
    """Where the tracebacks of failed cells are, beside the journals."""
    return folder / "failures.log"


def _log(outcome: Outcome, folder: Path) -> None:
    """Append the traceback of a failure to the log; a log that cannot be written does not stop the grid."""
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with log_path(folder).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{when} {outcome.cell.name}: {outcome.error}\n{outcome.details}\n")
