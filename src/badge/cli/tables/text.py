"""Tables as text (csv, tsv, also gzipped): whether there is a header, and numbers without a row lost or gained."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np

from badge.cli.tables.columns import Array, Column
from badge.errors import InputError

__all__ = ["Text", "delimiter_of", "has_header", "is_number", "opened"]

#: Rows that are looked at before the whole is read.
SAMPLE = 1000
#: Below so many rows a first row of `0,1` may be a certain prediction as well as two names.
FEW = 20
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]+")
#: What a number with a typing error looks like: it begins as a number does and has a point.
_MISTYPED = re.compile(r"(?=.*[0-9])(?=.*[.,])[-+.0-9OolI][-+.,0-9OolIeE]*[a-zA-Z%]?")


def opened(file: Path) -> IO[str]:
    """The text of a file, unpacked where its name ends in .gz, without a byte-order mark."""
    if file.suffix.lower() == ".gz":
        return cast("IO[str]", gzip.open(file, "rt", encoding="utf-8-sig", newline=""))
    return file.open(encoding="utf-8-sig", newline="")


def delimiter_of(first: str, file: Path) -> str:
    """What stands between the cells, by the first row and the file's name."""
    tab = "\t" in first or ".tsv" in [suffix.lower() for suffix in file.suffixes]
    return "\t" if tab else ";" if ";" in first else ","


def is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


class Text:
    """A table in a text file: its columns, known from its first rows, and their content when it is asked for."""

    def __init__(self, file: Path, header: bool | None = None, what: str = "") -> None:
        self.file, self._what = file, what
        comments: list[str] = []
        with opened(file) as stream:
            self._skip = 0
            for first in stream:
                if first.strip() and not first.lstrip().startswith("#"):
                    break
                comments += [first.strip().lstrip("# ")] if first.strip() else []
                self._skip += 1
            else:
                raise InputError(f"{file} is empty")
            self.delimiter = delimiter_of(first, file)
            reader = csv.reader(chain([first], stream), delimiter=self.delimiter)
            top = [cell.strip() for cell in next(reader)]
            lines_of_top = reader.line_num
            below = [[cell.strip() for cell in row] for row in islice(reader, SAMPLE) if row]
        self.width = len(top)
        below = [row for row in below if len(row) == self.width]  # others are refused when the whole is read
        self.header = has_header(top, below, file) if header is None else header
        names = top if self.header else self._names_in(comments)
        if self.header:
            self._skip += lines_of_top
            if not below:
                raise InputError(f"{file} has a header and no rows")
        rows = below if self.header else [top, *below]
        cells = list(zip(*rows, strict=True))
        self.columns = [Column(name, self._kind(name, column)) for name, column in zip(names, cells, strict=True)]

    def values(self, positions: Sequence[int]) -> Array:
        """Columns as numbers [N, len(positions)]."""
        with opened(self.file) as stream:
            try:
                return np.loadtxt(
                    self._lines(stream), delimiter=self.delimiter, usecols=list(positions), ndmin=2, dtype=np.float64,
                    comments=None, quotechar='"',
                )  # fmt: skip
            except ValueError as error:
                found = re.search(r"string '(.*)' to float64 at row (\d+), column (\d+)", str(error), re.DOTALL)
                if isinstance(error, InputError) or found is None:
                    raise
                cell, row, column = found.groups()
                name = self.columns[int(column) - 1].name
                raise InputError(self._no_number(cell, f"row {row} (counted from 0)", name)) from None

    def strings(self, position: int) -> list[str]:
        """A column as it stands."""
        with opened(self.file) as stream:
            return [row[position].strip() for row in csv.reader(self._lines(stream), delimiter=self.delimiter)]

    def _lines(self, stream: IO[str]) -> Iterator[str]:
        """The lines of the rows. Blank ones may follow the last row: anywhere else, what was meant cannot be known."""
        blank = 0
        for number, line in enumerate(stream, start=1):
            if number <= self._skip:
                continue
            if not line.strip():
                blank = blank or number
                continue
            if blank:
                raise InputError(f"{self.file}: line {blank} is empty, and rows follow it: take it out, or fill it in")
            if '"' not in line and line.count(self.delimiter) != self.width - 1:
                cells = line.count(self.delimiter) + 1
                raise InputError(f"{self.file}: line {number} has {cells} cells, the first row {self.width}")
            yield line

    def _names_in(self, comments: Sequence[str]) -> list[str]:
        """Names from a comment above the rows (numpy's `savetxt` writes them so), else positions."""
        for comment in comments:
            cells = [cell.strip() for cell in comment.split(self.delimiter)]
            if len(cells) == self.width > 1 and all(map(is_number, cells)):
                raise InputError(
                    f"{self.file}: a line above the rows begins with # and has a number for every column: take it out, "
                    "or take out the #"
                )
        last = [cell.strip() for cell in comments[-1].split(self.delimiter)] if comments else []
        return last if len(last) == self.width > 1 else [str(i) for i in range(self.width)]

    def _kind(self, name: str, cells: Sequence[str]) -> Literal["float", "whole", "text"]:
        strange = [i for i, cell in enumerate(cells) if not is_number(cell)]
        if 2 * len(strange) > len(cells):
            return "text"
        if strange:
            raise InputError(self._no_number(cells[strange[0]], f"row {strange[0]} (counted from 0)", name))
        return "whole" if all(_WHOLE.fullmatch(cell) for cell in cells) else "float"

    def _no_number(self, cell: str, row: str, column: str) -> str:
        what = f"{cell[:40]!r}, which is not a number" if cell else "an empty cell"
        return f"{self._what}{self.file} has {what}, in {row} of column {column[:40]!r}: correct it"


def has_header(first: Sequence[str], below: Sequence[Sequence[str]], file: Path) -> bool:
    """Whether the first row of a table names its columns; an error where that cannot be told.

    >>> below = [["0.25", "0.75"]] * 50
    >>> [has_header(first, below, Path("p.csv")) for first in (["a", "b"], ["0", "1"], ["0.5", "0.5"])]
    [True, True, False]
    """
    unsure = f"{file}: does the first row ({_short(first)}) name the columns? Give --header or --no-header"
    if not below:
        return not all(map(is_number, first))
    names, numbers = [], []
    for position, (cell, column) in enumerate(zip(first, zip(*below, strict=True), strict=True)):
        if sum(map(is_number, column)) * 2 < len(column):
            continue  # words above words say nothing
        if not is_number(cell):
            names.append(cell)
            if _MISTYPED.fullmatch(cell) or (not cell and position > 0):
                raise InputError(unsure)
        else:
            numbers.append((cell, column))
    if not names and not numbers:
        return True  # nothing but words: that is said later
    fractions = [cell for cell, _ in numbers if not _WHOLE.fullmatch(cell)]
    if fractions and names:
        raise InputError(unsure)
    if fractions or names:
        return bool(names)
    counted = [int(cell) for cell, _ in numbers if len(cell) < 10]
    steps = any(counted == list(range(start, start + len(numbers))) for start in (0, 1))
    whole_below = any(_WHOLE.fullmatch(cell) for _, column in numbers for cell in column)
    if steps and not whole_below and (len(numbers) > 2 or len(below) >= FEW):
        return True
    if steps or not whole_below:
        raise InputError(unsure)
    return False


def _short(cells: Sequence[str]) -> str:
    text = ",".join(cells[:6]) + (",…" if len(cells) > 6 else "")
    return text if len(text) <= 60 else f"{text[:59]}…"
