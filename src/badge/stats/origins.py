"""What the runs say of themselves: the names of their data, and whether options, code and data differ among them."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from badge.journal.runs import Start
from badge.stats.columns import Note
from badge.stats.results import Setting

#: Fields of a cell that may differ between the runs of one setting.
_NO_OPTIONS = ("data", "model", "batch_size", "strategy", "seed", "labels", "threads")


def shown_model(cell: Mapping[str, Any]) -> str:
    """The model and, if the first batch was not uniform, its strategy: only runs of one start compare."""
    return str(cell["model"]) if cell.get("first") is None else f"{cell['model']}+{cell['first']}"


def data_names(starts: Sequence[Start]) -> dict[str, str]:
    """What a report calls data: the name of the data set itself, where it tells the data apart from others."""
    called: dict[str, set[str]] = defaultdict(set)
    for start in starts:
        data = start.cell["data"]
        called[data].add(start.data.name or data if start.data else data)
    counts = Counter([*called, *(name for names in called.values() for name in names)])
    return {data: name for data, (name, *more) in called.items() if not more and name != data and counts[name] == 1}


def mixed_options(starts: Sequence[Start]) -> list[Note]:
    """Settings whose runs were made with different options (width, learning rate …): their curves do not compare."""
    found: dict[tuple[Setting, str], set[str]] = defaultdict(set)
    for cell in (start.cell for start in starts):
        setting = Setting(cell["data"], shown_model(cell), cell["batch_size"])
        for name in cell.keys() - set(_NO_OPTIONS):
            found[setting, name].add(str(cell[name]))
    return [
        Note("runs with different options", f"{setting}: {name} is {' and '.join(sorted(values))}")
        for (setting, name), values in sorted(found.items())
        if len(values) > 1
    ]


def mixed_origins(starts: Sequence[Start]) -> list[Note]:
    """Notes on runs whose digests differ: of the user's code, or of the data at one seed.

    >>> cell = {"data": "own:load", "seed": 0}
    >>> [note.topic for note in mixed_origins([Start(cell=cell, code={"data": digest}) for digest in "ab"])]
    ['runs of different code']
    """
    code: dict[tuple[str, str], set[str]] = defaultdict(set)
    data: dict[tuple[str, int, bool], set[str]] = defaultdict(set)
    for start in starts:
        for part, digest in (start.code or {}).items():
            code[str(start.cell.get(part)), part].add(digest)
        if start.data is not None and start.data.digest:
            data[start.cell["data"], start.cell["seed"], bool(start.cell.get("raw"))].add(start.data.digest)
    notes = [
        Note("runs of different code", f"{name} ({part}): {len(found)} versions of it made these runs")
        for (name, part), found in sorted(code.items())
        if len(found) > 1
    ]
    names = sorted({name for (name, _, _), found in data.items() if len(found) > 1})
    return notes + [Note("runs on different data", f"{name}: not the same examples at the same seed") for name in names]
