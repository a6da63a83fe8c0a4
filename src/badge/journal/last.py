"""Beside a journal, which line was its last: lines cut off at the end are noticed, which the journal alone cannot show.

`labels.jsonl.last` holds the number and the digest of the last line, the digest of the first, by which it knows its
journal, and a checksum. It is written after the line is on disk, so that it is never ahead of the journal, however the
process or the machine died. Where it is missing, unreadable or another journal's, nothing is said: only this check is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Last", "digest", "forget_last", "read_last", "write_last"]

_RECORD = re.compile(rb"(([0-9a-f]{16}) +(\d+) ([0-9a-f]{16})) ([0-9a-f]{16})\n")


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@dataclass(frozen=True)
class Last:
    """The digest of a journal's first line, and the number and digest of its last."""

    first: str
    number: int
    line: str

    def problem(self, data: bytes, events: int) -> tuple[int, str] | None:
        """The line that is wrong in a journal with this number of events, and why; None: all that was written is there.

        >>> one, two = b'{"n":1, "event":"skip"}', b'{"n":2, "event":"skip"}'
        >>> last = Last(digest(one), 2, digest(two))
        >>> last.problem(one + b"\\n" + two + b"\\n", 2)
        >>> last.problem(one + b"\\n", 1)
        (2, 'line 2 is missing at the end of the file: it had been written')
        """
        lines = data.split(b"\n", max(self.number, 1))
        if events and digest(lines[0]) != self.first:
            return None  # another journal was put in its place
        if events < self.number:
            missing = (
                f"lines {events + 1} to {self.number} are" if events + 1 < self.number else f"line {self.number} is"
            )
            them = "they" if events + 1 < self.number else "it"
            return events + 1, f"{missing} missing at the end of the file: {them} had been written"
        if digest(lines[self.number - 1]) != self.line:
            return self.number, "another line stands here than the one that had been written"
        return None


def _beside(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.last")


def read_last(journal: Path) -> Last | None:
    """What stands beside a journal. Read it before the journal: then it cannot be ahead of a writer."""
    try:
        found = _RECORD.fullmatch(_beside(journal).read_bytes())
    except (OSError, ValueError):
        return None
    if not found or digest(found[1]) != found[5].decode():
        return None
    return Last(found[2].decode(), int(found[3]), found[4].decode())


def write_last(journal: Path, last: Last) -> None:
    """Written in place, the same length each time. Where it cannot be written it stays behind, which does no harm."""
    with contextlib.suppress(OSError):
        fd = os.open(_beside(journal), os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            record = f"{last.first} {last.number:>15} {last.line}"
            os.write(fd, f"{record} {digest(record.encode())}\n".encode())
        finally:
            os.close(fd)


def forget_last(journal: Path) -> None:
    """For a journal that begins anew, where one of the same name was deleted."""
    with contextlib.suppress(OSError):
        _beside(journal).unlink()
