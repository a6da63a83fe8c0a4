"""Taking up a cell: where its journal is, whether it is finished, and whether it is the journal of this cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from badge.errors import JournalError
from badge.experiment.origin import check_code
from badge.journal import Journal

if TYPE_CHECKING:
    from badge.experiment.cell import Cell

__all__ = ["check_start", "check_whole_batches", "finished", "goes_on", "journal_path"]


def journal_path(cell: Cell, folder: Path) -> Path:
    return folder / f"{cell.name}.jsonl"


def finished(cell: Cell, folder: Path) -> bool:
    """Whether the cell's journal ends in an `end` event; a journal of other settings is an error.

    Reads the first line and the last: a grid has a thousand journals of a megabyte.
    """
    path = journal_path(cell, folder)
    if not path.is_file():  # a pipe would never end; opening it for appending sees to that
        return False
    with path.open("rb") as file:
        first = file.readline()
        file.seek(max(0, path.stat().st_size - 4096))
        last = file.read().splitlines()[-1:]
    try:
        start, ending = json.loads(first), json.loads(last[0])
    except (ValueError, IndexError):  # torn; opening it for appending sees to that
        return False
    check_start(start, cell, path)
    if not isinstance(ending, dict) or ending.get("event") != "end":
        return False
    return not goes_on(cell, ending.get("labels", start["cell"]["labels"]), ending, path)


def check_start(start: Any, cell: Cell, path: Path) -> None:
    """Refuse a journal of other settings or of other code, naming the first that differs; `labels` may have grown."""
    recorded = start.get("cell") if isinstance(start, dict) else None
    recorded = recorded if isinstance(recorded, dict) else {}
    for field, value in asdict(cell).items():
        if recorded.get(field) != value and (field != "labels" or field not in recorded):
            raise JournalError(
                f"{path} was made with {field} = {recorded.get(field)!r}, now {value!r}: use another --out folder"
            )
    check_code(start, cell, path)


def goes_on(cell: Cell, before: int | None, last: Mapping[str, Any], path: Path) -> bool:
    """Whether a run that ended, or was to end, at `before` labels is now to have more; fewer are refused."""
    if cell.labels == before or last.get("reason") == "pool exhausted":
        return False
    if before is None or (cell.labels is not None and cell.labels < before):
        raise JournalError(f"{path} was made with labels = {before!r}, now {cell.labels!r}: use another --out folder")
    return True


def check_whole_batches(journal: Journal, cell: Cell) -> None:
    """Refuse to go on where the run would be another one than that which has had all its labels in view."""
    asked = [len(event["ids"]) for event in journal.of("ask")]
    if cell.strategy == "albl":
        why = "albl sets its rates by the number of batches"
    elif len(asked) > 1 and asked[-1] < cell.batch_size:
        why = f"its last batch was cut to {asked[-1]} of {cell.batch_size}"
    else:
        return
    raise JournalError(
        f"{journal.path} cannot go on to {cell.labels or 'all'} labels ({why}): use another --out folder"
    )
