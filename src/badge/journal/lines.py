"""The lines of a journal: each is an event, its number and a checksum of both; a file of them is read strictly.

A journal can be read while another process writes it.

    {"n":3, "event":"tell", "ids":[5], "labels":["cat"], "sum":"2f1c0e5a9b7d4c13"}

The checksum (64 bits of BLAKE2b) covers every byte of the line before `, "sum"`; the number counts the lines. So a
changed byte and a missing, doubled or moved line are found and named. Lines missing at the end are found by the file
beside the journal (`last.py`). An interrupted write leaves a last line without its newline, and nothing else does.
"""

import json
import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from badge.core.names import path_of
from badge.errors import JournalError
from badge.journal.events import Event, Record
from badge.journal.last import Last, digest, read_last
from badge.journal.schema import check, typed

_BEGIN, _END = b'{"n":', rb', "sum":"[0-9a-f]{16}"\}'
_SUM = len(b', "sum":"0123456789abcdef"}')


def encode(number: int, event: Event) -> bytes:
    """The line of an event, with its newline.

    >>> encode(1, {"event": "skip", "ids": [3]})
    b'{"n":1, "event":"skip", "ids":[3], "sum":"b9ade835627a9ab0"}\\n'
    """
    body = json.dumps({"n": number, **event}, allow_nan=False, separators=(", ", ":"))[:-1].encode()
    return body + f', "sum":"{digest(body)}"}}\n'.encode()


def decode(line: bytes) -> tuple[int, Event]:
    """The number and the event of a line without its newline; ValueError says what is wrong with it."""
    if not line.startswith(_BEGIN) and b', "sum":"' not in line:
        raise ValueError("a line without number and checksum")
    body = line[:-_SUM]
    if line[-_SUM:] != f', "sum":"{digest(body)}"}}'.encode():
        raise ValueError("its checksum does not match, so a byte of it was changed")
    event = json.loads(body + b"}")
    number = event.pop("n")
    check(event)
    return number, event


def sound_parts(line: bytes) -> list[tuple[int, Event]]:
    """The sound lines within a damaged one: a lost newline joins two, a repeated one may follow half of another."""
    found = []
    for start in re.finditer(_BEGIN, line):
        end = re.compile(_END).search(line, start.start())
        try:
            found += [decode(line[start.start() : end.end()])] if end else []
        except ValueError:
            continue
    return found


@dataclass
class Contents:
    """What a file holds: its events, the number of its sound bytes, and the first line that is wrong."""

    events: list[Event] = field(default_factory=list)
    sound_bytes: int = 0  #: without the newline that the last line may lack
    torn_bytes: int = 0  #: bytes at the end that an interrupted write left
    newline_missing: bool = False
    problem: tuple[int, str] | None = None  #: line and reason


def scan(data: bytes, last: Last | str | None = None, before: int = 0) -> Contents:
    """Read a file to its end or its first problem. `last`: from the file beside it; `before`: sound lines before `data`."""
    found = Contents()
    *lines, tail = data.split(b"\n")
    try:
        for line in lines:
            found.events.append(_numbered(line, before + len(found.events) + 1))
            found.sound_bytes += len(line) + 1
        if tail and _is_cut_off(tail, before + len(found.events) + 1):
            found.torn_bytes = len(tail)
        elif tail:
            found.events.append(_numbered(tail, before + len(found.events) + 1))
            found.sound_bytes += len(tail)
            found.newline_missing = True  # everything else was written
    except ValueError as error:
        found.problem = (before + len(found.events) + 1, str(error))
    if isinstance(last, Last) and found.problem is None:
        found.problem = last.problem(data, before + len(found.events), before)
    return found


def _numbered(line: bytes, number: int) -> Event:
    """The event of a line that must have this number."""
    n, event = decode(line)
    if n > number:
        missing = f"lines {number} to {n - 1} are" if n > number + 1 else f"line {number} is"
        raise ValueError(f"{missing} missing: line {n} stands here")
    if n < number:
        raise ValueError(f"line {n} stands here, doubled or moved")
    return event


def _is_cut_off(tail: bytes, number: int) -> bool:
    """Whether the bytes after the last newline are what an interrupted write leaves: a beginning of the next line.

    A power loss can leave zeros in its place. A line that reached its checksum was not cut off but changed.
    """
    written, start = tail.rstrip(b"\0"), b'{"n":%d, ' % number
    return (written.startswith(start) or start.startswith(written)) and not re.search(_END, written)


def parse(data: bytes, path: str | os.PathLike[str], last: Last | str | None = None, before: int = 0) -> Contents:
    """The contents of a sound file; a problem is an error, an interrupted last write a warning."""
    found = scan(data, last, before)
    if found.problem:
        number, reason = found.problem
        first = data.partition(b"\n")[0]
        if number == 1 and data and not first.startswith(_BEGIN) and b', "sum":"' not in first:
            raise JournalError(f"{path}, line 1: {reason}; this is not a journal, use another file")
        way_out = "restore the file from a copy, or keep what is sound with `badge journal repair`"
        raise JournalError(f"{path}, line {number}: {reason}; not what an interrupted write leaves: {way_out}")
    if found.torn_bytes:
        torn = f"the last write was interrupted; its {found.torn_bytes} bytes are dropped"
        warnings.warn(f"{path}, line {before + len(found.events) + 1}: {torn}", stacklevel=3)
    return found


def read(path: str | os.PathLike[str]) -> list[Event]:
    """Read the events of a journal, without a lock. An incomplete last line is left out, with a warning.

    Args:
        path: the file of the journal.

    Returns:
        One dict per line, in order.

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
    """Read the events of a journal, as types of `badge.journal.events`.

    Args:
        path: the file of the journal.

    Returns:
        One record per line, in order.

    Raises:
        JournalError: a line is damaged or missing.

    >>> import tempfile, pathlib
    >>> from badge.journal import Journal
    >>> from badge.journal.events import Skip
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Skip(ids=[3]))
    >>> records_of(path)[0].ids
    [3]
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
    """The first and the last event of a journal, without a look at the others; None if one of them is not sound."""
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
