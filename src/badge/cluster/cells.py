"""Cells of an experiment as tasks on a Ray cluster. Events come to this process, which alone writes the journals.

A cell starts where its journal stops, on whatever node is free, and sends each event as it happens. A node that dies takes
the rounds in flight with it, and nothing else: the cell starts again from what the journal here holds.
"""

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from badge.cluster.session import connected, cpus
from badge.cluster.waiting import errors_from_afar, fetched, ready
from badge.errors import ClusterError
from badge.experiment.cell import Notify, continue_cell
from badge.experiment.executor import OnRound, Outcome, Run, failure, outcome_of
from badge.experiment.grid import Cell, journal_path
from badge.journal import Journal
from badge.journal.events import End, Record, Round

#: Cells with an open journal, per core: one is always waiting when another ends.
PER_CORE = 2
#: Deaths of a cell's worker, without an event in between, after which the cell is given up.
DEATHS = 5

#: events for the journal; the numbers of a round; or how the cell ended
Message = list[Record] | tuple[int, int, float] | Outcome


class RayCells:
    """Runs cells on a Ray cluster, at most `workers` at a time; their journals are written here, in `folder`."""

    def __init__(self, folder: Path, workers: int | None = None, address: str | None = None) -> None:
        self.folder, self.workers, self.address = folder, workers, address

    def map(self, run: Run, cells: Sequence[Cell], on_round: OnRound) -> Iterator[Outcome]:
        """The outcomes of the cells. `run` is left aside: it writes where it runs, and nodes may have no common disk."""
        with connected(self.address) as ray:
            tasks, waiting = _Tasks(ray), list(reversed(cells))
            most = self.workers or PER_CORE * cpus(ray)
            try:
                while waiting or tasks.running:
                    while waiting and len(tasks.running) < most:
                        cell = waiting.pop()
                        try:
                            tasks.start(cell, Journal(journal_path(cell, self.folder), sync=False))
                        except Exception as error:
                            yield failure(cell, error)
                    if tasks.running:
                        yield from tasks.next(on_round)
            finally:  # also when the caller stops listening: the journals hold all there is
                tasks.close()


class _Tasks:
    """The cells that are running: the stream of messages of each, and its journal."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.running: dict[Any, tuple[Cell, Journal]] = {}
        self.deaths: Counter[Cell] = Counter()
        self.where = ray.put((str(Path.cwd()), os.environ.get("BADGE_DATA")))

    def start(self, cell: Cell, journal: Journal) -> None:
        task = self.ray.remote(num_cpus=cell.threads, max_retries=0, num_returns="streaming")(messages)
        self.running[task.remote(cell, journal.path.read_bytes(), self.where)] = (cell, journal)

    def next(self, on_round: OnRound) -> Iterator[Outcome]:
        """Wait for messages, write down what they say; the cells that ended with them."""
        for stream in ready(self.ray, list(self.running), "cells"):
            cell, journal = self.running[stream]
            try:
                with errors_from_afar(self.ray):
                    message: Message = fetched(self.ray, next(stream))
            except ClusterError as error:  # its worker or node is gone
                self.deaths[cell] += 1
                if self.deaths[cell] < DEATHS:
                    del self.running[stream]
                    self.start(cell, journal)
                    continue
                message = Outcome(cell, f"{DEATHS} workers died over it, out of memory? {error}")
            if isinstance(message, Outcome):
                del self.running[stream]
                journal.close()
                yield message
            elif isinstance(message, tuple):
                on_round(cell, *message)
            else:
                journal.append(*message)
                self.deaths[cell] = 0
                if any(isinstance(record, Round | End) for record in message):
                    journal.sync()

    def close(self) -> None:
        for stream, (_, journal) in self.running.items():
            self.ray.cancel(stream, force=True)
            journal.close()
        self.running.clear()


class Telling(Journal):
    """A journal on the node that also sends its events."""

    def __init__(self, path: Path, tell: Callable[[Message], None]) -> None:
        super().__init__(path, sync=False)
        self.tell = tell

    def append(self, *records: Record) -> None:
        super().append(*records)
        self.tell(list(records))


def messages(cell: Cell, content: bytes, where: tuple[str, str | None]) -> Iterator[Message]:
    """Run a cell from where the journal `content` stops; a task on the cluster. The last message is the outcome."""
    folder, data = where
    if data is not None:
        os.environ["BADGE_DATA"] = data
    if Path(folder).is_dir():
        os.chdir(folder)  # modules of the user are found from there
    told: SimpleQueue[Message] = SimpleQueue()

    def run(cell: Cell, notify: Notify) -> None:
        with tempfile.TemporaryDirectory() as mine:
            path = Path(mine) / "journal.jsonl"
            path.write_bytes(content)
            with Telling(path, told.put) as journal:
                continue_cell(journal, cell, notify)

    def work() -> None:
        told.put(outcome_of(run, cell, lambda *numbers: told.put(numbers)))

    threading.Thread(target=work, daemon=True).start()
    message: Message = []
    while not isinstance(message, Outcome):
        message = told.get()
        yield message
