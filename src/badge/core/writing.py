"""Writing so that nothing is lost: a file is there whole or not at all, and locks keep two writers apart.

A file is written under another name beside its place, brought to disk, then renamed.
"""

import os
import secrets
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from badge.errors import WriteError


def cache_folder() -> Path:
    """The folder of the user's cache: `$XDG_CACHE_HOME/badge` if that variable is set, else the platform's default.

    Returns:
        The folder. It may not exist yet.

    >>> cache_folder().name
    'badge'
    """
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "badge"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "badge"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "badge"


@contextmanager
def writing_to(target: object) -> Iterator[None]:
    """Whatever the system refuses (a full or read-only disk, a missing right) becomes one line about `target`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        raise WriteError(f"{target} cannot be written: {error.strerror or error}") from error


def folder_for(path: str | os.PathLike[str]) -> Path:
    """The folder `path`, made where it is missing."""
    folder = Path(path)
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def replacing(path: str | os.PathLike[str], binary: bool = False, mode: int = 0o666) -> Iterator[IO[Any]]:
    """A stream that takes the place of `path` when all of it is on disk; after an error nothing has changed.

    Text is UTF-8 with the line ends that are given. What is not a regular file (a pipe, a device) is written directly.
    `mode` is that of a new file.
    """
    target = Path(os.path.realpath(path))  # through a link: what it points to is replaced, not the link
    with writing_to(path):
        try:
            there = target.stat()
        except FileNotFoundError:
            there = None
        if there is not None and not stat.S_ISREG(there.st_mode):
            with _opened(os.open(target, os.O_WRONLY), binary) as stream:
                yield stream
            return
        # a short name: the target's may have the longest length that there is
        new = target.parent / f".badge-{secrets.token_hex(8)}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        try:
            if there is not None:
                with suppress(OSError):  # another owner's file: only the system's administrator may give it back
                    os.chown(new, there.st_uid, there.st_gid)
                with suppress(OSError):
                    new.chmod(stat.S_IMODE(there.st_mode))
            with _opened(descriptor, binary) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise


def _opened(descriptor: int, binary: bool) -> IO[Any]:
    return open(descriptor, "wb") if binary else open(descriptor, "w", encoding="utf-8", newline="")


@contextmanager
def standard_output() -> Iterator[IO[str]]:
    """Standard output, flushed at the end. If it is closed, full or cannot show a character, one line says so.

    A reader that stops early (`| head`) is not an error: `BrokenPipeError` passes, and the command line ends quietly.
    """
    if sys.stdout is None:
        raise WriteError("standard output is closed: name a file with --output")
    try:
        try:
            yield sys.stdout
        finally:
            sys.stdout.flush()
    except UnicodeEncodeError as error:
        raise WriteError(f"standard output cannot show {error.object[error.start]!r} in {error.encoding}") from None
    except OSError as error:
        if isinstance(error, WriteError | BrokenPipeError) or error.filename is not None:  # about a file
            raise
        raise WriteError(f"standard output cannot be written: {error.strerror or error}") from error


def lock_file(fd: int) -> bool:
    """Take the exclusive lock of an open file without waiting; False if another holds it. OSError: no locks there."""
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
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Sync the folder's entry for a new file; Windows cannot open a folder and does not need it."""
    if sys.platform == "win32":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class ThreadLock:
    """A re-entrant lock for threads, `with lock():`. A child process gets a new one, because its parent's may stay locked."""

    def __init__(self) -> None:
        self._lock, self._pid = threading.RLock(), os.getpid()

    def __call__(self) -> AbstractContextManager[Any]:
        if os.getpid() != self._pid:
            self._lock, self._pid = threading.RLock(), os.getpid()
        return self._lock  # itself, not a generator around it: then Ctrl-C cannot come between taking and releasing
