"""The rows of several arrays as one, gathered as they are asked for: a pool of many files stays where it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from badge.core.arrays import as_tensor
from badge.core.rows import Remaining, RowSource, Subset
from badge.outputs import store
from badge.outputs.far import FarPart


@dataclass(frozen=True)
class Piece:
    """Rows `start` to `stop` of the outputs in a directory, or in a part of an object store."""

    folder: Path | FarPart
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def here(self) -> Path:
        """The directory, or this machine's copy of a part of an object store."""
        return self.folder.here() if isinstance(self.folder, FarPart) else self.folder

    def open(self, name: str) -> Tensor:
        """These rows of the array `name`, memory-mapped."""
        return as_tensor(store.read(self.here())[1][store.ARRAYS.index(name)][self.start : self.stop], name)


class PartRows:
    """Rows of several arrays, one behind the other. What is in an object store is fetched when it is first read.

    Pickled it is a list of files: who opens it again must see them too.
    """

    def __init__(self, arrays: Sequence[Tensor | None], name: str = "", pieces: Sequence[Piece] = ()) -> None:
        self.arrays, self.name, self.pieces = list(arrays), name, list(pieces)
        self.ends = torch.tensor([len(a) for a in self.pieces or arrays if a is not None]).cumsum(0)
        self.device = torch.device("cpu")
        if (first := self.arrays[0]) is not None:
            columns, self.dtype, self.device = first.shape[1], first.dtype, first.device
        else:
            assert isinstance(self.pieces[0].folder, FarPart)
            columns, self.dtype = self.pieces[0].folder.form(name)
        self.shape = torch.Size((int(self.ends[-1]), columns))

    @classmethod
    def open(cls, name: str, pieces: Sequence[Piece]) -> PartRows:
        """The array `name` of some pieces, memory-mapped."""
        return cls([None if isinstance(p.folder, FarPart) else p.open(name) for p in pieces], name, pieces)

    def __reduce__(self) -> tuple[Any, ...]:
        return PartRows.open, (self.name, self.pieces)

    def narrowed(self, ids: Remaining) -> RowSource:
        """The rows `ids`, of the parts that hold them; nothing is read."""
        pieces, arrays = [], []
        for i, rows in self._held_between(ids.start, ids.stop):
            array = self.arrays[i]
            arrays.append(None if array is None else array[rows])
            if self.pieces:
                folder, first = self.pieces[i].folder, self.pieces[i].start
                pieces.append(Piece(folder, first + rows.start, first + rows.stop))
        some = PartRows(arrays, self.name, pieces)
        return Subset(some, Remaining(0, len(some), ids.excluded - ids.start)) if len(ids.excluded) else some

    def __len__(self) -> int:
        return self.shape[0]

    def _held_between(self, start: int, stop: int) -> Iterator[tuple[int, slice]]:
        """The arrays that hold rows from `start` to `stop`, and which of their rows these are."""
        begin = 0
        for i, end in enumerate(self.ends.tolist()):
            if begin < stop and end > start:
                yield i, slice(max(start - begin, 0), min(stop, end) - begin)
            begin = end

    def _array(self, i: int) -> Tensor:
        found = self.arrays[i]
        if found is None:
            found = self.arrays[i] = self.pieces[i].open(self.name)
        return found

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        if not isinstance(rows, slice):
            return self.index_select(0, rows)
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.index_select(0, torch.arange(start, stop, step))
        pieces = [self._array(i)[held] for i, held in self._held_between(start, stop)]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces) if pieces else self._array(0)[:0]

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        owner = torch.searchsorted(self.ends, index, right=True)
        rows = torch.empty((len(index), self.shape[1]), dtype=self.dtype)
        for part in torch.unique(owner).tolist():
            at = (owner == part).nonzero()[:, 0]
            begin = int(self.ends[part - 1]) if part else 0
            rows[at] = self._array(part).index_select(0, index[at] - begin)
        return rows


class PartIds:
    """The names of rows: whole numbers, or texts; `ids[positions]` gives those asked for as an array, `ids[7]` one."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces, self.ends = list(pieces), np.cumsum([len(piece) for piece in pieces])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, positions: Any) -> Any:
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(len(self)))
        positions = np.asarray(positions, dtype=np.int64)
        if not positions.ndim:
            return self[positions[None]][0]
        owner = np.searchsorted(self.ends, positions, side="right")
        found = {}
        for part in np.unique(owner).tolist() or [0]:
            piece, begin = self.pieces[part], int(self.ends[part - 1]) if part else 0
            ids, at = store.read_ids(piece.here(), len(piece)), np.flatnonzero(owner == part)
            found[part] = at, ids[positions[at] - begin]
        names = np.empty(len(positions), dtype=np.result_type(*{ids.dtype for _, ids in found.values()}))
        for at, ids in found.values():
            names[at] = ids
        return np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names
