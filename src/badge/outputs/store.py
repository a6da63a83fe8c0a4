"""Outputs on disk: two npy files that are memory-mapped, and how many of their rows are done.

    dir/outputs.json         format, shapes, whose outputs these are
    dir/probabilities.npy    [N, C]
    dir/embeddings.npy       [N, D]; without columns if there are none, and outputs.json says why
    dir/progress             rows that are safely on disk, and their checksums
    dir/.badge-lock          held by the process that writes

Rows are flushed before they are counted, so that a process killed at any time loses at most the last second of work.
Rows are validated before they are written, so opening a directory reads only headers while its files are unchanged. If a file
has changed, every row is read and compared with the checksum: changed numbers are refused.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from badge.core.names import path_of
from badge.core.npz import DAMAGED, Array
from badge.core.writing import folder_for, lock_file, replacing, writing_to
from badge.errors import InputError, WriteError, in_short

FORMAT = 1
META = "outputs.json"
PROGRESS = "progress"
LOCK = ".badge-lock"
IDS = "ids.npy"
ARRAYS = ("probabilities", "embeddings")
FLUSH_SECONDS = 1.0
#: Bytes of an array that are read at once.
PIECE = 2**24
AGAIN = "delete the directory and predict again"


class Form(NamedTuple):
    """Columns and type of an array."""

    columns: int
    dtype: str

    @classmethod
    def of(cls, array: Array) -> Form:
        return cls(array.shape[1], array.dtype.name)


@dataclass(frozen=True)
class Meta:
    """What outputs.json says."""

    rows: int
    identity: dict[str, str]  #: whose outputs these are
    forms: tuple[Form, ...]  #: of probabilities and embeddings
    multilabel: bool = False
    missing: str = ""  #: why there are no embeddings
    files: dict[str, str] = field(default_factory=dict)  #: of a part in an object store: name -> digest

    @classmethod
    def parsed(cls, content: bytes, file: object, way_out: str = AGAIN) -> Meta:
        """The contents of `file`; an error says what is wrong with them."""
        try:
            found = json.loads(content)
            version, rows, identity = found["format"], found["rows"], found["identity"]
            forms = tuple(Form(found[name]["columns"], found[name]["dtype"]) for name in ARRAYS)
            sound = all(isinstance(n, int) for n in (rows, *(form.columns for form in forms)))
            sound = sound and isinstance(identity, dict)
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
        if not sound:
            raise InputError(f"{file} is damaged: {way_out}")
        if version != FORMAT:
            raise InputError(f"{file} has format {str(version)[:40]}; this version of badge reads format {FORMAT}")
        missing, files = str(found.get("missing", "")), found.get("files", {})
        return cls(rows, identity, forms, bool(found.get("multilabel")), missing, files)

    def text(self) -> str:
        """As JSON, without fields that are empty."""
        optional = {"multilabel": self.multilabel, "missing": self.missing, "files": self.files}
        held = {"format": FORMAT, "rows": self.rows, "identity": self.identity}
        held |= {name: value for name, value in optional.items() if value}
        held |= {name: form._asdict() for name, form in zip(ARRAYS, self.forms, strict=True)}
        return json.dumps(held, indent=1) + "\n"


def meta_of(path: Path) -> Meta:
    """What outputs.json of a directory says; an error if there is no such file."""
    file = path / META
    if not file.is_file():
        raise InputError(f"{path} holds no outputs of badge", in_python="badge.predict(..., out=...) writes them")
    return Meta.parsed(file.read_bytes(), file)


class Progress(NamedTuple):
    """How many rows are safely on disk, a CRC-32 of them in either array, and when either file was last changed."""

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
    file = directory / PROGRESS
    words = file.read_bytes()[:1000].strip(b"\0").split() if file.is_file() else []
    if not words:  # killed, or without power, between making the file and writing to it: nothing is counted yet
        return Progress()
    if len(words) != 5 or not all(word.isdigit() for word in words):
        raise InputError(f"{file} is damaged: {AGAIN}")
    rows, first, second, changed, also = (int(word) for word in words)
    return Progress(rows, (first, second), (changed, also))


def write_progress(directory: Path, progress: Progress) -> None:
    """In place and to disk. The line has one length and is short enough to be written in one piece."""
    line = f"{progress.rows:020d} {progress.sums[0]:010d} {progress.sums[1]:010d} "
    content = f"{line}{progress.changed[0]:020d} {progress.changed[1]:020d}\n".encode()
    with writing_to(directory / PROGRESS):
        descriptor = os.open(directory / PROGRESS, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, content)
            os.ftruncate(descriptor, len(content))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read(path: Path) -> tuple[Meta, tuple[Array, Array]]:
    """What outputs.json of a finished directory says; its probabilities and embeddings, memory-mapped and read-only."""
    meta, progress = meta_of(path), read_progress(path)
    if progress.rows < meta.rows:
        held = f"{progress.rows:,} of {meta.rows:,} rows"
        raise InputError(f"{path} holds {held}: run the same prediction again to finish it")
    arrays = _open(path, meta, "r")
    if progress.rows > meta.rows or (_changed(path) != progress.changed and not same_rows(arrays, progress)):
        raise InputError(f"{path} was changed since it was written: {AGAIN}")
    return meta, arrays


def read_ids(folder: Path, rows: int) -> Array:
    """The names of the rows of a part, memory-mapped."""
    again = "delete the part and run the same badge.cluster.predict again, which makes what is missing"
    try:
        ids: Array = np.load(folder / IDS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / IDS} cannot be opened ({error}): {again}") from error
    if ids.shape != (rows,) or ids.dtype.kind not in "iS":
        raise InputError(f"{folder / IDS} is {ids.dtype} {ids.shape}, not one name for each of {rows} rows")
    return ids


class Writer:
    """Rows appended in order to a directory, from where an interrupted writer stopped (`done`).

    `identity` says whose outputs these are: a directory with another one is refused. While rows are missing it belongs to
    this writer alone, until `close` or the end of the process.
    """

    def __init__(self, directory: str | os.PathLike[str], rows: int, identity: dict[str, str]) -> None:
        self.path = path_of(directory, "out")
        self.rows, self.identity = rows, identity
        self.multilabel, self.missing = False, ""  # set when the first rows are written
        self.arrays: tuple[Array, Array] | None = None
        self._lock = -1
        folder_for(self.path)
        meta, progress = self._look()
        if progress.rows < rows:
            self._take_lock()
            meta, progress = self._look()  # the one that held it has gone on since
        if meta is not None and progress.rows:
            self.missing = meta.missing
            self.arrays = _open(self.path, meta, "r+")
            untouched = progress.rows == rows and _changed(self.path) == progress.changed
            if progress.rows > rows or not (untouched or same_rows(self.arrays, progress)):
                raise InputError(f"{self.path} was changed since it was written: {AGAIN}")
        self.done, self._sums = progress.rows, progress.sums
        self._counted, self._clock = self.done, time.monotonic()

    def _look(self) -> tuple[Meta | None, Progress]:
        """What the directory holds, if it is ours."""
        if not (self.path / META).is_file():
            if others := sorted(p.name for p in self.path.iterdir() if not p.name.startswith(".badge-")):
                held = f"holds no outputs of badge ({others[0]}, …)"
                raise InputError(f"{self.path} is not empty and {held}: name another")
            return None, Progress()
        meta = meta_of(self.path)
        check_identity(self.path, meta.identity, self.identity)
        return meta, read_progress(self.path)

    def _take_lock(self) -> None:
        file = self.path / LOCK
        with writing_to(file):
            self._lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
            taken = lock_file(self._lock)
        if not taken:
            self.close()
            who = "by another process or another call of this one"
            raise InputError(f"{self.path} is being written, {who}: wait for it, or name another directory")

    def close(self) -> None:
        """Let go of the directory; closing twice does nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def __del__(self) -> None:
        if os is not None and hasattr(self, "_lock"):  # at the end of the interpreter modules go first
            self.close()

    def write(self, probabilities: Array, embeddings: Array) -> None:
        """Append rows that are valid."""
        if self.arrays is None:
            self._describe(probabilities, embeddings)
            self.arrays = self._create("probabilities", probabilities), self._create("embeddings", embeddings)
        stop = self.done + len(probabilities)
        sums: list[int] = []
        for array, rows in zip(self.arrays, (probabilities, embeddings), strict=True):
            array[self.done : stop] = rows
            sums.append(checksum(array, self.done, stop, self._sums[len(sums)]))
        self.done, self._sums = stop, (sums[0], sums[1])
        if time.monotonic() - self._clock > FLUSH_SECONDS:
            self.flush()

    def leave_out_embeddings(self, missing: str) -> None:
        """Keep no embeddings, neither of rows to come nor of those written; `missing` says why."""
        self.missing = missing
        if self.arrays is None or not self.arrays[1].shape[1]:
            return
        p, none = self.arrays[0], np.empty((0, 0), dtype=np.float32)
        self._describe(p, none)
        self.arrays, self._sums = (p, self._create("embeddings", none)), (self._sums[0], 0)
        self._counted = 0  # the checksum of what was there is wrong
        self.flush()

    def flush(self) -> None:
        """Bring the rows to disk, then count them."""
        if self.arrays is not None and self._counted < self.done:
            with writing_to(self.path):
                for array in self.arrays:
                    array.flush()  # type: ignore[attr-defined]
            write_progress(self.path, Progress(self.done, self._sums, _changed(self.path)))
            self._counted = self.done
        self._clock = time.monotonic()

    def _describe(self, probabilities: Array, embeddings: Array) -> None:
        forms = Form.of(probabilities), Form.of(embeddings)
        with replacing(self.path / META) as stream:
            stream.write(Meta(self.rows, self.identity, forms, bool(self.multilabel), self.missing).text())

    def _create(self, name: str, like: Array) -> Array:
        file, shape = self.path / f"{name}.npy", (self.rows, like.shape[1])
        with writing_to(file):
            made = np.lib.format.open_memmap(file, mode="w+", dtype=like.dtype, shape=shape)
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a crash in the middle
            size = file.stat().st_size
            with file.open("r+b") as handle:
                try:
                    os.posix_fallocate(handle.fileno(), 0, size)
                except OSError as error:
                    raise WriteError(f"cannot reserve {size:,} bytes for {file}: {error.strerror}") from error
        return made


def check_identity(path: object, found: dict[str, str], wanted: dict[str, str]) -> None:
    if wrong := [key for key in wanted if found.get(key) != wanted[key]]:
        whose = f"the outputs of another {' and another '.join(wrong)}"
        raise InputError(f"{path} holds {whose}: name another directory, or delete this one")


def _changed(path: Path) -> tuple[int, int]:
    """When the two arrays were last changed."""
    p, h = ((path / f"{name}.npy").stat().st_mtime_ns for name in ARRAYS)
    return p, h


def _open(path: Path, meta: Meta, mode: Any) -> tuple[Array, Array]:
    arrays = []
    for name, form in zip(ARRAYS, meta.forms, strict=True):
        file = path / f"{name}.npy"
        try:
            if not file.is_file():
                raise FileNotFoundError("it is not there")
            array = np.load(file, mmap_mode=mode, allow_pickle=False)
        except DAMAGED as error:
            raise InputError(f"{file} cannot be opened ({in_short(error)}): {AGAIN}") from error
        if len(array.shape) != 2 or (len(array), Form.of(array)) != (meta.rows, form):
            raise InputError(f"{file} is {array.dtype} {array.shape}, not what {META} says: predict again")
        arrays.append(array)
    return arrays[0], arrays[1]
