"""Identifiers of examples in files: `--ids` names every row of the pool, `--exclude` those that have labels."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from badge.cli.tables import kind_of, reading
from badge.cli.tables.columns import Array, listed
from badge.cli.tables.parquet import Parquet
from badge.cli.tables.text import delimiter_of, opened
from badge.core.spreadsheet import as_meant
from badge.errors import InputError

__all__ = ["Excluded", "check_ids", "excluded", "read_ids"]

#: Names that a column of identifiers, or of positions, ordinarily has.
ID_NAMES = ("id", "ids", "name", "names", "file", "filename", "path", "image", "key", "uuid", "example")
POSITION_NAMES = ("position", "positions", "index", "row", "idx", "id", "ids")


class Excluded(NamedTuple):
    """Positions that have labels already, and what is to be said about the files that named them."""

    positions: Array
    notes: list[str]


def read_ids(file: Path, rows: int, id_column: str | None) -> list[str]:
    """The identifier of every row; a header, known by its word, is not one of them."""
    names, header = _column(file, "--ids", id_column, ID_NAMES)
    if not header and len(names) == rows + 1 and names[0].lower() in (*ID_NAMES, *POSITION_NAMES, "0"):
        names = names[1:]
    if len(names) != rows:
        hint = f" (is the first, {names[0][:40]!r}, a header? then take it out)" if len(names) == rows + 1 else ""
        raise InputError(f"--ids {file} has {len(names)} lines; the pool has {rows} rows{hint}")
    return names


def check_ids(names: Sequence[str], source: str, one_a_line: bool) -> None:
    """Refuse names that do not tell examples apart, or that would not come out as one line each."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{source} names {twice[:60]!r} more than once: a pick could not be told from its namesake")
    broken = [name for name in names if one_a_line and len(name.splitlines()) > 1]
    if broken:
        raise InputError(f"{source} names {broken[0][:60]!r}, which is no single line: use --format csv or json")


def excluded(
    files: Sequence[Path], names: Sequence[str] | None, rows: int, id_column: str | None, strict: bool
) -> Excluded:
    """The union of what all files name: positions, or identifiers where the pool has them."""
    found: set[int] = set()
    notes: list[str] = []
    where = None if names is None else {name: i for i, name in enumerate(names)}
    for file in files:
        wanted = POSITION_NAMES if where is None else ID_NAMES
        given, header = _column(file, "--exclude", id_column, wanted)
        if where is None:
            found |= _positions(given, file, rows, header)
            continue
        known = {cell: where.get(cell, where.get(as_meant(cell))) for cell in given}
        gone = [cell for cell, position in known.items() if position is None]
        if gone and not header and gone[0] == given[0] and given[0].lower() in ID_NAMES:
            gone = gone[1:]  # a header
        there = {position for position in known.values() if position is not None}
        if gone and (strict or not there):
            raise InputError(
                f"--exclude {file}: {len(gone)} of {len(given)} are not in --ids (first: {gone[0][:60]!r})"
            )
        if gone:
            notes.append(f"--exclude {file}: {len(gone)} of {len(given)} are not in the pool (first: {gone[0][:60]!r})")
        found |= there
    return Excluded(np.array(sorted(found), dtype=np.int64), notes)


def _positions(given: Sequence[str], file: Path, rows: int, header: bool) -> set[int]:
    if given and not header and given[0].lower() in POSITION_NAMES:
        given = given[1:]
    found = set()
    for cell in given:
        if not (cell.isascii() and cell.isdecimal()) or len(cell) > 18 or int(cell) >= rows:
            hint = "" if cell.isdecimal() else "; for identifiers give --ids too"
            shown = repr(cell if len(cell) <= 40 else f"{cell[:39]}…")
            raise InputError(f"--exclude {file}: {shown} is not a position from 0 to {rows - 1}{hint}")
        found.add(int(cell))
    return found


def _column(file: Path, option: str, id_column: str | None, wanted: Sequence[str]) -> tuple[list[str], bool]:
    """The cells of the column of identifiers, and whether a header above them was taken off already."""
    with reading(option, file):
        kind = kind_of(file)
        if kind == ".npy":
            array = np.load(file, allow_pickle=False)
            if array.ndim != 1 or array.dtype.kind not in "iuU":
                raise InputError(
                    f"{option} {file} holds {array.dtype} of shape {array.shape}: one name a row is needed"
                )
            return [str(name) for name in array.tolist()], True
        if kind in (".csv", ".tsv", ".parquet", ".pq"):
            return _from_table(file, option, id_column, wanted, kind)
        with opened(file) as stream:
            lines = [line.strip() for line in stream.read().split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        if option == "--ids" and "" in lines:
            raise InputError(f"{option} {file}: line {lines.index('') + 1} is empty: every row needs a name")
        return [line for line in lines if line], False


def _from_table(
    file: Path, option: str, id_column: str | None, wanted: Sequence[str], kind: str
) -> tuple[list[str], bool]:
    if kind in (".parquet", ".pq"):
        table = Parquet(file)
        names = [column.name for column in table.columns]
        return table.strings(_which(names, option, file, id_column, wanted)), True
    with opened(file) as stream:
        lines = [line for line in stream if line.strip()]
    if not lines:
        return [], False
    delimiter = delimiter_of(lines[0], file)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    header = rows[0][0] == "" or any(cell.lower() in (*wanted, "unnamed: 0") or cell == id_column for cell in rows[0])
    names = rows[0]
    column = _which(names, option, file, id_column, wanted)
    for number, row in enumerate(rows):
        if len(row) != len(names):
            raise InputError(f"{option} {file}: row {number + 1} has {len(row)} cells, the first {len(names)}")
    return [row[column] for row in rows[header:]], header


def _which(names: Sequence[str], option: str, file: Path, id_column: str | None, wanted: Sequence[str]) -> int:
    """The position of the column of identifiers: the one named, one of an ordinary name, or the only one."""
    if id_column in names:
        return names.index(id_column)
    if id_column is not None and option == "--ids":  # labels may call theirs by another name; these are the names
        raise InputError(f"--id-column: there is no column {id_column!r} in {file}: {listed(names)}")
    lower = [name.lower() for name in names]
    for name in wanted:
        if name in lower:
            return lower.index(name)
    if len(names) == 1:
        return 0
    if len(names) == 2 and lower[0] in ("", "unnamed: 0"):
        return 1  # what pandas writes of a Series
    raise InputError(f"{option} {file}: which column has the identifiers? {listed(names)}: name it with --id-column")
