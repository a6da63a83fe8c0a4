"""Outputs on disk: two npy files that are memory-mapped, and how many of their rows are done.

    dir/outputs.json         format, shapes, whose outputs these are
    dir/probabilities.npy    [N, C]
    dir/embeddings.npy       [N, D]
    dir/progress             rows that are safely on disk

Rows are flushed before they are counted, so that a process killed at any time loses at most the last second of work.
Rows are validated before they are written: opening a directory reads nothing but its headers.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from badge.errors import InputError

__all__ = ["Writer", "read"]

FORMAT = 1
META, PROGRESS = "outputs.json", "progress"
ARRAYS = ("probabilities", "embeddings")
FLUSH_SECONDS = 1.0

Array = np.ndarray[Any, Any]


def read(directory: str | os.PathLike[str]) -> tuple[Array, Array]:
    """Probabilities and embeddings of a finished directory, memory-mapped and read-only."""
    path = Path(directory)
    meta = _meta(path)
    if meta is None:
        raise InputError(f"{path} holds no outputs: badge.predict(..., out=...) makes such a directory")
    done = _progress(path)
    if done < meta["rows"]:
        raise InputError(
            f"{path} holds {done:,} of {meta['rows']:,} rows: run the same badge.predict(..., out=...) to finish it"
        )
    p, h = _open(path, meta, "r")
    return p, h


class Writer:
    """Rows appended in order to a directory, from where an interrupted writer stopped (`done`).

    `identity` says whose outputs these are: a directory with another one is refused.
    """

    def __init__(self, directory: str | os.PathLike[str], rows: int, identity: dict[str, str]) -> None:
        self.path = Path(directory)
        self.rows, self.identity = rows, identity
        self.arrays: tuple[Array, Array] | None = None
        self.path.mkdir(parents=True, exist_ok=True)
        meta = _meta(self.path)
        if meta is None:
            others = sorted(p.name for p in self.path.iterdir() if p.name != META + ".new")
            if others:
                raise InputError(
                    f"{self.path} is not empty and holds no outputs of badge ({others[0]}, …): name another"
                )
        else:
            wrong = [key for key in identity if meta["identity"].get(key) != identity[key]]
            if wrong:
                raise InputError(
                    f"{self.path} holds the outputs of another {' and another '.join(wrong)}: name another "
                    "directory, or delete this one"
                )
        self.done = 0 if meta is None else _progress(self.path)
        if meta is not None and self.done:
            self.arrays = _open(self.path, meta, "r+")
        self._counted, self._clock = self.done, time.monotonic()

    def write(self, probabilities: Array, embeddings: Array) -> None:
        """Append rows that are valid."""
        if self.arrays is None:
            self.arrays = self._create(probabilities, embeddings)
        stop = self.done + len(probabilities)
        for array, rows in zip(self.arrays, (probabilities, embeddings), strict=True):
            if rows.shape[1:] != array.shape[1:]:
                raise InputError(f"rows of width {rows.shape[1]} after rows of width {array.shape[1]}")
            array[self.done : stop] = rows
        self.done = stop
        if time.monotonic() - self._clock > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring the rows to disk, then count them."""
        if self.arrays is not None and self._counted < self.done:
            for array in self.arrays:
                array.flush()  # type: ignore[attr-defined]
            _write(self.path / PROGRESS, f"{self.done:020d}\n")
            self._counted = self.done
        self._clock = time.monotonic()

    def _create(self, probabilities: Array, embeddings: Array) -> tuple[Array, Array]:
        meta: dict[str, Any] = {"format": FORMAT, "rows": self.rows, "identity": self.identity}
        for name, rows in zip(ARRAYS, (probabilities, embeddings), strict=True):
            meta[name] = {"columns": rows.shape[1], "dtype": rows.dtype.name}
        new = self.path / (META + ".new")
        _write(new, json.dumps(meta, indent=1) + "\n")
        new.replace(self.path / META)
        made = []
        for name in ARRAYS:
            shape = (self.rows, meta[name]["columns"])
            file = self.path / f"{name}.npy"
            made.append(np.lib.format.open_memmap(file, mode="w+", dtype=meta[name]["dtype"], shape=shape))
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a crash in the middle
                _reserve(file)
        return made[0], made[1]


def _reserve(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as handle:
        try:
            os.posix_fallocate(handle.fileno(), 0, size)
        except OSError as error:
            raise InputError(f"cannot reserve {size / 2**30:.2f} GiB for {file}: {error.strerror}") from error


def _write(file: Path, content: str) -> None:
    """In place and to disk; so few bytes go there in one piece."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, content.encode())
        os.ftruncate(descriptor, len(content.encode()))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _meta(path: Path) -> dict[str, Any] | None:
    file = path / META
    if not file.is_file():
        return None
    try:
        meta: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        complete = {"format", "rows", "identity", *ARRAYS} <= set(meta)
    except ValueError:
        complete = False
    if not complete:
        raise InputError(f"{file} is damaged: delete the directory and predict again")
    if meta["format"] != FORMAT:
        raise InputError(f"{file} has format {meta['format']}; this version of badge reads format {FORMAT}")
    return meta


def _progress(path: Path) -> int:
    file = path / PROGRESS
    text = file.read_text(encoding="ascii").strip() if file.is_file() else "0"
    if not text.isdigit():
        raise InputError(f"{file} is damaged: delete the directory and predict again")
    return int(text)


def _open(path: Path, meta: dict[str, Any], mode: Any) -> tuple[Array, Array]:
    arrays = []
    for name in ARRAYS:
        file = path / f"{name}.npy"
        try:
            array = np.load(file, mmap_mode=mode)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be opened ({error}): delete the directory and predict again") from error
        if array.shape != (meta["rows"], meta[name]["columns"]) or array.dtype.name != meta[name]["dtype"]:
            raise InputError(f"{file} is {array.dtype} {array.shape}, not what {META} says: predict again")
        arrays.append(array)
    return arrays[0], arrays[1]
