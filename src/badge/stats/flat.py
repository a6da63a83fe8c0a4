"""The flat table of results, one row per trained model, as CSV or parquet: written by `badge export`, read by `load`."""

import csv
import gzip
import lzma
from collections.abc import Callable
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.core.importing import needs
from badge.core.names import path_of
from badge.core.progress import bar
from badge.core.spreadsheet import as_meant, safe
from badge.core.writing import folder_for, replacing
from badge.errors import DataError, InputError, in_short
from badge.stats.columns import OPTIONAL, REQUIRED, TEXT
from badge.stats.results import Results, check_results

#: Rows of a CSV file that are read at once.
PIECE = 10_000
PARQUET = (".parquet", ".pq")
#: How compressed CSV is opened.
OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def write(results: Results, path: str | Path) -> None:
    """Write results as a flat table, which `load` reads.

    It has the required columns, and the optional columns that hold values.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        path: the file to write. Its ending sets the format: .parquet, .csv, .csv.gz or .csv.xz; CSV without an ending.

    Raises:
        WriteError: the file cannot be written.

    >>> import tempfile
    >>> from badge import stats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(stats.example(), Path(folder) / "runs.csv.gz")
    ...     stats.load(Path(folder) / "runs.csv.gz")
    Results(6 runs of 2 strategies in 1 setting, 30 rows)
    """
    name = path_of(path, "the table").name.lower()
    if not name.endswith((*PARQUET, ".csv", ".csv.gz", ".csv.xz")) and "." in name:
        raise InputError(f"{path}: a table is written as .csv, .csv.gz, .csv.xz or .parquet")
    check_results(results)
    columns = {n: held for n, held in results.columns.items() if n in REQUIRED or not np.isnan(held).all()}
    content = _parquet(columns) if name.endswith(PARQUET) else _csv(columns)
    content = gzip.compress(content, mtime=0) if name.endswith(".gz") else content
    content = lzma.compress(content) if name.endswith(".xz") else content
    folder_for(Path(path).parent)
    with replacing(path, binary=True) as file:  # the same rows, the same bytes
        file.write(content)


def _csv(columns: dict[str, NDArray[Any]]) -> bytes:
    how = dict.fromkeys(TEXT, safe) | dict.fromkeys(OPTIONAL, _cell)
    cells = [map(how[name], column.tolist()) if name in how else column.tolist() for name, column in columns.items()]
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*cells, strict=True))
    return text.getvalue().encode()


def _parquet(columns: dict[str, NDArray[Any]]) -> bytes:
    """Missing values are null."""
    pa, parquet = _pyarrow("writing parquet")
    table, content = pa.table({n: pa.array(column, from_pandas=True) for n, column in columns.items()}), BytesIO()
    parquet.write_table(table, content)
    return content.getvalue()


def load_parquet(path: Path) -> Results:
    pa, parquet = _pyarrow("reading parquet")
    try:
        table = parquet.read_table(path)
        columns: dict[str, Any] = {}
        for name in (name for name in (*REQUIRED, *OPTIONAL) if name in table.column_names):
            column = table[name].cast(pa.string() if name in TEXT else pa.float64())
            columns[name] = [str(text) for text in column.to_pylist()] if name in TEXT else column.to_numpy()
    except Exception as error:
        raise DataError(f"{path} is not a flat table of results in parquet: {in_short(error)}") from error
    return Results.of(columns)


def _pyarrow(what: str) -> tuple[Any, Any]:
    with needs(what, "pyarrow", "parquet"):
        import pyarrow
        from pyarrow import parquet
    return pyarrow, parquet


def _cell(value: float) -> str:
    """A number without a needless ".0"; nothing for NaN; `-inf` as it is."""
    if np.isnan(value):
        return ""
    return str(int(value)) if np.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)


def load_csv(path: Path, progress: bool) -> Results:
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    with (
        OPEN.get(path.suffix.lower(), open)(path, **how) as file,
        bar("reading results (rows)", total=None, enabled=progress) as advance,
    ):
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        if missing := [name for name in REQUIRED if name not in header]:
            lacking = f"column{'s' * (len(missing) > 1)} {', '.join(missing)}; needed: {', '.join(REQUIRED)}"
            raise InputError(f"{path} lacks the {lacking}; found: {', '.join(header) or 'nothing'}")
        known = [name for name in (*REQUIRED, *OPTIONAL) if name in header]
        if doubled := [name for name in known if header.count(name) > 1]:
            raise InputError(f"{path} has the column {doubled[0]} {header.count(doubled[0])} times")
        pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in known}
        rows, before = (row for row in reader if row), 0
        while piece := list(islice(rows, PIECE)):  # transposing hundreds of thousands of rows at once is slow
            for number, row in enumerate(piece, start=before + 1):
                if len(row) != len(header):
                    found = f"row {number} after the header has {len(row)} cells, the header {len(header)}"
                    raise InputError(f"{path}: {found}")
            for name, cells in zip(header, zip(*piece, strict=True), strict=True):
                if name in TEXT:
                    pieces[name].append(np.array([as_meant(cell.strip()) for cell in cells]))
                elif name in known:
                    pieces[name].append(_numbers(cells, f"{path}: {name}", before))
            before += len(piece)
            advance(len(piece))
    if not before:
        raise InputError(f"{path} has a header and no rows")
    return Results.of({name: np.concatenate(arrays) for name, arrays in pieces.items()})


def _numbers(cells: tuple[str, ...], what: str, before: int) -> NDArray[np.float64]:
    """The numbers in some cells, NaN for empty ones. `before`: the number of rows before them, for the message."""
    values: list[float] = []
    try:
        for cell in cells:
            values.append(float(cell) if cell and not cell.isspace() else np.nan)
    except ValueError:
        row = before + len(values) + 1
        raise InputError(f"{what} has {cell!r} in row {row} after the header, which is not a number") from None
    return np.array(values)
