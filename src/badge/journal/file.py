"""A journal on disk: append-only, one writer at a time; what `append` has returned from survives SIGKILL and power loss.

An event is on disk before `append` returns. A write that was cut off can only be the last line: it is dropped with a
warning. `append` notes what it is about to write; when it is interrupted (Ctrl-C), the next call looks at the file and
takes what it finds there: all of it, or nothing.
"""

from __future__ import annotations

import os
import stat
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from badge.core.names import path_of
from badge.core.numbers import flag
from badge.core.writing import ThreadLock, lock_file, sync_folder
from badge.errors import JournalError
from badge.journal.events import Record
from badge.journal.last import LAST, Last, digest, forget, read_last, remark, write_last
from badge.journal.lines import encode, parse
from badge.journal.schema import typed
from badge.journal.snapshot import STATE, KeptState, Records, read_snapshot, write_snapshot


class Journal:
    """A journal, open for appending. It is locked until `close`.

    `records` holds the events; line n is `records[n - 1]`. With `sync=False`, an append survives the end of the process. It
    survives a crash of the machine only after the next `sync()`, and lines that are missing at the end are not detected.
    Use this for results that you can compute again.

    A journal belongs to the process that opened it. Appending raises an error in a forked child, and after another program
    has replaced, deleted or changed the file. Threads may share a journal.

    Args:
        path: the file; a missing folder is made.
        sync: wait for the disk after every append.

    Raises:
        JournalError: a line is damaged or missing, another process has it open, or the file system has no locks.

    >>> import tempfile, pathlib
    >>> from badge.journal.events import Release
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Release(ids=[3, 1]))
    >>> with Journal(path) as journal:
    ...     journal.records
    [Release(at=None, ids=[3, 1])]
    """

    def __init__(self, path: str | os.PathLike[str], sync: bool = True) -> None:
        self.path, self._sync = path_of(path, "a journal"), flag(sync, "sync")
        self._place = self.path.absolute()  # the working directory may change
        self._fd, self._pid, self._lock = -1, os.getpid(), ThreadLock()
        #: what is being written: (bytes before it, events before it, the bytes, the events); None between two appends
        self._intent: tuple[int, int, bytes, tuple[Record, ...]] | None = None
        #: where the file is to be cut before it is written again: a write failed, and so did cutting it off
        self._cut: int | None = None
        cannot = f"cannot open the journal {self.path}"
        with _said(cannot):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                forget(self.path, LAST, STATE)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            with _said(cannot):
                if not stat.S_ISREG(os.fstat(fd).st_mode):  # a pipe or a device has no end
                    raise JournalError(f"{cannot}: it is not a file")
                with _said(f"cannot lock the journal {self.path}", "; put it on a local disk"):
                    taken = lock_file(fd)
                if not taken:
                    busy = f"the journal {self.path} is already open for writing, in this process or another"
                    way_out = "`learner.close()` releases it"
                    raise JournalError(f"{busy}: end that program, or use another journal", in_python=way_out)
                sync_folder(self.path.parent)
                last = read_last(self._place)
                known = read_snapshot(self._place, fd) if self._sync else None
                before, size = (known.events, known.size) if known else (0, 0)
                first, data = _read_from(fd, 0, line=True).rstrip(b"\n"), _read_from(fd, size)
                if isinstance(last, Last) and last.first != digest(first) and before:
                    last = "is of another journal"
                found = parse(data, self.path, last, before)
                if found.torn_bytes:
                    os.ftruncate(fd, size + found.sound_bytes)  # its append never returned
        except BaseException:
            os.close(fd)
            raise
        self.records = Records(self._place, before, size, [typed(event) for event in found.events])
        #: the state kept beside the journal, made of its first events; these were not read again
        self.snapshot = known
        self._end, self._newline_missing = size + found.sound_bytes, found.newline_missing
        self._first = digest(first)
        self._fd = fd
        _OPEN.add(self)
        said = remark(self._place, last, self._first, len(self.records)) if self._sync else None
        if self.records and (said or found.events):
            self._note_last(data[: found.sound_bytes] if found.events else _read_from(fd, 0))
        if said:
            warnings.warn(said, stacklevel=2)

    def append(self, *records: Record) -> None:
        """Append events, one line each, and sync them to disk. If that fails, none of them is kept.

        Args:
            records: events, of types in `badge.journal.events`.

        Raises:
            JournalError: the events cannot be written.
        """
        self.check_writable()
        with self._lock():
            self.settle()
            self._check_file("nothing was added")
            count = len(self.records)
            lines = (encode(number, record.event()) for number, record in enumerate(records, start=count + 1))
            payload = b"\n" * self._newline_missing + b"".join(lines)
            self._intent = (self._end, count, payload, records)
            with _said(f"cannot write to the journal {self.path}", "; nothing was added"):
                try:
                    os.lseek(self._fd, self._end, os.SEEK_SET)
                    _write(self._fd, payload)
                    if self._sync:
                        os.fsync(self._fd)
                except OSError:
                    self._take_back(len(payload))
                    raise
            self._take()
            self._check_file("what was added last is lost with it", written=True)

    def _take_back(self, length: int) -> None:
        """Cut off what a failed write has left. If that fails too, overwrite it with zeros, which no line begins with."""
        self._intent, self._cut = None, self._end
        try:
            os.ftruncate(self._fd, self._end)
            self._cut = None
        except OSError:
            with suppress(OSError):
                os.lseek(self._fd, self._end, os.SEEK_SET)
                _write(self._fd, bytes(length))

    def keep(self, state: dict[str, Any], events: int) -> None:
        """Keep a state of the first `events`, which must be all, beside the journal: `snapshot` when it is opened again."""
        with self._lock():
            settled = not self._newline_missing and self._intent is None and self._cut is None
            mine = self._sync and self._fd >= 0 and os.getpid() == self._pid
            if mine and settled and events == len(self.records):
                write_snapshot(self._place, self._fd, events, self._end, state)
                self.records.cool(self._end)

    def settle(self) -> None:
        """Update `records` from the file after an interrupted append. Complete lines in the file count.

        Raises:
            JournalError: the file cannot be read or truncated.
        """
        with self._lock():
            if (self._intent is None and self._cut is None) or self._fd < 0 or os.getpid() != self._pid:
                return
            after = "; nothing was added: try again, or open the journal again"
            with _said(f"the journal {self.path} cannot be brought in line with its file", after):
                if self._cut is not None:
                    os.ftruncate(self._fd, self._cut)
                    self._cut = None
                if self._intent is None:
                    return
                start, _, payload, _ = self._intent
                written = _read_from(self._fd, start)
                if written == payload:
                    if self._sync:
                        os.fsync(self._fd)
                    self._take()
                elif payload.startswith(written):
                    os.ftruncate(self._fd, start)
                    self._intent = None
                else:
                    raise JournalError(f"the journal {self.path} was changed by another program while it was written")

    def _take(self) -> None:
        """Count what was written. An interrupt between two of these lines does no harm: all of it is done again."""
        assert self._intent is not None
        start, count, payload, added = self._intent
        self.records.replace_from(count, added)
        self._newline_missing = False
        self._end = start + len(payload)
        if not count:
            self._first = digest(payload.split(b"\n", 1)[0])
        self._note_last(payload)
        self._intent = None

    def _note_last(self, data: bytes) -> None:
        """Beside the file, what its last line is; what can be computed again does without."""
        if self._sync:
            line = data.rstrip(b"\n").rsplit(b"\n", 1)[-1]
            write_last(self._place, Last(self._first, len(self.records), digest(line)))

    def check_writable(self) -> None:
        """Check that the journal is open, and that this process opened it.

        Raises:
            JournalError: the journal is closed, or another process opened it.
        """
        if os.getpid() != self._pid:
            forked = f"this is process {os.getpid()}, a fork of it: nothing was written; tell in the process that asked"
            raise JournalError(f"the journal {self.path} belongs to process {self._pid}, which opened it; {forked}")
        if self._fd < 0:
            raise JournalError(f"the journal {self.path} is closed")

    def _check_file(self, consequence: str, written: bool = False) -> None:
        """The file that is open is the one that stands at the path, and is as long as we left it."""
        problem = None
        try:
            here, there = os.fstat(self._fd), self._place.stat()
            if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
                problem = "another file stands in its place"
            elif here.st_size != self._end:
                problem = f"it is {here.st_size:,} bytes long and was left at {self._end:,}"
        except OSError as error:
            if written and not isinstance(error, FileNotFoundError):
                return  # the disk does not answer; what was added is there all the same
            problem = f"it is gone ({error.strerror})"
        if problem:
            changed = f"the journal {self.path} was changed by another program while it was open: {problem}"
            way_out = "put the file back, or open the journal again and go on from what it holds"
            raise JournalError(f"{changed}; {consequence}: {way_out}")

    def sync(self) -> None:
        """Wait until everything appended is on disk.

        Raises:
            JournalError: the disk reports an error.
        """
        with _said(f"cannot write to the journal {self.path}"):
            os.fsync(self._fd)

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def close(self) -> None:
        """Close the file and release its lock. Closing twice does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            if self._cut is not None and os.getpid() == self._pid:
                with suppress(OSError):
                    os.ftruncate(fd, self._cut)
            os.close(fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if os is not None and hasattr(self, "_fd"):  # at the end of the interpreter modules go first
            self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, {len(self.records)} events{', closed' if self.closed else ''})"


class InMemory:
    """A journal in memory, for a learner without a file.

    >>> from badge.journal.events import Release
    >>> journal = InMemory()
    >>> journal.append(Release(ids=[3, 1]))
    >>> journal.records
    [Release(at=None, ids=[3, 1])]
    """

    path = None
    closed = False
    snapshot: KeptState | None = None

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, *records: Record) -> None:
        self.records += records

    def check_writable(self) -> None: ...

    def settle(self) -> None: ...

    def keep(self, state: dict[str, Any], events: int) -> None: ...

    def close(self) -> None: ...


#: journals that are open, so that a child process can let go of its copies: they would hold the lock of its parent
_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()


def _let_go() -> None:
    for journal in list(_OPEN):
        journal.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def _said(what: str, after: str = "") -> Iterator[None]:
    """An error of the system in one line."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"{what}: {error.strerror}{after}") from error


def _read_from(fd: int, start: int, line: bool = False) -> bytes:
    """The rest of the file, or of the line."""
    os.lseek(fd, start, os.SEEK_SET)
    with open(fd, "rb", closefd=False) as file:
        return file.readline() if line else file.read()


def _write(fd: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(fd, view) :]
