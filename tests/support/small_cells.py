"""The small cell that the tests of experiments run, and ways to read what it left."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from badge import journal
from badge.experiment import Cell, Display, journal_path

CELL = Cell("own_parts:blobs", "own_parts:small", "badge", batch_size=10, initial=12, labels=45, max_epochs=6)


def variants(*strategies: str, seeds: int = 1, **settings: Any) -> list[Cell]:
    names = strategies or ("badge", "albl", "rand")
    return [Cell(**{**CELL.__dict__, "strategy": s, "seed": i, **settings}) for i in range(seeds) for s in names]


def quiet(cells: Sequence[Cell]) -> Display:
    return Display(cells, Console(file=io.StringIO()))


def content(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """The journal of a cell without what may differ: seconds, and that it was taken up again."""
    events = [event for event in journal.read(journal_path(cell, folder)) if event["event"] != "resume"]
    return [{key: value for key, value in event.items() if not key.endswith("seconds")} for event in events]


def rounds(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    return [event for event in journal.read(journal_path(cell, folder)) if event["event"] == "round"]
