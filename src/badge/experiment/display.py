"""The progress of a grid, on standard error: a live table on a terminal, plain lines elsewhere; and its last accuracies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from badge.core.text_table import text_table
from badge.experiment.executor import Outcome
from badge.experiment.grid import Cell, journal_path
from badge.journal import records_of
from badge.journal.events import Round

#: seconds between plain lines about cells that are still running
EVERY = 10.0


class Display:
    """Shows the progress of cells. It is a context manager around the whole run.

    Args:
        cells: all cells that will run.
        console: a `rich.console.Console`; None: one on standard error.
    """

    def __init__(self, cells: Sequence[Cell], console: Console | None = None) -> None:
        self.total, self.done, self.failed, self.skipped = len(cells), 0, 0, 0
        self.running: dict[Cell, tuple[int, int, float]] = {}  # labels so far, labels at the end, accuracy
        self.console = console or Console(stderr=True)
        self.started = self.spoken = time.monotonic()
        live = Live(get_renderable=self._table, console=self.console, refresh_per_second=4, transient=True)
        self.live = live if self.console.is_terminal and not self.console.is_dumb_terminal else None

    def __enter__(self) -> Display:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()

    def round(self, cell: Cell, labels: int, total: int, accuracy: float) -> None:
        """Show that a cell has trained a model.

        Args:
            cell: the cell.
            labels: its number of labels so far.
            total: its number of labels at the end.
            accuracy: the accuracy on the test set.
        """
        self.running[cell] = (labels, total, accuracy)
        if not self.live and time.monotonic() - self.spoken > EVERY:
            now = "; ".join(f"{c.name} {n:,} of {t:,} labels: {a:.4f}" for c, (n, t, a) in self.running.items())
            self._say(f"{self.done} of {self.total} cells, {self.left()}: {now}")

    def ended(self, outcome: Outcome, skipped: bool = False) -> None:
        """Show that a cell has ended, has failed, or was finished before.

        Args:
            outcome: how the cell ended.
            skipped: whether it was finished before.
        """
        numbers = self.running.pop(outcome.cell, None)
        self.done += 1
        self.skipped += skipped
        self.failed += outcome.error is not None
        if skipped:
            return
        well = f"{numbers[0]:,} labels, test accuracy {numbers[2]:.4f}" if numbers else ""
        how = f"failed: {outcome.error}" if outcome.error else well
        self._say(f"[{self.done}/{self.total}] {outcome.cell.name}: {how}")

    def left(self) -> str:
        """The estimated time left. Cells that were finished before do not count."""
        under_way = sum(labels / total for labels, total, _ in self.running.values())
        done, work = self.done - self.skipped + under_way, self.total - self.skipped
        if done <= 0 or done < min(1.0, 0.05 * work):  # the start of the processes would count for too much
            return "time left unknown"
        seconds = (time.monotonic() - self.started) * (work - done) / done
        return f"about {_duration(seconds)} left"

    def _say(self, line: str) -> None:
        self.spoken = time.monotonic()
        self.console.print(Text(line), soft_wrap=True)

    def _table(self) -> Table:
        skipped = f", {self.skipped} of them before" if self.skipped else ""
        failed = f", {self.failed} failed" if self.failed else ""
        table = Table(title=f"{self.done} of {self.total} cells{skipped}{failed}; {self.left()}", title_justify="left")
        table.add_column("cell")
        table.add_column("labels", justify="right")
        table.add_column("test accuracy", justify="right")
        for cell, (labels, total, accuracy) in self.running.items():
            table.add_row(Text(cell.name), f"{labels:,} / {total:,}", f"{accuracy:.4f}")
        return table


def _duration(seconds: float) -> str:
    """
    >>> _duration(12), _duration(130), _duration(8000)
    ('12 s', '2 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def final_accuracies(cells: Sequence[Cell], folder: Path) -> str:
    """The last test accuracy of every setting: mean and standard error over the seeds."""
    groups: dict[tuple[str, str, str, str], list[tuple[int, float]]] = {}
    for cell in cells:
        path = journal_path(cell, folder)
        if rounds := [one for one in records_of(path) if isinstance(one, Round)] if path.exists() else []:
            key = (cell.data, cell.shown_model, f"{cell.batch_size:,}", cell.strategy)
            groups.setdefault(key, []).append((rounds[-1].labels, rounds[-1].test_accuracy))
    rows = []
    for key, ends in groups.items():
        accuracies = [accuracy for _, accuracy in ends]
        spread = f" ± {statistics.stdev(accuracies) / len(accuracies) ** 0.5:.4f}" if len(accuracies) > 1 else ""
        labels = sorted({labels for labels, _ in ends})
        span = f"{labels[0]:,}" if len(labels) == 1 else f"{labels[0]:,} to {labels[-1]:,}"
        rows.append([*key, str(len(ends)), span, f"{statistics.fmean(accuracies):.4f}{spread}"])
    return text_table(["data", "model", "batch", "strategy", "seeds", "labels", "test accuracy"], rows)
