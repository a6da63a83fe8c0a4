"""Tables of cells: csv, tsv, and the first sheet of a workbook."""

import csv
import io
import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.importing import needs
from badge.core.npz import Array
from badge.errors import DataError
from badge.tables.layout import Layout, check_quotes, opened, parsed


def texts(file: Path, content: bytes, layout: Layout) -> list[Array | list[Any]]:
    """Columns of texts as they stand; numbers with a decimal comma get a point."""
    found = list(zip(*_rows(file, content, layout, gaps=True), strict=True)) or [()] * len(layout.names)
    points = [kind != "text" and layout.decimal == "," for kind in layout.kinds]
    return [[c.replace(",", ".") for c in cells] if p else list(cells) for cells, p in zip(found, points, strict=True)]


def _rows(file: Path, content: bytes, layout: Layout, gaps: bool = False) -> Iterator[list[str]]:
    """The cells of each row. Without `gaps`, empty lines may only follow the last row: positions count rows."""
    width, blank = len(layout.names), 0
    with opened(content, layout.encoding) as stream:
        held: list[str] = []
        reader = parsed(_noted(islice(stream, layout.skip, None), held), layout.delimiter)
        for row in reader:
            line = layout.skip + reader.line_num
            check_quotes(held, layout.delimiter, line - len(held), file)
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


def csv_of_sheet(file: Path) -> bytes:
    """The first sheet of a workbook as csv: values, not formulas; rows without any value are left out."""
    with needs(f"reading {file}", "openpyxl", "xlsx"):
        from openpyxl import load_workbook
    book = load_workbook(file, read_only=True, data_only=True)
    text = io.StringIO(newline="")
    for row in book.worksheets[0].iter_rows(values_only=True):
        if any(cell is not None for cell in row):
            whole = [isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15 for cell in row]
            csv.writer(text).writerow([f"{cell:.0f}" if w else cell for cell, w in zip(row, whole, strict=True)])
    book.close()
    return text.getvalue().encode("utf-8")
