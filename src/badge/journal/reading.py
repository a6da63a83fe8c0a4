"""Reading a journal that another process may be writing: whole, or its first and last line."""

from __future__ import annotations

import os
from pathlib import Path

from badge.core.names import path_of
from badge.errors import JournalError
from badge.journal.events import Event, Record
from badge.journal.last import read_last
from badge.journal.lines import decode, parse
from badge.journal.schema import typed

__all__ = ["bytes_of", "first_and_last", "read", "records_of"]


def read(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a journal, without locking it. A torn last line is left out with a warning.

    Args:
        path: the journal.

    Returns:
        A dict per line, in order.

    Raises:
        JournalError: a line is damaged or missing.

    >>> import tempfile, pathlib
    >>> from badge.journal.events import Skip
    >>> from badge.journal.file import Journal
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Skip(ids=[3], reason="too dark"))
    >>> read(path)
    [{'event': 'skip', 'ids': [3], 'reason': 'too dark'}]
    """
    file = path_of(path, "a journal")
    last = read_last(file)
    return parse(bytes_of(file), path, last).events


def records_of(path: str | os.PathLike[str]) -> list[Record]:
    """The same as types of `badge.journal.events`.

    Args:
        path: the journal.

    Raises:
        JournalError: a line is damaged or missing.
    """
    return [typed(event) for event in read(path)]


def bytes_of(file: Path) -> bytes:
    if file.exists() and not file.is_file():  # a pipe or a device has no end
        raise JournalError(f"{file} is not a file: a journal is one")
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise JournalError(f"there is no journal {file}") from None
    except OSError as error:
        raise JournalError(f"cannot read the journal {file}: {error.strerror}") from error


def first_and_last(file: Path) -> tuple[Record, Record] | None:
    """The first and the last event of a journal, without a look at the others; None where one of them is not sound.

    Args:
        file: the journal.
    """
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        first = stream.readline()
        stream.seek(max(0, file.stat().st_size - 4096))
        lines = stream.read().splitlines()
    try:
        return typed(decode(first.rstrip(b"\n"))[1]), typed(decode(lines[-1])[1])
    except (ValueError, IndexError):
        return None
