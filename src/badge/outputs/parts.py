"""Outputs in parts: a directory of directories, each as `badge.predict(..., out=)` writes it, in the order of one index.

    dir/parts.json           whose outputs these are; once all parts are there: their names and rows, in order
    dir/part-<key>/          outputs.json, probabilities.npy, embeddings.npy, progress, and where rows have names ids.npy

A part is written under another name and renamed when it is complete, so that it is complete or absent whoever is killed;
so is the index. Parts can be made anywhere and in any order: the key says which rows they hold.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_tensor
from badge.core.rows import Remaining, RowSource, Subset
from badge.core.writing import folder_for, replacing, writing_to
from badge.errors import InputError
from badge.outputs import store

__all__ = [
    "Opened",
    "Part",
    "PartIds",
    "PartRows",
    "Piece",
    "begin",
    "existing",
    "finish",
    "is_parts",
    "open_parts",
    "open_single",
    "write",
]

FORMAT = 1
INDEX, IDS = "parts.json", "ids.npy"
AGAIN = "run the same badge.cluster.predict again, which makes what is missing"


@dataclass(frozen=True)
class Part:
    """One part as the index lists it."""

    name: str
    rows: int


@dataclass(frozen=True)
class Opened:
    """All parts of a directory (or some of them in a row), memory-mapped, in order."""

    probabilities: PartRows
    embeddings: PartRows
    ids: PartIds | None
    multilabel: bool = False


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of the outputs in a directory."""

    folder: Path
    start: int
    stop: int


class PartRows:
    """Rows of several arrays, one behind the other, gathered as they are asked for: a pool of many files stays on disk.

    Pickled it is a list of files: who opens it again must see them too.
    """

    def __init__(self, arrays: Sequence[Tensor], name: str = "", pieces: Sequence[Piece] = ()) -> None:
        self.arrays, self.name, self.pieces = list(arrays), name, list(pieces)
        self.ends = torch.tensor([len(a) for a in arrays]).cumsum(0)
        self.shape = torch.Size((int(self.ends[-1]), arrays[0].shape[1]))
        self.dtype, self.device = arrays[0].dtype, arrays[0].device

    @classmethod
    def open(cls, name: str, pieces: Sequence[Piece]) -> PartRows:
        """The array `name` of some pieces, memory-mapped."""
        which = store.ARRAYS.index(name)
        arrays = [as_tensor(store.read(p.folder)[which][p.start : p.stop], name) for p in pieces]
        return cls(arrays, name, pieces)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartRows.open, (self.name, self.pieces)

    def narrowed(self, ids: Remaining) -> RowSource:
        """The rows `ids`, of the parts that hold them; nothing is read."""
        pieces, arrays, begin = [], [], 0
        for i, (array, end) in enumerate(zip(self.arrays, self.ends.tolist(), strict=True)):
            low, high = max(ids.start - begin, 0), min(ids.stop - begin, end - begin)
            if low < high:
                arrays.append(array[low:high])
                if self.pieces:
                    piece = self.pieces[i]
                    pieces.append(Piece(piece.folder, piece.start + low, piece.start + high))
            begin = end
        some = PartRows(arrays, self.name, pieces)
        return Subset(some, Remaining(0, len(some), ids.excluded - ids.start)) if len(ids.excluded) else some

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        if not isinstance(rows, slice):
            return self.index_select(0, rows)
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.index_select(0, torch.arange(start, stop, step))
        pieces, begin = [], 0
        for array, end in zip(self.arrays, self.ends.tolist(), strict=True):
            if begin < stop and end > start:
                pieces.append(array[max(start - begin, 0) : stop - begin])
            begin = end
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces) if pieces else self.arrays[0][:0]

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        owner = torch.searchsorted(self.ends, index, right=True)
        rows = torch.empty((len(index), self.shape[1]), dtype=self.dtype)
        for part in torch.unique(owner).tolist():
            at = (owner == part).nonzero()[:, 0]
            begin = int(self.ends[part - 1]) if part else 0
            rows[at] = self.arrays[part].index_select(0, index[at] - begin)
        return rows


class PartIds:
    """The names of rows: whole numbers, or texts; `ids[positions]` gives those asked for as an array."""

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = list(arrays)
        self.ends = np.cumsum([len(a) for a in arrays])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, positions: Any) -> NDArray[Any]:
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(len(self)))
        positions = np.asarray(positions, dtype=np.int64)
        owner = np.searchsorted(self.ends, positions, side="right")
        found = np.empty(len(positions), dtype=np.result_type(*{a.dtype for a in self.arrays}))
        for part in np.unique(owner).tolist():
            at = np.flatnonzero(owner == part)
            found[at] = self.arrays[part][positions[at] - (int(self.ends[part - 1]) if part else 0)]
        return np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found


def is_parts(directory: str | os.PathLike[str]) -> bool:
    return (Path(directory) / INDEX).is_file()


def begin(directory: str | os.PathLike[str], identity: dict[str, str]) -> bool:
    """Make the directory, or check that it is for the same outputs; whether all of its parts are there already."""
    path = folder_for(directory)
    if not is_parts(path):
        others = sorted(p.name for p in path.iterdir() if not p.name.startswith((".part", "part", ".badge-")))
        if others:
            raise InputError(f"{path} is not empty and holds no outputs in parts ({others[0]}, …): name another")
        _write_index(path, {"format": FORMAT, "identity": identity, "parts": None})
        return False
    index = _index(path)
    store.check_identity(path, index["identity"], identity)
    return index["parts"] is not None and all((path / name).is_dir() for name, _ in index["parts"])


def existing(directory: str | os.PathLike[str], key: str, identity: dict[str, str]) -> Part | None:
    """The part of that key, if it is there; one of another model is refused."""
    folder = Path(directory) / f"part-{key}"
    if not folder.is_dir():
        return None
    rows = len(store.read(folder)[0])
    store.check_identity(folder, _meta(folder)["identity"], identity)
    return Part(folder.name, rows)


def write(
    directory: str | os.PathLike[str],
    key: str,
    probabilities: NDArray[Any],
    embeddings: NDArray[Any],
    ids: NDArray[Any] | None,
    identity: dict[str, str],
    multilabel: bool = False,
) -> Part:
    """Write one part; it appears under its name when it is complete and on disk."""
    target = Path(directory) / f"part-{key}"
    hidden = target.with_name(f".{target.name}-{uuid.uuid4().hex[:8]}")
    writer = store.Writer(hidden, len(probabilities), {**identity, "part": key})
    writer.multilabel = multilabel
    writer.write(probabilities, embeddings)
    writer.flush()
    writer.close()
    (hidden / store.LOCK).unlink(missing_ok=True)  # a part is written once
    if ids is not None:
        with replacing(hidden / IDS, binary=True) as file:
            np.save(file, ids, allow_pickle=False)
    with writing_to(target):
        try:
            hidden.rename(target)
        except OSError:  # another worker has made the same part meanwhile
            shutil.rmtree(hidden)
            if not target.is_dir():
                raise
    return Part(target.name, len(probabilities))


def finish(directory: str | os.PathLike[str], parts: Sequence[Part]) -> None:
    """Check the parts and write the index; what is not in it goes: remains of killed workers, parts of other layouts."""
    path = Path(directory)
    _open(path, parts)
    names = {part.name for part in parts}
    for folder in path.iterdir():
        if folder.name.lstrip(".").startswith("part-") and folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)
    index = _index(path)
    _write_index(path, {**index, "parts": [[part.name, part.rows] for part in parts]})


def open_parts(directory: str | os.PathLike[str]) -> Opened:
    """All parts of a finished directory, memory-mapped; what is missing, doubled or does not fit is named."""
    path = Path(directory)
    index = _index(path)
    if index["parts"] is None:
        raise InputError(f"{path} is not finished: {AGAIN}")
    return _open(path, [Part(name, rows) for name, rows in index["parts"]])


def _open(path: Path, parts: Sequence[Part]) -> Opened:
    probabilities, embeddings, ids = [], [], []
    metas: list[dict[str, Any]] = []
    keys: dict[str, str] = {}
    for part in parts:
        folder = path / part.name
        if not folder.is_dir():
            raise InputError(f"{folder} is missing: {AGAIN}")
        p, h = store.read(folder)
        metas.append(_meta(folder))
        _check_fits(path, parts, metas)
        key = metas[-1]["identity"].get("part", part.name)
        if key in keys:
            raise InputError(f"{folder} holds the same rows as {path / keys[key]}: a part may be there only once")
        keys[key] = part.name
        if len(p) != part.rows:
            raise InputError(f"{folder} has {len(p):,} rows, not {part.rows:,} as {INDEX} says: delete it and {AGAIN}")
        probabilities.append(as_tensor(p, "probabilities"))
        embeddings.append(as_tensor(h, "embeddings"))
        if (folder / IDS).is_file():
            ids.append(_ids(folder, part.rows))
    if not parts:
        raise InputError(f"{path} has no parts: it holds 0 rows")
    if ids and len(ids) != len(parts):
        without = next(part.name for part in parts if not (path / part.name / IDS).is_file())
        raise InputError(f"{path / without} has no {IDS}, and other parts have: delete it and {AGAIN}")
    pieces = [Piece(path / part.name, 0, part.rows) for part in parts]
    p_rows, h_rows = (PartRows(a, n, pieces) for n, a in zip(store.ARRAYS, (probabilities, embeddings), strict=True))
    return Opened(p_rows, h_rows, PartIds(ids) if ids else None, bool(metas[0].get("multilabel")))


def open_single(directory: str | os.PathLike[str]) -> Opened:
    """What `badge.predict(..., out=directory)` wrote, as a pool of one part."""
    path = Path(directory)
    arrays = store.read(path)
    for name, array in zip(store.ARRAYS, arrays, strict=True):
        if not array.shape[1]:
            raise InputError(f"{path} holds no {name}: {store.described(path)[1]}")
    pieces = [Piece(path, 0, len(arrays[0]))]
    p_rows, h_rows = (PartRows.open(name, pieces) for name in store.ARRAYS)
    return Opened(p_rows, h_rows, None, bool(_meta(path).get("multilabel")))


def _check_fits(path: Path, parts: Sequence[Part], metas: Sequence[dict[str, Any]]) -> None:
    """The last of `metas` must be of the model and the shape of the first."""
    first, last = metas[0], metas[-1]
    folder, other = path / parts[len(metas) - 1].name, path / parts[0].name
    for name in store.ARRAYS:
        if last[name] != first[name]:
            said = [f"{meta[name]['columns']} columns of {meta[name]['dtype']}" for meta in (last, first)]
            raise InputError(f"{folder} has {name} of {said[0]}, {other} of {said[1]}: parts of one model are needed")
    if bool(first.get("multilabel")) != bool(last.get("multilabel")):
        raise InputError(f"{folder} and {other} are not both multi-label: parts of one model are needed")
    for key in sorted({*first["identity"], *last["identity"]} - {"part", "pool"}):
        if first["identity"].get(key) != last["identity"].get(key):
            raise InputError(f"{folder} holds the outputs of another {key} than {other}: parts of one model are needed")


def _meta(folder: Path) -> dict[str, Any]:
    return store.read_meta(folder) or {}


def _ids(folder: Path, rows: int) -> NDArray[Any]:
    try:
        ids: NDArray[Any] = np.load(folder / IDS, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / IDS} cannot be opened ({error}): delete the part and {AGAIN}") from error
    if ids.shape != (rows,) or ids.dtype.kind not in "iS":
        raise InputError(f"{folder / IDS} is {ids.dtype} {ids.shape}, not one name for each of {rows} rows")
    return ids


def _index(path: Path) -> dict[str, Any]:
    file = path / INDEX
    try:
        index: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        sound = {"format", "identity", "parts"} <= set(index)
    except (OSError, ValueError):
        sound = False
    if not sound:
        raise InputError(f"{file} cannot be read or is damaged: delete it and {AGAIN}")
    if index["format"] != FORMAT:
        raise InputError(f"{file} has format {index['format']}; this version of badge reads format {FORMAT}")
    return index


def _write_index(path: Path, index: dict[str, Any]) -> None:
    with replacing(path / INDEX) as file:
        file.write(json.dumps(index) + "\n")
