"""What runs cells: an object with one method, `map`. A cluster can stand in for the processes of this machine."""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from badge.core.numbers import whole
from badge.errors import BadgeError, InputError
from badge.experiment.cell import Notify
from badge.experiment.grid import Cell

#: runs one cell and reports its rounds; must be picklable where cells run in other processes
Run = Callable[[Cell, Notify], None]
#: called in the calling process with the cell and the numbers of `Notify`
OnRound = Callable[[Cell, int, int, float], None]


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: `error` is None, or an error in one line with its traceback in `details`."""

    cell: Cell
    error: str | None = None
    details: str = ""


class Executor(Protocol):
    """Runs cells: `map` calls `run` for each, in any order and place, and yields an outcome for each, failed ones too."""

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]: ...


class Serial:
    """Runs one cell after another, in this process.

    >>> def full(cell, notify):
    ...     raise OSError("the disk is full")
    >>> cells = [Cell("digits", "mlp", "rand", batch_size=20)]
    >>> [outcome.error for outcome in Serial().map(full, cells, on_round=print)]
    ['OSError: the disk is full']
    """

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]:
        for cell in cells:
            yield outcome_of(run, cell, partial(on_round, cell))


class Processes:
    """Runs cells in several processes of this machine. If a process dies, only its cell fails.

    Processes are spawned, not forked, because a fork of a process with busy threads can hang.

    Args:
        workers: the number of processes.

    Raises:
        InputError: `workers` is not a whole number of at least 1.

    >>> Processes(workers=4).workers
    4
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
    text = error.plain if isinstance(error, BadgeError) else f"{type(error).__name__}: {error}"
    return Outcome(cell, text, "".join(traceback.format_exception(error)))
