"""Many cells: skip the finished ones, fetch the data once, run the rest, collect what failed.

What runs the cells is an object with one method, `map`. A cluster can stand in for the processes of this machine.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from badge import data, strategies
from badge.core.catalog import check_first, names
from badge.core.numbers import whole
from badge.errors import BadgeError, InputError
from badge.experiment.cell import LINEAR, Notify, dataset_of, run_cell
from badge.experiment.display import Display
from badge.experiment.grid import Cell, held, journal_path
from badge.experiment.origin import finished
from badge.journal import Journal
from badge.journal.events import Failed
from badge.training import networks

#: runs one cell and reports its rounds; must be picklable where cells run in other processes
Run = Callable[[Cell, Notify], None]
#: called in the calling process with the cell and the numbers of `Notify`
OnRound = Callable[[Cell, int, int, float], None]


@dataclass(frozen=True)
class Outcome:
    """A cell that has ended: well (`error` None), or with an error in one line and where it came from."""

    cell: Cell
    error: str | None = None
    details: str = ""


class Executor(Protocol):
    """Maps `run` over cells, in any order and place. A cell that fails gives an outcome too."""

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]: ...


class Serial:
    """One cell after another, in this process."""

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]:
        for cell in cells:
            yield outcome_of(run, cell, partial(on_round, cell))


class Processes:
    """Cells in `workers` processes of this machine, each used for many cells. One that dies takes one cell with it.

    Processes are spawned, not forked: a fork of a process with busy threads can hang.

    Args:
        workers: number of processes.
    """

    def __init__(self, workers: int) -> None:
        self.workers = whole(workers, "workers")

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]:
        waiting = list(reversed(cells))
        busy: dict[Connection, tuple[Any, Cell]] = {}
        idle = [_spawn(run) for _ in range(min(self.workers, len(cells)))]
        try:
            while waiting or busy:
                while waiting and idle:
                    process, pipe = idle.pop()
                    try:
                        pipe.send(waiting[-1])
                    except (pickle.PicklingError, AttributeError, TypeError) as error:  # nothing was sent
                        idle.append((process, pipe))
                        why = InputError(f"it cannot be sent to a process ({error}): run it in this one")
                        yield failure(waiting.pop(), why)
                        continue
                    except OSError:  # it died while it had nothing to do
                        process.join()
                        idle.append(_spawn(run))
                        continue
                    busy[pipe] = (process, waiting.pop())
                for pipe in [pipe for pipe in (wait(list(busy)) if busy else ()) if isinstance(pipe, Connection)]:
                    process, cell = busy[pipe]
                    try:
                        message = pipe.recv()
                    except (EOFError, ConnectionResetError):
                        del busy[pipe]
                        process.join()
                        yield Outcome(cell, f"its process died (exit code {process.exitcode}); out of memory?")
                        idle += [_spawn(run)] if waiting else []
                        continue
                    if isinstance(message, Outcome):
                        del busy[pipe]
                        idle.append((process, pipe))
                        yield message
                    else:
                        on_round(cell, *message)
        finally:  # also when the caller stops listening or is interrupted: the journals hold all there is
            for process, pipe in [*idle, *((process, pipe) for pipe, (process, _) in busy.items())]:
                process.kill()
                process.join()
                pipe.close()


def _spawn(run: Run) -> tuple[Any, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(run, theirs), daemon=True)
    process.start()
    theirs.close()  # so that the death of the worker ends our end
    return process, ours


def _work(run: Run, pipe: Connection) -> None:
    """The loop of a worker: it receives a cell, sends its rounds and its outcome."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its workers
    while True:
        try:
            cell = pipe.recv()
        except (EOFError, OSError):  # the parent has ended
            return
        pipe.send(outcome_of(run, cell, lambda *numbers: pipe.send(numbers)))


def _die_with_parent() -> None:
    """End with the parent: else a worker would keep the lock of its journal when the run is started again."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def outcome_of(run: Run, cell: Cell, notify: Notify) -> Outcome:
    """Run a cell; an error becomes its outcome."""
    try:
        run(cell, notify)
    except Exception as error:
        return failure(cell, error)
    return Outcome(cell)


def failure(cell: Cell, error: Exception) -> Outcome:
    """The outcome of a cell that raised; the name of the error is left out where badge raised it on purpose."""
    text = str(error) if isinstance(error, BadgeError) else f"{type(error).__name__}: {error}"
    return Outcome(cell, text, "".join(traceback.format_exception(error)))


def _run_in(folder: Path, cell: Cell, notify: Notify) -> None:
    run_cell(cell, folder, notify)


def run_cells(
    cells: Sequence[Cell], folder: str | Path, executor: Executor | None = None, display: Display | None = None
) -> list[Outcome]:
    """Run all cells that are not finished; the outcomes of those that failed.

    Data sets are loaded here first: a download happens once, and one that cannot be had fails its cells at once.

    Args:
        cells: what to run.
        folder: where the journals are.
        executor: `Serial()`, `Processes(n)` or one's own; None: one after another in this process.
        display: what shows the progress; None: one on standard error.

    Returns:
        The outcomes of cells that failed; [] when all went well.

    Raises:
        BadgeError: all cells are of one data set, which cannot be had.

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
    several = names(lambda one: one.passes)
    for cell in cells:
        strategies.get(held(cell.strategy))
        if cell.first is not None:
            strategies.get(cell.first)
            check_first(cell.first)
        if cell.model != LINEAR:
            networks.resolve(cell.model, cell.width)
        if cell.model in networks.NETWORKS and cell.strategy in several:
            what = f"{cell.strategy} compares several passes with dropout, and {cell.model} has none"
            raise InputError(f"{what}: use {LINEAR}")
        if isinstance(held(cell.data), str):
            data.check_name(cell.data)


def _record(outcome: Outcome, folder: Path) -> None:
    """Write the failure into the cell's journal, for the report; the worker no longer holds it."""
    path = journal_path(outcome.cell, folder)
    if path.exists():
        with (
            suppress(BadgeError, OSError),
            Journal(path, sync=False) as journal,
        ):  # what cannot be written is known by now
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
