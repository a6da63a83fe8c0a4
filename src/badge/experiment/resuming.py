"""Resuming a cell: where its journal is, whether it is finished, and whether it is the journal of this cell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from badge.errors import JournalError
from badge.experiment.origin import check_code
from badge.journal import Journal
from badge.journal.events import Ask, End, Record, Resume, Start
from badge.journal.lines import first_and_last

if TYPE_CHECKING:
    from badge.experiment.cell import Cell


ANOTHER = "use another --out folder"


def journal_path(cell: Cell, folder: Path) -> Path:
    """Where the journal of a cell is.

    Args:
        cell: the settings of the run.
        folder: where the journals are.

    >>> from badge.experiment import Cell
    >>> journal_path(Cell("digits", "mlp", "rand", batch_size=50), Path("runs")).name
    'digits-mlp-b50-rand-s0.jsonl'
    """
    return folder / f"{cell.name}.jsonl"


def finished(cell: Cell, folder: Path) -> bool:
    """Whether the cell's journal ends in an `end` event; a journal of other settings is an error.

    Reads the first line and the last: a grid has a thousand journals of a megabyte.

    Args:
        cell: the settings of the run.
        folder: where the journals are.

    Raises:
        JournalError: the journal is of another cell.

    >>> from badge.experiment import Cell
    >>> finished(Cell("digits", "mlp", "rand", batch_size=50), Path("no such folder"))
    False
    """
    path = journal_path(cell, folder)
    ends = first_and_last(path)
    if ends is None:  # new, torn or damaged: opening it for appending says so
        return False
    start = check_start(ends[0], cell, path)
    return isinstance(ends[1], End) and not goes_on(cell, start, ends[1], path)


def check_start(start: Record, cell: Cell, path: Path) -> Start:
    """Refuse a journal of other settings or of other code, naming the first that differs; `labels` may have grown."""
    if not isinstance(start, Start):
        raise JournalError(f"{path} is not the journal of a run: {ANOTHER}")
    for field, value in asdict(cell).items():
        if start.cell.get(field) != value and (field != "labels" or field not in start.cell):
            raise JournalError(f"{path} was made with {field} = {start.cell.get(field)!r}, now {value!r}: {ANOTHER}")
    check_code(start, cell, path)
    return start


def goes_on(cell: Cell, start: Start, last: End | Resume | None, path: Path) -> bool:
    """Whether a run has to reach more labels than it was asked for before; fewer are refused."""
    before = start.cell["labels"] if last is None else last.labels
    if cell.labels == before or (isinstance(last, End) and last.reason == "pool exhausted"):
        return False
    if before is None or (cell.labels is not None and cell.labels < before):
        raise JournalError(f"{path} was made with labels = {before!r}, now {cell.labels!r}: {ANOTHER}")
    return True


def check_whole_batches(journal: Journal, cell: Cell) -> None:
    """Refuse to go on where a run with this number of labels from the start would have been another run."""
    asked = [len(record.ids) for record in journal.records if isinstance(record, Ask)]
    if cell.strategy == "albl":
        why = "albl sets its rates by the number of batches"
    elif len(asked) > 1 and asked[-1] < cell.batch_size:
        why = f"its last batch was cut to {asked[-1]} of {cell.batch_size}"
    else:
        return
    raise JournalError(f"{journal.path} cannot go on to {cell.labels or 'all'} labels ({why}): {ANOTHER}")
