"""Which columns of a table are the numbers that were asked for: those named, else all that look like it."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge.errors import InputError
from badge.tables import NOTHING, Array, Table, Told, first_few, read_table

#: What pandas and parquet call an index without a name.
UNNAMED = ("", "Unnamed: 0", "__index_level_0__")
#: Columns with these names are not features, even if they hold numbers.
NOT_FEATURES = ("id", "ids", "idx", "index", "label", "labels", "target", "targets", "class")
SINGULAR = {"probabilities": "probability", "embeddings": "embedding", "logits": "logit"}


class Numbers(NamedTuple):
    """Rows of numbers (memory-mapped where the file is npy), identifiers if a column has them, notes, how it was read."""

    values: Array
    ids: list[str] | None
    notes: list[str]
    understood: str


def read_numbers(
    file: Path, what: str, patterns: Sequence[str] = (), id_column: str | None = None, told: Told = NOTHING
) -> Numbers:
    """The numbers in a file: `what` is "probabilities", "logits" or "embeddings"; `patterns` name their columns."""
    table = read_table(file, told, what, numbers=True, keep=(id_column,), array=what)
    own = table.names.index(id_column) if id_column in table.names else None
    rest = [i for i in range(len(table.names)) if i != own]
    taken = _named(table, rest, patterns, _option(what), file) if patterns else _found(table, rest, what, file)
    notes = []
    if not patterns:
        _check_features(table, taken, what, file)
        if left := [table.names[i] or "the first, unnamed" for i in rest if i not in taken]:
            notes.append(f"{file}: column{'s' * (len(left) > 1)} left out of the {what}: {first_few(left)}")
    if table.array is not None and taken == list(range(len(table.names))):
        values = table.array
    else:
        values = np.column_stack([table.columns[i] for i in taken])
    ids = None if own is None else [str(value).strip() for value in table.columns[own]]
    return Numbers(values, ids, notes, table.understood)


def _option(what: str) -> str:
    return "--embedding-columns" if what == "embeddings" else "--probability-columns"


def _kind(column: Array | list[Any]) -> str:
    if isinstance(column, list) or column.dtype.kind == "U":
        return "text"
    return "list" if column.ndim == 2 else "float" if column.dtype.kind == "f" else "whole"


def _named(table: Table, rest: Sequence[int], patterns: Sequence[str], option: str, file: Path) -> list[int]:
    names = table.names
    for pattern in patterns:
        if not any(fnmatchcase(names[i], pattern) for i in rest):
            raise InputError(f"{option} {pattern!r} matches no column of {file}: {first_few(names)}")
    taken = [i for i in rest if any(fnmatchcase(names[i], pattern) for pattern in patterns)]
    for i in taken:
        if _kind(table.columns[i]) == "text":
            raise InputError(f"{option}: column {names[i]!r} of {file} {_no_numbers(table.columns[i])}")
    if len({_kind(table.columns[i]) == "list" for i in taken}) > 1:
        raise InputError(f"{option}: columns of lists and of numbers cannot be mixed: {first_few(names)}")
    return taken


def _found(table: Table, rest: Sequence[int], what: str, file: Path) -> list[int]:
    """The column of lists (the one of a fitting name, or the only one), else all columns of numbers but an index."""
    kinds, names = [_kind(column) for column in table.columns], table.names
    others = {word for name in SINGULAR if name != what for word in (name, SINGULAR[name])}
    lists = [i for i in rest if kinds[i] == "list" and names[i].lower() not in others]
    fitting = [i for i in lists if names[i].lower() in (what, SINGULAR[what])]
    lists = fitting if len(fitting) == 1 else lists
    if len(lists) > 1:
        shown = first_few([names[i] for i in lists])
        raise InputError(f"{what}: {file} has several columns of lists ({shown}): name one with {_option(what)}")
    index = [i for i in rest if names[i] == UNNAMED[2] or (i == 0 and names[i] in UNNAMED)]
    taken = lists or [i for i in rest if kinds[i] in ("float", "whole") and i not in index]
    if not taken:
        ragged = [f"; {names[i]!r} {_no_numbers(table.columns[i])}" for i in rest if kinds[i] == "text"]
        why = ragged[0] if len(ragged) == 1 else ""
        raise InputError(f"{what}: {file} has no column of numbers; its columns: {first_few(names)}{why}")
    return taken


def _no_numbers(column: Array | list[Any]) -> str:
    if any(isinstance(value, list) for value in column):
        return "holds lists that differ in length, or are missing"
    return "does not hold numbers"


def _check_features(table: Table, taken: Sequence[int], what: str, file: Path) -> None:
    """Refuse a column that hardly is a feature: it counts the rows, holds whole numbers beside fractions, or is "id"."""
    kinds = [_kind(table.columns[i]) for i in taken]
    if len(taken) < 2 or "list" in kinds:
        return
    for i, kind in zip(taken, kinds, strict=True):
        name, column = table.names[i], table.columns[i]
        if name.lower() in NOT_FEATURES:
            why = "does not sound like a feature"
        elif kind == "whole" and "float" in kinds and table.array is None and np.ptp(column) != 0:
            why = "holds whole numbers, and others do not"
        elif i == 0 and len(column) >= 3 and bool((np.asarray(column[:1000]) == np.arange(len(column[:1000]))).all()):
            why = "counts the rows"
        else:
            continue
        use = [table.names[j] for j in taken if j != i]
        start = use[0][:1]
        alike = start.isalpha() and all(other.startswith(start) for other in use)
        raise InputError(
            f"{what}: column {name!r} of {file} {why}: name the columns to use, e.g. {_option(what)} "
            f"'{f'{start}*' if alike else ','.join(use[:2])}' (all of them: '*'), or the identifiers with --id-column"
        )
