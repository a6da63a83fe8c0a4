"""Arrays at the door: tensors that share the caller's memory, positions, and a bounded number of rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.errors import InputError

__all__ = ["CHUNK_BYTES", "RowSource", "as_index", "as_tensor", "check_finite", "chunks", "name_rows"]

#: Rows of a large array are read in pieces of at most this many bytes, so that memory-mapped arrays stay on disk.
CHUNK_BYTES = 64 * 2**20


class RowSource(Protocol):
    """A matrix whose rows are had block by block: a tensor, or what stands for one that is never held as a whole."""

    @property
    def shape(self) -> torch.Size: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def device(self) -> torch.device: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Tensor: ...

    def index_select(self, dim: int, index: Tensor, /) -> Tensor: ...


def as_tensor(array: Any, name: str) -> Tensor:
    """A floating tensor that shares memory with `array` where it can (a read-only memmap included)."""
    if not isinstance(array, Tensor):
        array = np.asarray(array) if not isinstance(array, np.ndarray) else array
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} have dtype {array.dtype}: float16, float32 or float64 is needed")
        if array.dtype.kind == "f" and (array.dtype.byteorder == ">" or array.dtype.itemsize not in (2, 4, 8)):
            array = array.astype(np.float64)
        if any(stride < 0 for stride in array.strides):
            array = np.ascontiguousarray(array)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable.*")  # it is never written
            array = torch.from_numpy(array)
    array = array.detach()
    if array.is_complex():
        raise InputError(f"{name} have dtype {array.dtype}: float16, float32 or float64 is needed")
    tensor: Tensor = array if array.is_floating_point() else array.float()
    return tensor


def as_index(ids: Any, n: int) -> Tensor:
    """Row positions as an int64 tensor; a boolean mask becomes its positions."""
    ids = sorted(ids) if isinstance(ids, set | frozenset) else ids
    array = np.asarray(ids.cpu() if isinstance(ids, Tensor) else ids)
    if array.dtype.kind not in "iubf":
        raise InputError(f"positions must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    index = torch.as_tensor(array)
    if index.dtype == torch.bool:
        if index.shape != (n,):
            raise InputError(f"a mask of shape {tuple(index.shape)} cannot index {n} rows")
        return index.nonzero()[:, 0]
    if index.numel() == 0:
        return torch.empty(0, dtype=torch.int64)
    if index.is_floating_point() or index.ndim > 1:
        raise InputError(f"positions must be a flat list of integers, not {index.dtype} of shape {tuple(index.shape)}")
    return index.to(torch.int64).reshape(-1)


def chunks(array: RowSource, limit: int = CHUNK_BYTES) -> Iterator[slice]:
    """Slices of whole rows of at most `limit` bytes each (at least one row)."""
    rows = max(1, limit // max(1, array.shape[1:].numel() * max(4, array.dtype.itemsize)))
    for start in range(0, len(array), rows):
        yield slice(start, min(start + rows, len(array)))


def name_rows(rows: Tensor | NDArray[np.int64]) -> str:
    """How many rows, and the first of them, for a message."""
    first = ", ".join(str(int(i)) for i in rows[:5])
    return f"{len(rows)} row{'s' * (len(rows) > 1)} (first: {first})"


def check_finite(x: Tensor, name: str) -> None:
    """Refuse NaN and inf, naming the rows."""
    for part in chunks(x):
        if torch.isfinite(x[part].sum(dtype=torch.float64)):  # inf and NaN survive a sum; float64 does not overflow
            continue
        bad = (
            (~torch.isfinite(x[part])).any(dim=-1).nonzero()[:, 0]
            if x.ndim > 1
            else x[part].isfinite().logical_not().nonzero()[:, 0]
        )
        if len(bad):
            raise InputError(f"{name} hold NaN or inf in {name_rows(bad + part.start)}: drop or repair these rows")
