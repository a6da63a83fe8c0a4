"""A state beside a long journal, so that opening it need not read every line. It may be deleted at any time.

`labels.jsonl.state` holds a state that a learner made of the first lines, and the digest of their bytes. These lines were
sound when it was written, and have not changed if their digest is the same: then only the lines behind them are read.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from badge.core.writing import replacing
from badge.errors import BadgeError
from badge.journal.events import Record
from badge.journal.last import beside
from badge.journal.lines import decode
from badge.journal.schema import typed

#: events after which a state is worth its file
EVERY = 20_000
#: bytes read at a time
BLOCK = 2**22
FORMAT, STATE = 1, ".state"


@dataclass(frozen=True)
class KeptState:
    """The state after the first `events` lines, which take `size` bytes."""

    events: int
    size: int
    state: dict[str, Any]


def _digest(fd: int, size: int) -> str:
    digest, left = hashlib.blake2b(digest_size=16), size
    os.lseek(fd, 0, os.SEEK_SET)
    while left and (block := os.read(fd, min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return "" if left else digest.hexdigest()


def read_snapshot(journal: Path, fd: int) -> KeptState | None:
    """The snapshot of the journal that is open as `fd`; None: there is none, or it is of another file."""
    path = beside(journal, STATE)
    try:
        if path.is_symlink() or not path.is_file():
            return None
        head, _, body = path.read_bytes().partition(b"\n")
        found = json.loads(head)
        right = found["format"] == FORMAT and found["sum"] == hashlib.blake2b(body, digest_size=16).hexdigest()
        if not right or found["digest"] != _digest(fd, found["size"]):
            return None
        return KeptState(found["events"], found["size"], json.loads(body))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_snapshot(journal: Path, fd: int, events: int, size: int, state: dict[str, Any]) -> None:
    """Keep a state of the first lines; where that fails, the journal is read whole next time."""
    body = json.dumps(state, separators=(",", ":")).encode()
    head = {"format": FORMAT, "events": events, "size": size, "sum": hashlib.blake2b(body, digest_size=16).hexdigest()}
    with suppress(OSError, BadgeError), replacing(beside(journal, STATE), binary=True) as file:
        file.write(json.dumps({**head, "digest": _digest(fd, size)}).encode() + b"\n" + body)


class Records(Sequence[Record]):
    """The events of a journal: the first `cold` of them stay in the file and are read when they are looked at."""

    def __init__(self, path: Path, cold: int, size: int, hot: list[Record]) -> None:
        self._path, self._cold, self._size, self._hot = path, cold, size, hot
        self._ends: NDArray[np.int64] | None = None  # ends of the lines in the file, found when one is looked at

    def __len__(self) -> int:
        return self._cold + len(self._hot)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return list(self._between(start, stop))[::step] if step > 0 else [self[i] for i in range(start, stop, step)]
        number = range(len(self))[index]
        return self._hot[number - self._cold] if number >= self._cold else next(self._read(number, number + 1))

    def __iter__(self) -> Iterator[Record]:
        return self._between(0, len(self))

    def __reversed__(self) -> Iterator[Record]:
        yield from reversed(list(self._hot))
        for stop in range(self._cold, 0, -1000):
            yield from reversed(list(self._read(max(0, stop - 1000), stop)))

    def cool(self, size: int) -> None:
        """All events, which take `size` bytes of the file, are read from there from now on."""
        self._cold, self._size, self._hot, self._ends = len(self), size, [], None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._hot) if not self._cold else f"{len(self)} events"

    def replace_from(self, count: int, records: Sequence[Record]) -> None:
        """Events from number `count` on are these."""
        self._hot[count - self._cold :] = records

    def _between(self, start: int, stop: int) -> Iterator[Record]:
        if start < self._cold:
            yield from self._read(start, min(stop, self._cold))
        yield from self._hot[max(0, start - self._cold) : max(0, stop - self._cold)]

    def _read(self, start: int, stop: int) -> Iterator[Record]:
        if self._ends is None and start:
            self._ends = _line_ends(self._path, self._size)
        with self._path.open("rb") as file:
            file.seek(0 if self._ends is None or not start else int(self._ends[start - 1]))
            for _ in range(start, stop):
                yield typed(decode(file.readline().rstrip(b"\n"))[1])


def _line_ends(path: Path, size: int) -> NDArray[np.int64]:
    found, place = [], 0
    with path.open("rb") as file:
        while place < size and (block := file.read(min(BLOCK, size - place))):
            found.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10) + place + 1)
            place += len(block)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
