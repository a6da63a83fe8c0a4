"""Reading results: folders of journals, single journals, flat tables (CSV, parquet), or several of these together."""

import csv
import gzip
import json
import lzma
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from badge.core.names import path_of
from badge.core.progress import bar
from badge.errors import DataError, JournalError, in_short
from badge.journal import records_of
from badge.journal.events import End, Failed, Record, Resume, Round, Start, shown_model
from badge.stats.columns import OPTIONAL, REQUIRED, Note
from badge.stats.flat import PARQUET, load_csv, load_parquet
from badge.stats.notes import data_names, mixed_options, mixed_origins
from badge.stats.results import Results

#: The topic of notes on runs that ended in an error.
FAILED = "failed runs"
_KINDS = "a folder of journals, a journal (.jsonl) or a flat table (.csv, .parquet)"


def load(source: str | Path | Sequence[str | Path], progress: bool = False) -> Results:
    """Read results into one table, from journals or from flat tables.

    Args:
        source: a folder of journals (`*.jsonl`, at any depth), a journal, a flat table (.csv, .csv.gz, .csv.xz or
            .parquet), or a list of these.
        progress: show a progress bar on standard error.

    Returns:
        A `Results` table with one row per trained model.

    Raises:
        DataError: there are no results, or a journal is damaged.
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
    given = source if isinstance(source, list | tuple) else [source]
    sources = [path_of(path, "a source of results") for path in given]
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
    results = tables[0] if len(tables) == 1 else Results.joined(tables)
    return replace(results, notes=(*results.notes, *notes))


def _journals_below(folder: Path, notes: list[Note]) -> list[Path]:
    found = sorted(folder.rglob("*.jsonl"))
    files = [path for path in found if path.is_file()]  # a pipe of that name would never end
    notes += [Note("files left out", f"{path.name}: not a file") for path in sorted({*found} - {*files})]
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
    except (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _load_journals(files: list[Path], progress: bool) -> Results:
    columns: dict[str, list[Any]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
    notes: list[Note] = []
    starts: list[Start] = []
    with bar("reading journals", total=len(files), enabled=progress) as advance:
        for path in files:
            start = _add_journal(path, columns, notes)
            starts += [start] if start else []
            advance(1)
    if failures := [i for i, note in enumerate(notes) if note.topic == FAILED]:
        text = "journals; what they did before that counts, and the same command tries them again"
        notes.insert(failures[0], Note(FAILED, f"{len(failures):,} of {len(files):,} {text}"))
    if not columns["data"]:
        count = f"{len(files)} journal{'s' * (len(files) > 1)}"
        raise DataError(f"no finished round in {count} ({files[0]} …): nothing to report yet")
    return Results.of(columns, [*notes, *mixed_options(starts), *mixed_origins(starts)], data_names(starts))


def _add_journal(path: Path, columns: dict[str, list[Any]], notes: list[Note]) -> Start | None:
    """Append the rounds of one journal to `columns` and its oddities to `notes`. Returns its start if it has rounds."""
    if not _begins_as_an_experiment(path):
        notes.append(Note("files left out", f"{path.name}: not the journal of an experiment (no start event)"))
        return None
    start: Start | None = None
    rounds: dict[int, Round] = {}  # a resumed run may write a round again: the last one counts
    ended, failed = False, None
    for record in _records(path, notes):
        match record:
            case Start():
                if start is not None and record.cell != start.cell:
                    raise JournalError(f"{path} holds two different runs; keep one journal per run")
                start = record
            case Round():
                rounds[record.round], failed = record, None
            case End():
                ended, failed = True, None
            case Resume(more=True):  # it goes on to more labels
                ended = False
            case Failed():
                failed = in_short(record.error, 300)
    if start is None or not rounds:
        why = "no finished round yet" if failed is None else f"failed before its first round: {failed}"
        notes.append(Note("files left out" if failed is None else FAILED, f"{path.name}: {why}"))
        return None
    last = rounds[max(rounds)].labels
    if failed is not None:
        notes.append(Note(FAILED, f"{path.name}: failed at {last:,} labels: {failed}"))
    elif not ended:
        notes.append(Note("unfinished runs", f"{path.name}: stopped or still running, at {last:,} labels"))
    shared = vars(start.cell) | {"model": shown_model(start.cell.model, start.cell.first)}
    if start.data is not None:
        shared |= {"rows": start.data.rows, "total_rows": start.data.total}
    for number in sorted(rounds):
        row = shared | vars(rounds[number])
        for name, column in columns.items():
            column.append(row.get(name))
    return start


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


def _records(path: Path, notes: list[Note]) -> list[Record]:
    """The events of a journal; the warning about a torn last line (the writer was stopped in it) becomes a note."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            records = records_of(path)
        except (OSError, RecursionError) as error:
            raise JournalError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if caught:
        notes.append(Note("files left out", f"{path.name}: the torn last line was ignored"))
    return records
