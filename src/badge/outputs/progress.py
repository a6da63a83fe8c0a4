"""How many rows of a directory of outputs are safely on disk, and a checksum of them.

One line: rows, a checksum (CRC-32) of these rows of either array, and when either file was last changed. Files that were not
changed since are trusted unread; others (copied, restored, changed) are read once and compared with their checksums.
"""

import os
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from badge.core.npz import Array
from badge.core.writing import writing_to
from badge.errors import InputError

FILE = "progress"
#: Bytes of an array that are read at once.
PIECE = 2**24


class Progress(NamedTuple):
    rows: int = 0
    sums: tuple[int, int] = (0, 0)
    changed: tuple[int, int] = (0, 0)  # nanoseconds


def checksum(array: Array, start: int, stop: int, value: int = 0) -> int:
    """The CRC-32 of rows `start` to `stop`; `value` is the CRC-32 of the rows before them."""
    step = max(1, PIECE // max(1, array[:1].nbytes))
    for begin in range(start, stop, step):
        rows = np.ascontiguousarray(array[begin : min(begin + step, stop)])
        value = zlib.crc32(rows.reshape(-1).view(np.uint8).data, value)
    return value


def same_rows(arrays: tuple[Array, Array], progress: Progress) -> bool:
    """Whether the counted rows have their checksums. Reads every row."""
    return all(checksum(a, 0, progress.rows) == known for a, known in zip(arrays, progress.sums, strict=True))


def read_progress(directory: Path) -> Progress:
    """The progress that a directory records; 0 rows if it has none yet."""
    file = directory / FILE
    if not file.is_file():
        return Progress()
    words = file.read_bytes()[:1000].strip(b"\0").split()
    if not words:  # killed, or without power, between making the file and writing to it: nothing is counted yet
        return Progress()
    if len(words) != 5 or not all(word.isdigit() for word in words):
        raise InputError(f"{file} is damaged: delete the directory and predict again")
    rows, first, second, changed, also = (int(word) for word in words)
    return Progress(rows, (first, second), (changed, also))


def write_progress(directory: Path, progress: Progress) -> None:
    """In place and to disk. The line has one length and is short enough to be written in one piece."""
    line = f"{progress.rows:020d} {progress.sums[0]:010d} {progress.sums[1]:010d} "
    content = f"{line}{progress.changed[0]:020d} {progress.changed[1]:020d}\n".encode()
    with writing_to(directory / FILE):
        descriptor = os.open(directory / FILE, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, content)
            os.ftruncate(descriptor, len(content))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
