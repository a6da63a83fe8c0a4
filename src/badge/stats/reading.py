"""Reading and writing results: a folder of journals, one journal, or one flat CSV file."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from badge.core.progress import bar
from badge.errors import DataError, InputError, JournalError
from badge.journal import Event, read
from badge.stats.results import OPTIONAL, REQUIRED, Note, Results, Setting

__all__ = ["load", "write_csv"]

#: The topic of notes on runs that ended in an error.
FAILED = "failed runs"
#: Rows of a CSV file that are read at once.
PIECE = 10_000
_ROUND = ("round", "train_accuracy", "epochs", "restarts", "train_seconds", "predict_seconds", "select_seconds")
_TEXT = ("data", "model", "strategy")
#: Fields of a cell that may differ between the runs of one setting.
_NO_OPTIONS = ("data", "model", "batch_size", "strategy", "seed", "labels", "threads")


def load(source: str | Path, progress: bool = False) -> Results:
    """The results below a folder of journals (`*.jsonl`, at any depth), of one journal, or of one flat CSV file (or .csv.gz).

    >>> import tempfile; from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.csv"
    ...     _ = path.write_text('''data,model,strategy,batch_size,seed,labels,test_accuracy
    ... letter,mlp,rand,100,0,100,0.5
    ... letter,mlp,rand,100,0,200,0.6
    ... ''')
    ...     load(path)
    Results(1 run of 1 strategy in 1 setting, 2 rows)
    """
    path = Path(source)
    if path.is_dir():
        files = sorted(path.rglob("*.jsonl"))
        if not files:
            tables = sorted(path.glob("*.csv"))
            hint = f"; for a flat table name the file itself, e.g. {tables[0]}" if tables else ""
            raise DataError(f"no journals (*.jsonl) below {path}{hint}")
        return _load_journals(files, progress)
    if not path.is_file():
        raise DataError(f"{path} does not exist: give a folder of journals, a journal (.jsonl) or a flat CSV file")
    if path.suffix == ".jsonl":
        return _load_journals([path], progress)
    try:
        return _load_csv(path, progress)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}") from None


def write_csv(results: Results, path: str | Path) -> None:
    """Write the flat table that `load` reads: the required columns, and the optional ones that hold anything.

    Compressed where the name ends in .gz.
    """
    optional = [name for name in OPTIONAL if name in results.optional and not np.isnan(results.optional[name]).all()]
    columns = [getattr(results, name).tolist() for name in REQUIRED]
    columns += [[_cell(value) for value in results.optional[name].tolist()] for name in optional]
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*REQUIRED, *optional])
    writer.writerows(zip(*columns, strict=True))
    content = text.getvalue().encode()
    target.write_bytes(
        gzip.compress(content, mtime=0) if target.suffix == ".gz" else content
    )  # the same rows, the same bytes


def _cell(value: float) -> str:
    """A number without a needless ".0"; nothing for NaN; `-inf` as it is."""
    if np.isnan(value):
        return ""
    return str(int(value)) if np.isfinite(value) and value == int(value) and abs(value) < 2**53 else repr(value)


def _load_csv(path: Path, progress: bool) -> Results:
    with (
        path.open("rb") as raw,
        _decompressed(raw, path) as plain,
        TextIOWrapper(plain, encoding="utf-8-sig", newline="") as file,
    ):
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in REQUIRED if name not in header]
        if missing:
            raise InputError(
                f"{path} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}; "
                f"needed: {', '.join(REQUIRED)}; found: {', '.join(header) or 'nothing'}"
            )
        doubled = sorted({name for name in header if header.count(name) > 1 and name in (*REQUIRED, *OPTIONAL)})
        if doubled:
            raise InputError(f"{path} has the column {doubled[0]} {header.count(doubled[0])} times")
        size = path.stat().st_size // 1000
        with bar("reading results (kB)", total=size, enabled=progress) as advance:
            pieces = _pieces((row for row in reader if row), lambda: raw.tell() // 1000, advance)
            columns = _read_columns(pieces, header, str(path))
    if not len(columns["data"]):
        raise InputError(f"{path} has a header and no rows")
    if "log_det" in columns and "mean_norm" in columns:
        columns["log_det"] = _empty_batches_apart(columns["log_det"], columns["mean_norm"])
    return Results.of(columns)


def _decompressed(raw: BinaryIO, path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw


def _pieces(
    rows: Iterator[list[str]], position: Callable[[], int], advance: Callable[[float], None]
) -> Iterator[list[list[str]]]:
    """Rows in pieces, with progress by the position in the file."""
    before = 0
    while piece := list(islice(rows, PIECE)):
        yield piece
        advance(position() - before)
        before = position()


def _read_columns(row_pieces: Iterable[list[list[str]]], header: list[str], path: str) -> dict[str, Any]:
    """The known columns of a CSV file, piece by piece: hundreds of thousands of rows at once are slow to turn over."""
    known = [name for name in (*REQUIRED, *OPTIONAL) if name in header]
    pieces: dict[str, list[Any]] = {name: [] for name in known}
    before = 0
    for rows in row_pieces:
        for i, row in enumerate(rows):
            if len(row) != len(header):
                raise InputError(
                    f"{path}: row {before + i + 1} after the header has {len(row)} cells, the header {len(header)}"
                )
        cells = dict(zip(header, zip(*rows, strict=True), strict=True))
        for name in known:
            column = cells[name]
            pieces[name].append(
                np.array([cell.strip() for cell in column])
                if name in _TEXT
                else _numbers(column, f"{path}: {name}", before)
            )
        before += len(rows)
    return {name: np.concatenate(arrays) if arrays else np.empty(0) for name, arrays in pieces.items()}


def _numbers(cells: tuple[str, ...], what: str, before: int) -> NDArray[np.float64]:
    """The numbers of some cells, NaN for empty ones; `before`: how many rows come before them, for the message."""
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        pass
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            values[i] = float(cell) if cell.strip() else np.nan
        except ValueError:
            row = before + i + 1
            raise InputError(f"{what} has {cell!r} in row {row} after the header, which is not a number") from None
    return values


def _empty_batches_apart(log_det: NDArray[np.float64], mean_norm: NDArray[np.float64]) -> NDArray[np.float64]:
    """-inf where a batch was chosen (it has a mean norm) and the log-determinant is empty: so the journals mean it."""
    return np.where(np.isnan(log_det) & ~np.isnan(mean_norm), -np.inf, log_det)


def _load_journals(files: list[Path], progress: bool) -> Results:
    columns: dict[str, list[Any]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
    notes: list[Note] = []
    cells: list[Mapping[str, Any]] = []
    with bar("reading journals", total=len(files), enabled=progress) as advance:
        for path in files:
            cell = _add_journal(path, columns, notes)
            cells += [cell] if cell else []
            advance(1)
    if failures := sum(note.topic == FAILED for note in notes):
        count = f"{failures:,} of {len(files):,} journals"
        text = f"{count}; what they did before that counts, and the same command tries them again"
        notes.insert(next(i for i, note in enumerate(notes) if note.topic == FAILED), Note(FAILED, text))
    notes += _mixed_options(cells)
    if not columns["data"]:
        raise DataError(
            f"no finished round in {len(files)} journal{'s' * (len(files) > 1)} ({files[0]} …): nothing to report yet"
        )
    table: dict[str, Any] = {name: np.array(columns[name], dtype=np.float64) for name in columns if name not in _TEXT}
    table |= {name: columns[name] for name in _TEXT}
    table["log_det"] = _empty_batches_apart(table["log_det"], table["mean_norm"])
    return Results.of(table, notes)


def _add_journal(path: Path, columns: dict[str, list[Any]], notes: list[Note]) -> Mapping[str, Any] | None:
    """Append the rounds of one journal to `columns`, and what is odd about it to `notes`; its cell, if it counts."""
    start: Mapping[str, Any] | None = None
    rounds: dict[int, Mapping[str, Any]] = {}  # a resumed run may write a round again: the last one counts
    ended, failed = False, None
    for event in _events(path, notes):
        kind = event.get("event")
        if kind == "start" and "cell" in event:
            if start is not None and event["cell"] != start["cell"]:
                raise JournalError(f"{path} holds two different runs; keep one journal per run")
            start = event
        elif kind == "round" and start is not None:
            rounds[int(event["round"])] = event
            failed = None
        elif kind == "end":
            ended, failed = True, None
        elif kind == "failed":
            failed = str(event.get("error"))
    if start is None:
        notes.append(Note("files left out", f"{path.name}: not the journal of an experiment (no start event)"))
        return None
    cell: Mapping[str, Any] = start["cell"]
    data = start.get("data") or {}
    if not rounds:
        why = "no finished round yet" if failed is None else f"failed before its first round: {failed}"
        notes.append(Note("files left out" if failed is None else FAILED, f"{path.name}: {why}"))
        return None
    last = rounds[max(rounds)]["labels"]
    if failed is not None:
        notes.append(Note(FAILED, f"{path.name}: failed at {last:,} labels: {failed}"))
    elif not ended:
        notes.append(Note("unfinished runs", f"{path.name}: stopped or still running, at {last:,} labels"))
    try:
        for number in sorted(rounds):
            found = rounds[number]
            for name in ("data", "model", "strategy", "batch_size", "seed"):
                columns[name].append(cell[name])
            for name in ("labels", "test_accuracy"):
                columns[name].append(found[name])
            for name in (*_ROUND, "mean_norm", "log_det"):
                columns[name].append(found.get(name))
            columns["rows"].append(data.get("rows"))
            columns["total_rows"].append(data.get("total"))
    except KeyError as error:
        raise JournalError(f"{path} is damaged: it lacks the field {error}") from None
    return cell


def _events(path: Path, notes: list[Note]) -> list[Event]:
    """The events of a journal; the warning about a torn last line (the writer was stopped in it) becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        events = read(path)
    if caught:
        notes.append(Note("files left out", f"{path.name}: the torn last line was ignored"))
    return events


def _mixed_options(cells: list[Mapping[str, Any]]) -> list[Note]:
    """Settings whose runs were made with different options (width, learning rate …): their curves do not compare."""
    seen: dict[Setting, dict[str, set[str]]] = {}
    for cell in cells:
        options = seen.setdefault(Setting(cell["data"], cell["model"], cell["batch_size"]), {})
        for name, value in cell.items():
            if name not in _NO_OPTIONS:
                options.setdefault(name, set()).add(str(value))
    return [
        Note("runs with different options", f"{setting}: {name} is {' and '.join(sorted(values))}")
        for setting, options in sorted(seen.items())
        for name, values in options.items()
        if len(values) > 1
    ]
