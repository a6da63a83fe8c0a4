"""Reading results: folders of journals, single journals, flat tables (CSV, parquet), or several of these together."""

from __future__ import annotations

import csv
import gzip
import json
import warnings
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.names import path_of
from badge.core.progress import bar
from badge.errors import DataError, JournalError
from badge.journal import Event, read
from badge.stats.flat import PARQUET, empty_batches_apart, load_csv, load_parquet
from badge.stats.origins import mixed_origins
from badge.stats.results import OPTIONAL, REQUIRED, Note, Results, Setting

__all__ = ["load"]

#: The topic of notes on runs that ended in an error.
FAILED = "failed runs"
_ROUND = (
    "round", "train_accuracy", "epochs", "restarts", "train_seconds", "predict_seconds", "select_seconds", "macro_f1",
    "rare_recall",
)  # fmt: skip
_TEXT = ("data", "model", "strategy")
#: Fields of a cell that may differ between the runs of one setting.
_NO_OPTIONS = ("data", "model", "batch_size", "strategy", "seed", "labels", "threads")
_KINDS = "a folder of journals, a journal (.jsonl) or a flat table (.csv, .parquet)"


def load(source: str | Path | Sequence[str | Path], progress: bool = False) -> Results:
    """The results below a folder of journals (`*.jsonl`, at any depth), of one journal, of one flat table (CSV, .csv.gz or
    parquet), or of several of these together.

    Args:
        source: a folder, a file, or a list of these.
        progress: draw a bar on standard error.

    Returns:
        A table with one row per model.

    Raises:
        DataError: nothing is there, or a journal is damaged.
        InputError: a column is missing, or two runs contradict each other.

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
    sources = [
        path_of(path, "a source of results") for path in (source if isinstance(source, list | tuple) else [source])
    ]
    if not sources:
        raise DataError(f"nothing to read: give {_KINDS}")
    journals: list[Path] = []
    tables: list[Results] = []
    notes: list[Note] = []
    for path in sources:
        if path.is_dir():
            journals += _journals_below(path, notes)
        elif not path.is_file():
            what = "is not a file or folder" if path.exists() else "does not exist"
            raise DataError(f"{str(path)[:200]!r} {what}: give {_KINDS}")
        elif path.suffix == ".jsonl":
            journals.append(path)
        else:
            tables.append(_load_table(path, progress))
    if journals:
        tables.append(_load_journals(journals, progress))
    return (tables[0] if len(tables) == 1 else Results.joined(tables)).with_notes(notes)


def _journals_below(folder: Path, notes: list[Note]) -> list[Path]:
    found = sorted(folder.rglob("*.jsonl"))
    files = [path for path in found if path.is_file()]  # a pipe of that name would never end
    notes += [Note("files left out", f"{path.name}: not a file") for path in found if path not in files]
    if not files:
        tables = sorted(folder.glob("*.csv"))
        hint = f"; for a flat table name the file itself, e.g. {tables[0]}" if tables else ""
        raise DataError(f"no journals (*.jsonl) below {folder}{hint}")
    return files


def _load_table(path: Path, progress: bool) -> Results:
    if path.suffix.lower() in PARQUET:
        return load_parquet(path)
    try:
        return load_csv(path, progress)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _load_journals(files: list[Path], progress: bool) -> Results:
    columns: dict[str, list[Any]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
    notes: list[Note] = []
    starts: list[Mapping[str, Any]] = []
    with bar("reading journals", total=len(files), enabled=progress) as advance:
        for path in files:
            start = _add_journal(path, columns, notes)
            starts += [start] if start else []
            advance(1)
    if failures := sum(note.topic == FAILED for note in notes):
        count = f"{failures:,} of {len(files):,} journals"
        text = f"{count}; what they did before that counts, and the same command tries them again"
        notes.insert(next(i for i, note in enumerate(notes) if note.topic == FAILED), Note(FAILED, text))
    notes += [*_mixed_options([start["cell"] for start in starts]), *mixed_origins(starts)]
    if not columns["data"]:
        raise DataError(
            f"no finished round in {len(files)} journal{'s' * (len(files) > 1)} ({files[0]} …): nothing to report yet"
        )
    table: dict[str, Any] = {name: np.array(columns[name], dtype=np.float64) for name in columns if name not in _TEXT}
    table |= {name: columns[name] for name in _TEXT}
    table["log_det"] = empty_batches_apart(table["log_det"], table["mean_norm"])
    return Results.of(table, notes, _names(starts))


def _names(starts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a report calls data: the name of the data set itself, where it tells the data apart from others."""
    called: dict[str, set[str]] = {}
    for start in starts:
        data = start.get("data")
        name = data.get("name") if isinstance(data, Mapping) else None
        called.setdefault(start["cell"]["data"], set()).add(str(name or start["cell"]["data"]))
    counts = Counter([*called, *(name for names in called.values() for name in names)])
    return {data: name for data, (name, *more) in called.items() if not more and name != data and counts[name] == 1}


def _add_journal(path: Path, columns: dict[str, list[Any]], notes: list[Note]) -> Mapping[str, Any] | None:
    """Append the rounds of one journal to `columns` and its oddities to `notes`. Returns its start event if it has rounds."""
    if not _begins_as_an_experiment(path):
        notes.append(Note("files left out", f"{path.name}: not the journal of an experiment (no start event)"))
        return None
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
            rounds[_number(event, "round", path, whole=True)] = event
            failed = None
        elif kind == "end":
            ended, failed = True, None
        elif kind == "resume" and event.get("more"):  # it goes on to more labels
            ended = False
        elif kind == "failed":
            failed = " ".join(str(event.get("error")).split())[:300]
    if start is None or not rounds:
        why = "no finished round yet" if failed is None else f"failed before its first round: {failed}"
        notes.append(Note("files left out" if failed is None else FAILED, f"{path.name}: {why}"))
        return None
    last = _number(rounds[max(rounds)], "labels", path, whole=True)
    if failed is not None:
        notes.append(Note(FAILED, f"{path.name}: failed at {last:,} labels: {failed}"))
    elif not ended:
        notes.append(Note("unfinished runs", f"{path.name}: stopped or still running, at {last:,} labels"))
    cell = _cell(start, path)
    data = start.get("data")
    data = data if isinstance(data, Mapping) else {}
    for number in sorted(rounds):
        found = rounds[number]
        for name in ("data", "strategy", "batch_size", "seed"):
            columns[name].append(cell[name])
        columns["model"].append(_shown_model(cell))
        for name in ("labels", "test_accuracy"):
            columns[name].append(_number(found, name, path, whole=name == "labels"))
        for name in (*_ROUND, "mean_norm", "log_det"):
            columns[name].append(_number(found, name, path) if found.get(name) is not None else None)
        for name, field in (("rows", "rows"), ("total_rows", "total")):
            columns[name].append(_number(data, field, path) if data.get(field) is not None else None)
    return start


def _shown_model(cell: Mapping[str, Any]) -> str:
    """The model and, if the first batch was not uniform, its strategy: only runs of one start compare."""
    return str(cell["model"]) if cell.get("first") is None else f"{cell['model']}+{cell['first']}"


def _begins_as_an_experiment(path: Path) -> bool:
    """Whether the first line is the start of a run. A torn line may be; an empty file is not."""
    try:
        with path.open("rb") as file:
            line = file.readline(2**20)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(b'{"n":')
    return isinstance(event, dict) and event.get("event") == "start" and "cell" in event


def _cell(start: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The settings of a run, with their types checked."""
    cell = start["cell"]
    if not isinstance(cell, Mapping):
        raise JournalError(f"{path} is damaged: its cell is {str(cell)[:40]!r}")
    for name in _TEXT:
        if not isinstance(cell.get(name), str):
            raise JournalError(f"{path} is damaged: the field {name!r} of its cell is {str(cell.get(name))[:40]!r}")
    for name in ("batch_size", "seed"):
        _number(cell, name, path, whole=True)
    return cell


def _number(record: Mapping[str, Any], field: str, path: Path, whole: bool = False) -> Any:
    """A number of a record, below 2⁵³ so that float64 holds it exactly."""
    value = record.get(field)
    right = type(value) is int if whole else type(value) in (int, float)
    if not right or abs(value) >= 2**53:  # type: ignore[arg-type]
        what = f"lacks the field {field!r}" if value is None else f"the field {field!r} is {str(value)[:40]!r}"
        raise JournalError(f"{path} is damaged: {'it ' * (value is None)}{what}")
    return value


def _events(path: Path, notes: list[Note]) -> list[Event]:
    """The events of a journal; the warning about a torn last line (the writer was stopped in it) becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            events = read(path)
        except (OSError, RecursionError) as error:
            raise JournalError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if caught:
        notes.append(Note("files left out", f"{path.name}: the torn last line was ignored"))
    return events


def _mixed_options(cells: list[Mapping[str, Any]]) -> list[Note]:
    """Settings whose runs were made with different options (width, learning rate …): their curves do not compare."""
    seen: dict[Setting, dict[str, set[str]]] = {}
    for cell in cells:
        options = seen.setdefault(Setting(cell["data"], _shown_model(cell), cell["batch_size"]), {})
        for name, value in cell.items():
            if name not in _NO_OPTIONS:
                options.setdefault(name, set()).add(str(value))
    return [
        Note("runs with different options", f"{setting}: {name} is {' and '.join(sorted(values))}")
        for setting, options in sorted(seen.items())
        for name, values in options.items()
        if len(values) > 1
    ]
