"""Identifiers of examples in files: `--ids` names every row of the pool, `--exclude` those that have labels."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from badge.core.spreadsheet import as_meant
from badge.errors import InputError
from badge.tables import Array, first_few, is_table, read_lines, read_table

#: Names that a column of identifiers, or of positions, ordinarily has.
ID_NAMES = ("id", "ids", "name", "names", "file", "filename", "path", "image", "key", "uuid", "example")
POSITION_NAMES = ("position", "positions", "index", "row", "idx", "id", "ids")
INDEX = ("", "unnamed: 0")


def read_ids(file: Path, rows: int, id_column: str | None) -> list[str]:
    """The identifier of every row; a header, known by its word, is not one of them."""
    names, header = _column(file, "--ids", id_column, ID_NAMES)
    if not header and len(names) == rows + 1 and names[0].lower() in (*ID_NAMES, *POSITION_NAMES, "0"):
        names = names[1:]
    if "" in names:
        raise InputError(f"--ids {file}: line {names.index('') + 1 + header} is empty: every row needs a name")
    if len(names) != rows:
        hint = f" (is the first, {names[0][:40]!r}, a header? then take it out)" if len(names) == rows + 1 else ""
        raise InputError(f"--ids {file} has {len(names)} lines; the pool has {rows} rows{hint}")
    return names


def check_ids(names: Sequence[str], source: str, one_a_line: bool) -> None:
    """Refuse names that do not tell examples apart, or that would not come out as one line each."""
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{source} names {twice[:60]!r} more than once: names must differ")
    if broken := [name for name in names if one_a_line and len(name.splitlines()) > 1]:
        raise InputError(f"{source} names {broken[0][:60]!r}, which has several lines: use --format csv or json")


def excluded(
    files: Sequence[Path], names: list[str] | None, rows: int, id_column: str | None, strict: bool
) -> tuple[Array, list[str]]:
    """The positions that all files together name, by identifiers where the pool has them; and notes on the files."""
    found: set[int] = set()
    notes: list[str] = []
    where = None if names is None else {name: i for i, name in enumerate(names)}
    wanted = POSITION_NAMES if where is None else ID_NAMES
    for file in files:
        cells, header = _column(file, "--exclude", id_column, wanted)
        given = [cell for cell in cells if cell]
        if not header and given and given[0].lower() in wanted and given[0] not in (where or {}):
            given = given[1:]
        if where is None:
            found.update(_position(cell, file, rows) for cell in given)
            continue
        known = {cell: where.get(cell, where.get(as_meant(cell))) for cell in given}
        there = {position for position in known.values() if position is not None}
        found |= there
        if gone := [cell for cell, position in known.items() if position is None]:
            some = f"--exclude {file}: {len(gone)} of {len(given)} are not in the pool (first: {gone[0][:60]!r})"
            if strict or not there:
                raise InputError(some)
            notes.append(some)
    return np.array(sorted(found), dtype=np.int64), notes


def _position(cell: str, file: Path, rows: int) -> int:
    if not (cell.isascii() and cell.isdecimal()) or len(cell) > 18 or int(cell) >= rows:
        hint = "" if cell.isdecimal() else "; for identifiers give --ids too"
        shown = repr(cell if len(cell) <= 40 else f"{cell[:39]}…")
        raise InputError(f"--exclude {file}: {shown} is not a position from 0 to {rows - 1}{hint}")
    return int(cell)


def _column(file: Path, option: str, id_column: str | None, wanted: Sequence[str]) -> tuple[list[str], bool]:
    """The cells of the column of identifiers, and whether a header above them was taken off already."""
    if not is_table(file):
        lines = [line.strip() for line in read_lines(file, what=option)]
        while lines and not lines[-1]:
            lines.pop()
        return lines, False
    table = read_table(file, what=option, header_names=(*wanted, *INDEX[1:], *([id_column] if id_column else [])))
    if table.array is not None and (table.array.ndim != 1 or table.array.dtype.kind == "f"):
        raise InputError(f"{option} {file} holds {table.array.dtype}, {table.array.shape}: one name a row is needed")
    bare = table.names == [str(i) for i in range(len(table.names))] and len(table.names) > 1
    names = [str(column[0]) for column in table.columns] if bare else table.names  # no header: for the message
    return [str(cell).strip() for cell in table.column(_which(names, option, file, id_column, wanted))], True


def _which(names: Sequence[str], option: str, file: Path, id_column: str | None, wanted: Sequence[str]) -> str:
    """The column of identifiers: the one named, one of an ordinary name, or the only one."""
    if id_column in names:
        return str(id_column)
    if id_column is not None and option == "--ids":  # labels may call theirs by another name; these are the names
        raise InputError(f"--id-column: there is no column {id_column!r} in {file}: {first_few(names)}")
    ordinary = [name for word in wanted for name in names if name.lower() == word]
    if not ordinary and len(names) == 2 and names[0].lower() in INDEX:
        ordinary = [names[1]]  # what pandas writes of a Series
    if ordinary or len(names) == 1:
        return (ordinary or names)[0]
    raise InputError(f"{option} {file}: which column has the identifiers? {first_few(names)}: name it with --id-column")
