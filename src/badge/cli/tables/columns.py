"""Which columns of a table are the numbers that were asked for: those named, else all that look it; never a guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from badge.errors import InputError

__all__ = ["Array", "Choice", "Column", "check_features", "choose", "listed"]

Array = np.ndarray[Any, np.dtype[Any]]

#: What pandas and parquet call an index without a name.
UNNAMED = ("", "Unnamed: 0", "__index_level_0__")
#: Columns of these names are there to be read by people, whatever they hold.
NOT_FEATURES = ("id", "ids", "idx", "index", "label", "labels", "target", "targets", "class")
#: Rows of which it is asked whether their first column counts them.
COUNTED = 1000


class Column(NamedTuple):
    """A column of a file, by its name (or its position, where there are no names), and what kind of thing it holds."""

    name: str
    kind: Literal["float", "whole", "text", "list"]


@dataclass(frozen=True)
class Choice:
    """What was said about a file's columns: patterns of those wanted, the one of identifiers, whether there are names.

    `name` is what is wanted of the file ("probabilities"), `option` what names its columns on the command line.
    """

    name: str
    option: str
    patterns: tuple[str, ...] = ()
    id_column: str | None = None
    header: bool | None = None


def choose(columns: Sequence[Column], choice: Choice, file: Path) -> tuple[list[int], int | None, list[str]]:
    """Positions of the columns of numbers, of the one of identifiers if there is one, and notes on what is left out."""
    names = [column.name for column in columns]
    own = names.index(choice.id_column) if choice.id_column in names else None
    rest = [i for i in range(len(columns)) if i != own]
    if choice.patterns:
        return _named(columns, rest, choice, file), own, []
    taken = _lists(columns, rest, choice, file) or [
        i for i in rest if columns[i].kind in ("float", "whole") and not (i == 0 and names[i] in UNNAMED[:2])
    ]
    taken = [i for i in taken if names[i] != UNNAMED[2]]
    if not taken:
        raise InputError(f"{choice.name}: {file} has no column of numbers; its columns: {listed(names)}")
    notes = []
    if left := [names[i] or "the first, unnamed" for i in rest if i not in taken]:
        plural = "s" * (len(left) > 1)
        notes.append(f"{file}: column{plural} left out of the {choice.name}: {listed(left)}")
    return taken, own, notes


def check_features(values: Array, columns: Sequence[Column], choice: Choice, file: Path) -> None:
    """Refuse a column that hardly is a feature: it counts the rows, holds whole numbers beside fractions, or is "id"."""
    if choice.patterns or values.ndim != 2 or values.shape[1] != len(columns) or len(columns) < 2:
        return
    names = [column.name for column in columns]
    whole = [column.kind == "whole" and bool(np.ptp(values[:, i])) for i, column in enumerate(columns)]
    why = None
    for i, name in enumerate(names):
        if name.lower() in NOT_FEATURES:
            why = "does not sound like a feature"
        elif whole[i] and not all(column.kind == "whole" for column in columns):
            why = "holds whole numbers, and others do not"
        elif i == 0 and counts_rows(values[:COUNTED, 0]):
            why = "counts the rows"
        if why:
            raise InputError(
                f"{choice.name}: column {name!r} of {file} {why}: name the columns to use, e.g. {choice.option} "
                f"'{_pattern([n for n in names if n != name])}' (all of them: '*'), or the identifiers with --id-column"
            )


def counts_rows(column: Array) -> bool:
    """Whether a column is 0, 1, 2, …; of fewer than three rows nothing can be said."""
    return len(column) >= 3 and column.dtype.kind in "iuf" and bool((column == np.arange(len(column))).all())


def listed(names: Sequence[str]) -> str:
    """Names for a message: the first few, short, and how many there are.

    >>> listed(["a", "b"]), listed([str(i) for i in range(99)])
    ("'a', 'b'", "'0', '1', '2', '3', '4', … (99)")
    """
    shown = ", ".join(repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:5])
    return shown if len(names) <= 5 else f"{shown}, … ({len(names)})"


def _named(columns: Sequence[Column], rest: Sequence[int], choice: Choice, file: Path) -> list[int]:
    names = [column.name for column in columns]
    for pattern in choice.patterns:
        if not any(fnmatchcase(names[i], pattern) for i in rest):
            raise InputError(f"{choice.option} {pattern!r} matches no column of {file}: {listed(names)}")
    taken = [i for i in rest if any(fnmatchcase(names[i], pattern) for pattern in choice.patterns)]
    for i in taken:
        if columns[i].kind == "text":
            raise InputError(f"{choice.option}: column {names[i]!r} of {file} does not hold numbers")
    if len({columns[i].kind == "list" for i in taken}) > 1:
        raise InputError(f"{choice.option}: columns of lists and of numbers cannot be mixed: {listed(names)}")
    return taken


def _lists(columns: Sequence[Column], rest: Sequence[int], choice: Choice, file: Path) -> list[int]:
    """The column of lists to use (one list is one row): the one of the fitting name, or the only one."""
    other = "embeddings" if choice.name != "embeddings" else "probabilities"
    lists = [i for i in rest if columns[i].kind == "list" and columns[i].name.lower() not in _names_for(other)]
    fitting = [i for i in lists if columns[i].name.lower() in _names_for(choice.name)]
    found = fitting if len(fitting) == 1 else lists
    if len(found) > 1:
        names = listed([columns[i].name for i in found])
        raise InputError(f"{choice.name}: {file} has several columns of lists ({names}): name one with {choice.option}")
    return found


def _names_for(name: str) -> tuple[str, ...]:
    singular = {"probabilities": "probability", "embeddings": "embedding", "logits": "logit"}[name]
    return (name, singular)


def _pattern(names: Sequence[str]) -> str:
    """A pattern that might name these: their common beginning, or the first two of them."""
    start = names[0][:1]
    return f"{start}*" if start.isalpha() and all(name.startswith(start) for name in names) else ",".join(names[:2])
