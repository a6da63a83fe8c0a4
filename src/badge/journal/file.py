"""Append-only JSON lines, one writer at a time: what `append` has returned from survives SIGKILL and power loss.

One event is one line. An event is written, flushed and synced to disk before `append` returns. Whatever was cut off in
the middle of a write can only be the last line: it is dropped with a warning, and removed before the next append.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from badge.errors import JournalError

__all__ = ["Event", "Journal", "read"]

Event = dict[str, Any]


def read(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a journal, without locking it. A torn last line is left out with a warning.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append({"event": "hello"})
    >>> read(path)
    [{'event': 'hello'}]
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise JournalError(f"there is no journal {path}") from None
    return parse(data, path)[0]


def parse(data: bytes, path: str | os.PathLike[str]) -> tuple[list[Event], int]:
    """The events in `data` and the length of its sound part; a damaged line that is not the last is an error."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    events: list[Event] = []
    sound = 0
    for number, line in enumerate(lines, start=1):
        event = _event(line)
        torn = number == len(lines) and line[:1] in (b"{", b"\0")  # a power loss can leave zeros
        if event is None and not torn:
            raise JournalError(
                f"{path}, line {number}: not a JSON object ({line[:40]!r}), and not what an interrupted write leaves: "
                "restore the file from a copy, repair that line, or use another journal"
            )
        if event is None:
            warnings.warn(
                f"{path}, line {number}: the last write was interrupted; its {len(line)} bytes are dropped",
                stacklevel=3,
            )
            break
        events.append(event)
        sound += len(line) + 1
    return events, min(sound, len(data))


def _event(line: bytes) -> Event | None:
    try:
        value = json.loads(line)
    except ValueError:  # UnicodeDecodeError and JSONDecodeError are both of this kind
        return None
    return value if isinstance(value, dict) else None


class Journal:
    """A journal that is open for appending; nobody else can open it for appending before `close`.

    The folder is made where it is missing. `events` holds what the file held when it was opened, and all that was
    appended since. With `sync=False` an append is handed to the system, which is enough for the death of the process,
    and reaches the disk with the next `sync()`: for what can be computed again after a power loss.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append({"event": "asked", "ids": [3, 1]})
    >>> with Journal(path) as journal:
    ...     journal.events
    [{'event': 'asked', 'ids': [3, 1]}]
    """

    def __init__(self, path: str | os.PathLike[str], sync: bool = True) -> None:
        self.path, self._sync = Path(path), sync
        self._fd = -1
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise JournalError(f"cannot open the journal {self.path}: {error.strerror}") from error
        try:
            _lock(fd, self.path)
            _sync_folder(self.path.parent)
            with open(fd, "rb", closefd=False) as file:
                data = file.read()
            self.events, self._end = parse(data, self.path)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._newline_missing = self._end > 0 and data[self._end - 1 : self._end] != b"\n"

    def append(self, *events: Mapping[str, Any]) -> None:
        """Write the events, one line each, and sync them to disk; if that fails nothing of them is kept."""
        if self._fd < 0:
            raise JournalError(f"the journal {self.path} is closed")
        text = "".join(json.dumps(event, allow_nan=False, separators=(", ", ":")) + "\n" for event in events)
        payload = (b"\n" if self._newline_missing else b"") + text.encode()
        try:
            os.ftruncate(self._fd, self._end)  # removes a torn line, if there is one
            os.lseek(self._fd, self._end, os.SEEK_SET)
            _write(self._fd, payload)
            if self._sync:
                os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, self._end)  # else half a line would sit in the middle after the next append
            raise JournalError(
                f"cannot write to the journal {self.path}: {error.strerror}; nothing was added"
            ) from error
        self._end += len(payload)
        self._newline_missing = False
        self.events += [json.loads(line) for line in text.splitlines()]

    def sync(self) -> None:
        """Wait until everything that was appended is on disk."""
        os.fsync(self._fd)

    def of(self, kinds: str | Iterable[str]) -> list[Event]:
        """The events whose `event` field is (one of) `kinds`, in order."""
        wanted = {kinds} if isinstance(kinds, str) else set(kinds)
        return [event for event in self.events if event.get("event") in wanted]

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def close(self) -> None:
        """Release the file and its lock; closing twice does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if os is not None:  # at the end of the interpreter modules go first, and the system closes the file
            self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self.path)!r}, {len(self.events)} events{', closed' if self.closed else ''})"


def _write(fd: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    """Sync the folder's entry for a new file; Windows cannot open a folder and does not need it."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _lock(fd: int, path: Path) -> None:
    """Take the exclusive lock of an open file; the system releases it when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # a byte far behind the end: Windows locks are mandatory, and readers must still be able to read
            os.lseek(fd, 2**62, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            os.lseek(fd, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise JournalError(
            f"the journal {path} is already open for writing, in this process or another: "
            "close that learner or run (`learner.close()`), or use another journal"
        ) from None
    except OSError as error:
        raise JournalError(f"cannot lock the journal {path} ({error.strerror}): put it on a local disk") from error
