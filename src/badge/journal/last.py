"""Beside a journal, which line was its last: lines cut off at the end are noticed, which the journal alone cannot show.

`labels.jsonl.last` holds the number and the digest of the last line, the digest of the first line, which identifies the
journal, and a checksum. It is written after the line is on disk, so it is never ahead of the journal, however the process
or the machine died. If it is missing, damaged, behind or of another journal, opening the journal warns that lines cut off
at the end would not be noticed.
"""

import contextlib
import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from badge.errors import JournalError

LAST = ".last"
_RECORD = re.compile(rb"(([0-9a-f]{16}) +(\d+) ([0-9a-f]{16})) ([0-9a-f]{16})\n")


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@dataclass(frozen=True)
class Last:
    """The digest of a journal's first line, and the number and digest of its last."""

    first: str
    number: int
    line: str

    def problem(self, data: bytes, events: int, before: int = 0) -> tuple[int, str] | None:
        """The line that is wrong in a journal with this number of events, and why; None: all that was written is there.

        `before`: the number of sound events before `data`.
        """
        lines = data.split(b"\n", max(self.number - before, 1))
        if events and not before and digest(lines[0]) != self.first:
            return None  # another journal was put in its place
        if events < self.number:
            several = events + 1 < self.number
            missing = f"lines {events + 1} to {self.number} are" if several else f"line {self.number} is"
            them = "they" if several else "it"
            return events + 1, f"{missing} missing at the end of the file: {them} had been written"
        if self.number > before and digest(lines[self.number - before - 1]) != self.line:
            return self.number, "another line stands here than the one that had been written"
        return None


def beside(journal: Path, ending: str = LAST) -> Path:
    """The file beside a journal. If the journal is a link, beside the file that it points to."""
    real = Path(os.path.realpath(journal))
    return real.with_name(f"{real.name}{ending}")


def _open(journal: Path, flags: int) -> int:
    """Open what stands beside a journal: a file, not a link or a pipe, which others could put there."""
    path = beside(journal)
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags, 0o644)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):  # a link, a pipe without a reader, a folder
            raise
    raise JournalError(f"{path} is not a file, but a link or a pipe: delete it, and open the journal again")


def read_last(journal: Path) -> Last | str | None:
    """The record beside a journal. None: there is none; a text: what is wrong with it.

    Read it before the journal: if another process writes meanwhile, the record is behind the journal, never ahead.
    """
    try:
        fd = _open(journal, os.O_RDONLY)
        try:
            found = _RECORD.fullmatch(os.read(fd, 1000))
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if not found or digest(found[1]) != found[5].decode():
        return "is damaged"
    return Last(found[2].decode(), int(found[3]), found[4].decode())


def remark(journal: Path, last: Last | str | None, first: str, events: int) -> str | None:
    """What to say about the file beside a journal at opening; None: nothing. `first` is the digest of the first line."""
    if isinstance(last, Last) and events and first != last.first:
        last = "is of another journal"
    if isinstance(last, Last):
        behind = events > last.number
        last = f"is behind: it tells of line {last.number} as the last, and there are {events}" if behind else ""
    if not events or last == "":
        return None
    return f"{beside(journal)} {last or 'is missing'}; lines cut off at the end of the journal would not be noticed"


def write_last(journal: Path, last: Last) -> None:
    """Write the record in place; its length never changes. If that fails it stays behind, which does no harm."""
    with contextlib.suppress(OSError):
        fd = _open(journal, os.O_WRONLY | os.O_CREAT)
        try:
            record = f"{last.first} {last.number:>15} {last.line}"
            os.write(fd, f"{record} {digest(record.encode())}\n".encode())
            os.ftruncate(fd, len(record) + 18)
        finally:
            os.close(fd)


def forget(journal: Path, *endings: str) -> None:
    """Delete files beside a journal: it is a new one of that name, or something was erased from it."""
    for ending in endings:
        with contextlib.suppress(OSError):
            beside(journal, ending).unlink()
