"""Whether all runs were made by one version of the code and on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from badge.stats.results import Note

__all__ = ["mixed_origins"]


def mixed_origins(starts: Sequence[Mapping[str, Any]]) -> list[Note]:
    """Notes on runs whose digests differ: of the user's code, or of the data at one seed.

    >>> start = {"cell": {"data": "own:load", "seed": 0}, "code": {"data": "a"}, "data": {"digest": "x"}}
    >>> [note.topic for note in mixed_origins([start, {**start, "code": {"data": "b"}}])]
    ['runs of different code']
    """
    code: dict[tuple[str, str], set[str]] = {}
    data: dict[tuple[str, int, bool], set[str]] = {}
    for start in starts:
        cell, digests, about = start["cell"], start.get("code"), start.get("data")
        for part, digest in digests.items() if isinstance(digests, Mapping) else ():
            code.setdefault((str(cell.get(part)), part), set()).add(str(digest))
        if isinstance(about, Mapping) and about.get("digest"):
            key = (cell["data"], cell["seed"], bool(cell.get("raw")))
            data.setdefault(key, set()).add(str(about["digest"]))
    notes = [
        Note("runs of different code", f"{name} ({part}): {len(found)} versions of it made these runs")
        for (name, part), found in sorted(code.items())
        if len(found) > 1
    ]
    names = sorted({name for (name, _, _), found in data.items() if len(found) > 1})
    return notes + [Note("runs on different data", f"{name}: not the same examples at the same seed") for name in names]
