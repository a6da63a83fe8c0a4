"""Pools from files: texts, a folder of images, rows of a table. What a person is shown, and what a trainer gets."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from badge.errors import DataError, MissingExtraError
from badge.labelling.images import ImageFolder

__all__ = ["Source", "open_source"]

#: of one field of a table
MOST_CHARACTERS = 2**31 - 1
Kind = Literal["text", "image", "row"]
Id = int | str
#: endings of files that hold one record per row
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
#: names of columns that are taken for the ids and for the text where none is named
ID, TEXT = "id", "text"


@dataclass(frozen=True)
class Source:
    """A pool, the ids of its items (None: their positions), and what to show of each.

    `pool` is a list of texts, an `ImageFolder` or a list of dicts (rows); it is what a trainer gets.
    """

    kind: Kind
    pool: Any
    ids: list[Id] | None
    extra: Sequence[dict[str, Any]] | None = None  #: of texts, the other columns

    def __len__(self) -> int:
        return len(self.pool)

    def id(self, position: int) -> Id:
        return position if self.ids is None else self.ids[position]

    def shown(self, position: int) -> dict[str, Any]:
        """What the page needs to show an item; of an image only its name, its bytes come by id."""
        if self.kind == "image":
            return {"kind": "image", "name": self.pool.names[position]}
        if self.kind == "row":
            return {"kind": "row", "fields": [[name, _plain(value)] for name, value in self.pool[position].items()]}
        more = [[name, _plain(value)] for name, value in self.extra[position].items()] if self.extra else []
        return {"kind": "text", "text": self.pool[position], "fields": more}

    def summary(self, position: int) -> str:
        """An item in one line, for lists and search."""
        if self.kind == "image":
            return str(self.pool.names[position])
        if self.kind == "row":
            return " · ".join(f"{name}: {_plain(value)}" for name, value in self.pool[position].items())
        return str(self.pool[position])


def open_source(path: Path, text: str | None = None, id: str | None = None) -> Source:
    """The pool of a file or folder. `text` names the column of texts, `id` that of ids.

    Without `text` a column "text" is taken; a table that has none is labelled row by row. Without `id` a column "id" is
    taken; where there is none, ids are positions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text("id,text\\nr1,fine\\nr2,dull\\n")
    ...     source = open_source(file)
    >>> source.kind, source.ids, source.pool
    ('text', ['r1', 'r2'], ['fine', 'dull'])
    """
    if not path.exists():
        raise DataError(f"there is no {path}: name a .csv, .jsonl, .parquet or .txt file, or a folder of images")
    if path.is_dir():
        if text is not None or id is not None:
            raise DataError(
                f"{path} is a folder of images, whose ids are their file names: --text and --id are for tables"
            )
        folder = ImageFolder(path)
        return Source("image", folder, list(folder.names))
    if path.suffix == ".txt":
        if text is not None or id is not None:
            raise DataError(f"{path} holds one text per line and no columns: --text and --id are for tables")
        lines = [line.removesuffix("\r") for line in _read(path).split("\n")]  # and not at other signs that end a line
        return _checked(Source("text", [line for line in lines if line.strip()], None), path)
    if path.suffix not in TABLES:
        raise DataError(f"{path} ends in {path.suffix or 'nothing'}; known are {', '.join(TABLES)}, .txt and folders")
    rows = list(_rows(path))
    columns = list(rows[0]) if rows else []
    for option, name in (("--text", text), ("--id", id)):
        if name is not None and name not in columns:
            raise DataError(f"{option} {name}: {path} has no such column; it has {', '.join(columns) or 'none'}")
    id = id or (ID if ID in columns else None)
    ids = None if id is None else _ids([row.pop(id, None) for row in rows], path, id)
    text = text or (TEXT if TEXT in columns else None)
    if text is None:
        return _checked(Source("row", rows, ids), path)
    texts = [str(_plain(row.pop(text, None) or "")) for row in rows]
    return _checked(Source("text", texts, ids, rows if any(rows) else None), path)


def _checked(source: Source, path: Path) -> Source:
    if len(source) < 2:
        raise DataError(f"{path} holds {len(source)} item{'s' * (len(source) != 1)}: at least 2 are needed")
    return source


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise MissingExtraError(f"reading {path}", "pyarrow", "parquet") from None
        yield from parquet.read_table(path).to_pylist()
    elif path.suffix in (".csv", ".tsv"):
        yield from _table(path)
    else:
        for number, line in enumerate(_read(path).split("\n"), start=1):
            if line.strip():
                yield _record(line, path, number)


def _table(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(MOST_CHARACTERS)
    reader = csv.DictReader(io.StringIO(_read(path), newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
    try:
        for number, row in enumerate(reader, start=2):
            if None in row or None in row.values():
                raise DataError(f"{path}, row {number}: not as many values as there are columns")
            yield dict(row)
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num} cannot be read as a table: {error}") from None


def _record(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {number} is no JSON: {error}") from None
    if isinstance(found, str):
        return {TEXT: found}
    if not isinstance(found, dict):
        raise DataError(f"{path}, line {number} is a {type(found).__name__}: one object with named values is needed")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}): convert it first") from None


def _ids(values: list[Any], path: Path, column: str) -> list[Id]:
    seen: dict[Id, int] = {}
    for number, value in enumerate(values, start=1):
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            raise DataError(
                f"{path}, item {number}: the id {value!r} in column {column!r} is neither text nor a whole number"
            )
        if value in seen:
            raise DataError(f"{path}: the id {value!r} stands at items {seen[value]} and {number}: ids must differ")
        seen[value] = number
    return list(seen)


def _plain(value: Any) -> str | int | float | bool | None:
    """A value that JSON can carry to the page."""
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode()  # half of a surrogate pair is no text
