"""How a text file holds a table: encoding, delimiter, decimal sign, header; and its columns, as numbers or texts.

`detect` finds out what was not given.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from badge.core.npz import Array
from badge.errors import DataError, InputError

if TYPE_CHECKING:
    from _csv import Reader

Kind = Literal["float", "whole", "text"]

#: Rows that are looked at.
SAMPLE = 1000
#: With fewer rows than this, a first row `0,1` may be a certain prediction as well as two names.
FEW = 20
#: In this order: the first that splits every row of the sample into the same number of cells, at least two.
DELIMITERS = ("\t", ";", "|", ",")
#: A first row with one of these words is a header.
ORDINARY = ("id", "text", "label", "class", "target", "split", "file", "filename", "name", "title")
#: Longest cell of a table.
MOST_CHARACTERS = 2**31 - 1

_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: A mistyped number: it begins like a number and has a decimal sign.
_MISTYPED = re.compile(r"(?=.*[0-9])(?=.*[.,])[-+.0-9OolI][-+.,0-9OolIeE]*[a-zA-Z%]?")


@dataclass(frozen=True)
class Told:
    """What a person said about a text file; None: find out."""

    header: bool | None = None
    delimiter: str | None = None
    encoding: str | None = None


#: Find out everything.
NOTHING = Told()


@dataclass(frozen=True)
class Layout:
    """How a text file holds a table, and its columns; `skip` lines stand above the first row of values."""

    encoding: str
    delimiter: str
    decimal: str
    header: bool
    skip: int
    names: list[str]
    kinds: list[Kind]

    def __str__(self) -> str:
        """What a person may want to know of it."""
        sign = "tab" if self.delimiter == "\t" else repr(self.delimiter)
        parts = [f"delimiter {sign}" if len(self.names) > 1 else "one column", "decimal comma" * (self.decimal == ",")]
        return ", ".join(filter(None, [*parts, "header" if self.header else "no header", self.encoding]))


def detect(content: bytes, told: Told = NOTHING, names: Collection[str] | None = None, file: object = "it") -> Layout:
    """The layout of a table. An error if it cannot be told whether the first row is a header.

    With `names`, the first row is a header exactly where it has one of them, or begins with an unnamed column.

    >>> layout = detect("größe;preis\\n1;0,5\\n2;0,25\\n".encode("cp1252"))
    >>> str(layout), layout.names
    ("delimiter ';', decimal comma, header, windows-1252", ['größe', 'preis'])
    """
    encoding = told.encoding or encoding_of(content, file)
    with _opened(content, encoding) as stream:
        lines = list(islice(stream, SAMPLE))
    skip = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if skip is None:
        raise DataError(f"{file} is empty")
    above = [line.strip().lstrip("# ") for line in lines[:skip] if line.strip()]
    delimiter = "\t" if told.delimiter in ("tab", "\\t") else told.delimiter or _delimiter(lines[skip:])
    lines_of_top = _parsed(iter(lines[skip:]), delimiter)
    next(lines_of_top)
    _check_quotes(lines[skip : skip + lines_of_top.line_num], delimiter, skip, file)
    top, *under = [[cell.strip() for cell in row] for row in _sample(lines[skip:], delimiter)]
    below = [row for row in under if len(row) == len(top)]  # others are refused when the table is read
    decimal = _decimal([top, *below], delimiter)
    first, *below = [
        [cell.replace(",", ".") if decimal == "," and _COMMA.fullmatch(cell) else cell for cell in row]
        for row in [top, *below]
    ]
    if told.header is not None:
        header = told.header
    elif names is not None:
        header = top[0] == "" or any(cell in names or cell.lower() in names for cell in top)
    else:
        header = _is_header(first, below, file)
    if header and not under and names is None:
        raise DataError(f"{file} has a header and no rows")
    cells = list(zip(*(below if header else [first, *below]), strict=True)) or [()] * len(top)
    return Layout(
        encoding, delimiter, decimal, header, skip + lines_of_top.line_num * header,
        top if header else _names(above, delimiter, len(top), file), [_kind(column) for column in cells],
    )  # fmt: skip


def _opened(content: bytes, encoding: str) -> IO[str]:
    """The text of a file, with its ends of lines as they are."""
    return io.TextIOWrapper(io.BytesIO(content), encoding=encoding, newline="")


def _parsed(lines: Iterator[str], delimiter: str) -> Reader:
    """The rows of a table; cells may be of any length."""
    csv.field_size_limit(MOST_CHARACTERS)
    return csv.reader(lines, delimiter=delimiter)


def _check_quotes(row: Sequence[str], delimiter: str, before: int, file: object) -> None:
    """A row over several lines: its quoted cells must end with a quote, or one that was not closed took in other rows.

    >>> _check_quotes(['1,"two\\n', 'lines"\\n'], ",", 0, "a.csv")
    """
    if len(row) < 2:
        return
    end = re.escape(delimiter)
    cell = re.compile(rf'(?:"[^"]*(?:""[^"]*)*" *|(?!")[^{end}\r\n]*)(?:{end}|\r\n?|\n|\Z)')
    text, at = "".join(row), 0
    while at < len(text):
        if (found := cell.match(text, at)) is None:
            line = before + 1 + bisect_right(list(accumulate(map(len, row))), at)
            begun = f"{file}: the cell that begins with a quote on line {line} does not end with one"
            raise DataError(
                f'{begun}: close it; if the quote is part of the text, write """ at its start and " at its end'
            )
        at = found.end()


def encoding_of(content: bytes, file: object = "the file") -> str:
    """UTF-8 or UTF-16 if the first bytes say so or the text decodes, else Windows-1252, else Latin-1."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if content.startswith(mark):
            return name
    even, odd = content[:4096:2].count(0), content[1:4096:2].count(0)
    if even or odd:  # in UTF-16 one byte of each Latin letter is zero
        if min(even, odd) * 10 > max(even, odd):
            raise DataError(f"{file} holds zero bytes: it is no text")
        return "utf-16-le" if odd > even else "utf-16-be"
    for name in ("utf-8", "windows-1252"):
        try:
            content.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _sample(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The rows in some lines; the last may go on below them and is left out."""
    rows = [row for row in _parsed(iter(lines), delimiter) if row]
    return rows[:-1] if len(lines) > SAMPLE // 2 and len(rows) > 1 else rows


def _delimiter(lines: Sequence[str]) -> str:
    """The first of `DELIMITERS` that splits all rows alike; where none does, the first that splits the first row."""
    widths = {d: [len(row) for row in _sample(lines, d)] for d in DELIMITERS}
    alike = [d for d, found in widths.items() if found[0] > 1 and len(set(found)) == 1]
    return (alike or [d for d, found in widths.items() if found[0] > 1] or [","])[0]


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """A comma where cells have one between digits, and no number has a point."""
    if delimiter == ",":
        return "."
    cells = [cell for row in rows for cell in row]
    commas = any(_COMMA.fullmatch(cell) for cell in cells)
    return "," if commas and not any("." in cell and _NUMBER.fullmatch(cell) for cell in cells) else "."


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]], file: object) -> bool:
    """Whether the first row names the columns: by ordinary names, or by what stands above columns of numbers."""
    if any(cell.lower() in ORDINARY for cell in first):
        return True
    if not below:
        return not all(map(_is_number, first))
    columns = list(zip(*below, strict=True))
    numbers = [i for i, column in enumerate(columns) if 2 * sum(map(_is_number, column)) >= len(column)]
    if not numbers:
        return True
    words = [first[i] for i in numbers if not _is_number(first[i])]
    whole = [first[i] for i in numbers if _WHOLE.fullmatch(first[i])]
    fractions = len(words) + len(whole) < len(numbers)
    counted = [int(cell) for cell in whole if len(cell) < 10]
    counts = any(counted == list(range(start, start + len(numbers))) for start in (0, 1))
    whole_below = any(_WHOLE.fullmatch(cell) for i in numbers for cell in columns[i])
    if words and not fractions and not any(map(_MISTYPED.fullmatch, words)):
        return True
    if not words and (fractions or (whole_below and not counts)):
        return False
    if counts and not whole_below and (len(numbers) > 2 or len(below) >= FEW):
        return True
    shown = ",".join(first[:6]) + (",…" if len(first) > 6 else "")
    shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
    raise InputError(f"{file}: does the first row ({shown}) name the columns? Give --header or --no-header")


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _names(comments: Sequence[str], delimiter: str, width: int, file: object) -> list[str]:
    """Names from a comment above the rows (numpy's `savetxt` writes them so), else positions."""
    cells = [cell.strip() for cell in comments[-1].split(delimiter)] if comments else []
    if len(cells) != width or width == 1:
        return [str(i) for i in range(width)]
    if all(map(_is_number, cells)):
        above = "the line above the rows begins with # and has a number for every column"
        raise DataError(f"{file}: {above}: take out the line, or the #")
    return cells


def _kind(cells: Sequence[str]) -> Kind:
    if not cells or 2 * sum(map(_is_number, cells)) < len(cells):
        return "text"
    return "whole" if all(_WHOLE.fullmatch(cell) for cell in cells if cell) else "float"


def texts(file: Path, content: bytes, layout: Layout) -> list[Array | list[Any]]:
    """Columns of texts as they stand; numbers with a decimal comma get a point."""
    found = list(zip(*_rows(file, content, layout, gaps=True), strict=True)) or [()] * len(layout.names)
    points = [kind != "text" and layout.decimal == "," for kind in layout.kinds]
    return [[c.replace(",", ".") for c in cells] if p else list(cells) for cells, p in zip(found, points, strict=True)]


def _rows(file: Path, content: bytes, layout: Layout, gaps: bool = False) -> Iterator[list[str]]:
    """The cells of each row. Without `gaps`, empty lines may only follow the last row: positions count rows."""
    width, blank = len(layout.names), 0
    with _opened(content, layout.encoding) as stream:
        held: list[str] = []
        reader = _parsed(_noted(islice(stream, layout.skip, None), held), layout.delimiter)
        for row in reader:
            line = layout.skip + reader.line_num
            _check_quotes(held, layout.delimiter, line - len(held), file)
            held.clear()
            if not row or (len(row) == 1 < width and not row[0].strip()):
                blank = blank or line
            elif blank and not gaps:
                raise DataError(f"{file}: line {blank} is empty, and rows follow it: take it out, or fill it in")
            elif len(row) != width:
                found = f"{file}: line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the first row {width}"
                raise DataError(f"{found}: correct it, or give --delimiter")
            else:
                yield row


def _noted(lines: Iterator[str], held: list[str]) -> Iterator[str]:
    for line in lines:
        held.append(line)
        yield line


def columns(file: Path, content: bytes, layout: Layout, keep: Collection[str | None] = ()) -> list[Array | list[Any]]:
    """Columns of numbers as arrays; the others, and the columns `keep`, as lists of texts."""
    numbers = [i for i, kind in enumerate(layout.kinds) if kind != "text" and layout.names[i] not in keep]
    lines = ("\x1f".join([*(row[i] for i in numbers), "0"]) for row in _rows(file, content, layout))
    if layout.decimal == ",":
        lines = (line.replace(",", ".") for line in lines)
    try:  # the last column keeps numpy from passing over a row of empty cells
        matrix = np.loadtxt(lines, delimiter="\x1f", ndmin=2, dtype=np.float64, comments=None)
    except ValueError as error:
        found = re.search(r"string '(.*)' to float64 at row (\d+), column (\d+)", str(error), re.DOTALL)
        if found is None:
            raise
        what = f"{found[1][:40]!r}, which is not a number" if found[1] else "an empty cell"
        name = layout.names[numbers[int(found[3]) - 1]][:40]
        row = f"row {found[2]} (counted from 0)"
        raise DataError(f"{file} has {what}, in {row} of column {name!r}: correct it") from None
    whole = [layout.kinds[i] == "whole" for i in numbers]
    arrays = {i: matrix[:, j].astype(np.int64) if whole[j] else matrix[:, j] for j, i in enumerate(numbers)}
    places = range(len(layout.kinds))
    return [arrays[i] if i in arrays else [row[i] for row in _rows(file, content, layout)] for i in places]
