"""One at a time: the lock of an open file, which the system releases when its process is gone, and one for threads."""

import os
import sys
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any


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
