"""One line of a journal: an event, its number and a checksum of both; and a whole file of them, read strictly.

    {"n":3, "event":"tell", "ids":[5], "labels":["cat"], "sum":"2f1c0e5a9b7d4c13"}

The checksum (64 bits of BLAKE2b) covers every byte of the line before `, "sum"`; the number is that of the line. So a
changed byte and a missing, doubled or moved line are found, and named; lines that are missing at the end by what stands
beside the file (`last.py`). Only a last line without its newline is what an interrupted write leaves.

A file of format 1 has lines without number and checksum. It is read as it is; when it goes on, a line of kind `format`
holds a digest of all that stands before it, and lines are numbered from there.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from dataclasses import dataclass, field

from badge.errors import JournalError
from badge.journal.events import Event, check
from badge.journal.last import Last, digest

__all__ = ["Contents", "decode", "encode", "event_of", "numbered", "parse", "scan", "sound_parts"]

_END = rb', "sum":"[0-9a-f]{16}"\}'
_SUM = len(b', "sum":"0123456789abcdef"}')


def encode(number: int, event: Event) -> bytes:
    """The line of an event, with its newline.

    >>> encode(1, {"event": "note", "text": "hello"})
    b'{"n":1, "event":"note", "text":"hello", "sum":"b321fbea8a10e105"}\\n'
    """
    body = json.dumps({"n": number, **event}, allow_nan=False, separators=(", ", ":"))[:-1].encode()
    return body + f', "sum":"{digest(body)}"}}\n'.encode()


def decode(line: bytes) -> tuple[int, Event]:
    """The number and the event of a line without its newline; ValueError says what is wrong with it."""
    if not numbered(line):
        raise ValueError("a line without number and checksum")
    body = line[:-_SUM]
    if not re.fullmatch(_END, line[-_SUM:]) or line[-_SUM:] != f', "sum":"{digest(body)}"}}'.encode():
        raise ValueError("its checksum does not match, so a byte of it was changed")
    event = json.loads(body + b"}")
    number = event.pop("n")
    check(event)
    return number, event


def sound_parts(line: bytes) -> list[tuple[int, Event]]:
    """The sound lines within a damaged one: a lost newline joins two, a repeated one may follow half of another."""
    found = []
    for start in re.finditer(rb'\{"n":', line):
        end = re.compile(_END).search(line, start.start())
        try:
            found += [decode(line[start.start() : end.end()])] if end else []
        except ValueError:
            continue
    return found


def numbered(line: bytes) -> bool:
    """Whether a line means to be of format 2."""
    return line.startswith(b'{"n":') or b', "sum":"' in line


def event_of(line: bytes) -> Event:
    """The event of a line of format 1."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        event = None
    if not isinstance(event, dict):
        raise ValueError(f"not a JSON object ({line[:40]!r})")
    check(event)
    if event.get("format", 1) != 1:
        raise ValueError(f"it says format {event['format']} and has no number and checksum")
    return event


@dataclass
class Contents:
    """What a file holds: its events, how many bytes of it are sound, and what is wrong with which line."""

    events: list[Event] = field(default_factory=list)
    sound_bytes: int = 0  #: without the newline that the last line may lack
    torn_bytes: int = 0  #: of a write that was interrupted, at the end
    newline_missing: bool = False
    numbered: bool = True  #: whether the next line can be one of format 2 without more ado
    problems: list[tuple[int, str]] = field(default_factory=list)


def scan(data: bytes, last: Last | None = None) -> Contents:
    """Read a file until its end or its first problem; `last` is what stands beside it about its last line."""
    found = _scan(data)
    if last is not None and not found.problems and (problem := last.problem(data, len(found.events))):
        found.problems.append(problem)
    return found


def _scan(data: bytes) -> Contents:
    found = Contents()
    *lines, tail = data.split(b"\n")
    for line in lines:
        try:
            _add(found, line, data)
        except ValueError as error:
            found.problems.append((len(found.events) + 1, str(error)))
            return found
        found.sound_bytes += len(line) + 1
    if not tail:
        return found
    try:
        _add(found, tail, data)
        found.sound_bytes += len(tail)
        found.newline_missing = True  # all but that was written
    except ValueError as error:
        if _cut_off(tail, len(found.events) + 1, plain=not found.numbered or not found.events):
            found.torn_bytes = len(tail)
        else:
            found.problems.append((len(found.events) + 1, str(error)))
    return found


def _add(found: Contents, line: bytes, data: bytes) -> None:
    number = len(found.events) + 1
    if (number == 1 or not found.numbered) and not numbered(line):
        found.events.append(event_of(line))
        found.numbered = False
        return
    n, event = decode(line)
    if n > number:
        missing = f"lines {number} to {n - 1} are" if n > number + 1 else f"line {number} is"
        raise ValueError(f"{missing} missing: line {n} stands here")
    if n < number:
        raise ValueError(f"line {n} stands here, doubled or moved")
    if not found.numbered:  # the first numbered line after some of format 1
        before = data[: found.sound_bytes]
        if event["event"] != "format" or event["lines"] != number - 1:
            raise ValueError(
                f"lines 1 to {number - 1} have no number and checksum, and this one does not vouch for them"
            )
        if event["digest"] != digest(before):
            raise ValueError(f"lines 1 to {number - 1} were changed since this one was written")
        found.numbered = True
    found.events.append(event)


def _cut_off(tail: bytes, number: int, plain: bool) -> bool:
    """Whether the rest behind the last newline is what an interrupted write leaves: a beginning of the next line.

    A power loss can leave zeros in its place. A line that got to its checksum or its last brace was not cut off but changed.
    """
    written = tail.rstrip(b"\0")
    starts = [b'{"n":%d, ' % number, *([b'{"event":'] if plain else [])]
    begins = any(written.startswith(start) or start.startswith(written) for start in starts)
    return begins and not re.search(_END, written) and not _is_json(written)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def parse(data: bytes, path: str | os.PathLike[str], last: Last | None = None, level: int = 3) -> Contents:
    """The contents of a file that is sound; a problem is an error, an interrupted last write a warning."""
    found = scan(data, last)
    if found.problems:
        number, reason = found.problems[0]
        other = number == 1 and data and not numbered(data[: data.find(b"\n")])
        way_out = (
            "this is not a journal, use another file"
            if other
            else (
                "not what an interrupted write leaves: restore the file from a copy, or keep what is sound with "
                "`badge journal repair`"
            )
        )
        raise JournalError(f"{path}, line {number}: {reason}; {way_out}")
    if found.torn_bytes:
        warnings.warn(
            f"{path}, line {len(found.events) + 1}: the last write was interrupted; its {found.torn_bytes} bytes are "
            "dropped",
            stacklevel=level,
        )
    return found
