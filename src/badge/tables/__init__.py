"""Tables that other programs wrote, through one door: csv, tsv, jsonl (also .gz, .xz), xlsx, parquet, npy, npz."""

import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge.core.importing import needs
from badge.core.npz import Array, names_in, read_npz, sound
from badge.errors import BadgeError, DataError, in_short
from badge.tables.layout import NOTHING, Told, columns, detect, encoding_of, texts

__all__ = ["NOTHING", "Array", "Table", "Told", "first_few", "is_table", "read_lines", "read_table"]

ARRAYS, CELLS, JSON, PARQUET = (".npy", ".npz"), (".csv", ".tsv", ".xlsx"), (".jsonl", ".ndjson"), (".parquet", ".pq")
#: Endings of compressed text.
UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}
#: The column of JSON lines that are a text alone.
TEXT = "text"


class Table(NamedTuple):
    """Columns by name, as arrays or lists. `understood` says in one line how a file was read; `array` is all of an npy."""

    names: list[str]
    columns: list[Array | list[Any]]
    understood: str = ""
    array: Array | None = None

    def column(self, name: str) -> list[Any]:
        return list(self.columns[self.names.index(name)])

    def rows(self, *without: str | None) -> list[dict[str, Any]]:
        """Each row as a dict, without some columns."""
        names = [name for name in self.names if name not in without]
        return [dict(zip(names, row, strict=True)) for row in zip(*map(self.column, names), strict=True)]


def read_table(
    file: Path,
    told: Told = NOTHING,
    what: str = "",
    numbers: bool = False,
    keep: Collection[str | None] = (),
    header_names: Collection[str] | None = None,
    array: str = "",
) -> Table:
    """The table in a file; `what` begins each message.

    With `numbers`, columns of numbers are arrays [N], and columns of lists of one length arrays [N, length]; else, and in
    the columns of `keep`, cells are as they stand in the file. With `header_names`, a first row is a header exactly where
    it has one of them. `array` is the array to take of an npz archive with several.
    """
    with _reading(what, file) as kind:
        if kind in ARRAYS:
            whole = _array(file, kind, array)
            parts: list[Array | list[Any]] = list(whole.T) if whole.ndim == 2 else [whole]
            return Table([str(i) for i in range(len(parts))], parts, array=whole)
        if kind in PARQUET:
            arrow = _parquet(file)
            pairs = zip(arrow.column_names, arrow.columns, strict=True)
            found = [_of_arrow(c.combine_chunks()) if numbers and n not in keep else c.to_pylist() for n, c in pairs]
            return Table(arrow.column_names, found, "" if numbers else f"{file.name}: {arrow.num_rows:,} rows")
        if kind in JSON:
            names, values, understood = _json(file, told)
            kept = [n in keep or not numbers for n in names]
            return Table(names, [v if k else _typed(v) for v, k in zip(values, kept, strict=True)], understood)
        if kind not in CELLS:
            known = ".csv, .tsv, .jsonl (each also with .gz or .xz), .xlsx, .parquet, .npy and .npz"
            raise DataError(f"{file} is none of {known}: convert it first")
        content = _csv_of_sheet(file) if kind == ".xlsx" else _content(file)
        delimiter = told.delimiter or {".tsv": "\t", ".xlsx": ","}.get(kind)
        encoding = "utf-8" if kind == ".xlsx" else told.encoding
        layout = detect(content, Told(told.header, delimiter, encoding), header_names, file)
        found = columns(file, content, layout, keep) if numbers else texts(file, content, layout)
        how = f"first sheet, {'header' if layout.header else 'no header'}" if kind == ".xlsx" else layout
        return Table(layout.names, found, f"{file.name}: {len(found[0]):,} rows, {how}")


def read_lines(file: Path, told: Told = NOTHING, what: str = "") -> list[str]:
    """The lines of a text file, without their ends."""
    with _reading(what, file):
        return [line.removesuffix("\r") for line in _text(file, told)[0].removesuffix("\n").split("\n")]


def is_table(file: Path) -> bool:
    """Whether a file ends as tables do."""
    return _ending(file) in (*ARRAYS, *CELLS, *JSON, *PARQUET)


def first_few(names: Sequence[str]) -> str:
    """Names for a message: the first few, shortened, and their number."""
    shown = ", ".join(repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:5])
    return shown if len(names) <= 5 else f"{shown}, … ({len(names)})"


@contextmanager
def _reading(what: str, file: Path) -> Iterator[str]:
    """The ending of a file. Whatever a reader of foreign bytes raises becomes one line."""
    begin = f"{what}: " * bool(what)
    try:
        if not file.is_file():
            raise DataError(f"there is no file {file}")
        with sound():
            yield _ending(file)
    except DataError as error:
        raise DataError(f"{begin}{error}") from None
    except BadgeError:
        raise
    except Exception as error:
        raise DataError(f"{begin}{file} cannot be read: {in_short(error)}") from error


def _ending(file: Path) -> str:
    """The ending that says what a file is; of compressed text the one before .gz or .xz."""
    first, last = ["", "", *(suffix.lower() for suffix in file.suffixes)][-2:]
    return first if last in UNPACK and first in (*CELLS, *JSON) else last


def _content(file: Path) -> bytes:
    unpack = UNPACK.get(file.suffix.lower(), bytes)
    return unpack(file.read_bytes())


def _text(file: Path, told: Told) -> tuple[str, str]:
    content = _content(file)
    encoding = told.encoding or encoding_of(content, file)
    return content.decode(encoding), encoding


def _csv_of_sheet(file: Path) -> bytes:
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


def _array(file: Path, kind: str, name: str) -> Array:
    """The array of an npy file, memory-mapped, or of an npz archive: the only one, or the one of that name."""
    if kind == ".npy":
        found: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    else:
        with zipfile.ZipFile(file) as archive:
            names = names_in(archive)
        if name not in names and len(names) != 1:
            raise DataError(
                f"{file} holds {first_few(names) or 'no arrays'}: one array, or one named {name!r}, is needed"
            )
        wanted = name if name in names else names[0]
        found = read_npz(file, [wanted])[wanted]
    if found.dtype.kind not in "fiubU":
        raise DataError(f"{file} holds {found.dtype}: numbers are needed")
    if found.ndim == 0:
        raise DataError(f"{file} holds a single number: one row per example is needed")
    return found if found.dtype.isnative else found.astype(found.dtype.newbyteorder("="))


def _parquet(file: Path) -> Any:
    with needs(f"reading {file}", "pyarrow", "parquet"):
        from pyarrow import parquet
    table = parquet.ParquetFile(file).read()
    if table.num_rows == 0:
        raise DataError(f"{file} has no rows")
    return table


def _of_arrow(array: Any) -> Array | list[Any]:
    """A column of parquet: numbers, or lists of one length; a missing number is NaN."""
    import pyarrow as pa
    from pyarrow import compute

    array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    t = pa.types
    nested = any(is_kind(array.type) for is_kind in (t.is_list, t.is_large_list, t.is_fixed_size_list))
    inner = array.flatten() if nested else array
    number = any(is_kind(inner.type) for is_kind in (t.is_floating, t.is_integer, t.is_boolean, t.is_decimal))
    lengths = compute.unique(compute.list_value_length(array)).to_pylist() if nested else []
    if not number or len(lengths) > 1 or None in lengths:
        return list(array.to_pylist())
    inner = inner.cast(pa.float64()) if t.is_decimal(inner.type) else inner
    found: Array = inner.to_numpy(zero_copy_only=False)
    found = found.astype(np.float64) if found.dtype.kind == "O" else found  # truths with gaps
    return found.reshape(len(array), -1) if nested else found


def _json(file: Path, told: Told) -> tuple[list[str], list[Array | list[Any]], str]:
    text, encoding = _text(file, told)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = [_record(line, file, number) for number, line in lines]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[row.get(name) for row in rows] for name in names], f"{file.name}: {len(rows):,} rows, {encoding}"


def _record(line: str, file: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise DataError(f"{file}, line {number} is no JSON: {error}") from None
    if isinstance(found, str):
        return {TEXT: found}
    if not isinstance(found, dict):
        raise DataError(f"{file}, line {number} is a {type(found).__name__}: one object with named values is needed")
    return found


def _typed(values: Array | list[Any]) -> Array | list[Any]:
    """Numbers, or lists of numbers of one length, as an array (null is NaN); else the values.

    >>> _typed([1, None]), _typed([[1, 2], [3, 4]]).shape, _typed(["1"]), _typed([[1], [1, 2]])
    (array([ 1., nan]), (2, 2), ['1'], [[1], [1, 2]])
    """
    flat = [inner for value in values for inner in (value if isinstance(value, list) else [value])]
    kinds = {type(value) for value in flat} - {type(None)}
    shapes = {np.shape(value) for value in values if value is not None}
    if not kinds or not kinds <= {int, float, bool} or len(shapes) > 1:
        return values
    try:
        return np.array(values, dtype=np.int64 if kinds <= {int, bool} and None not in flat else np.float64)
    except (OverflowError, TypeError, ValueError):
        return values
