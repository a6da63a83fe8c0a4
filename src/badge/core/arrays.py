"""Arrays at the door: tensors that share the caller's memory, positions, and a bounded number of rows at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.names import name_rows, unmasked
from badge.errors import InputError, in_short

if TYPE_CHECKING:
    from badge.core.rows import RowSource

#: Rows of a large array are read in pieces of at most this many bytes, so that memory-mapped arrays stay on disk.
CHUNK_BYTES = 64 * 2**20
#: Norms are computed in float64, from copies of about this many bytes, which stay in cache.
NORM_BYTES = 2**22
#: float32 holds every whole number up to this one.
SINGLE_WHOLE = 2**24


def as_array(values: Any, name: str) -> NDArray[Any]:
    """`values` as a numpy array; for ragged rows and masked entries an error that says so.

    >>> as_array([[1, 2], [3]], "embeddings")
    Traceback (most recent call last):
    badge.errors.InputError: embeddings are not rows of one length: ...
    """
    values = unmasked(values, name)
    if isinstance(values, Tensor):
        check_held(values, name)
        return on_host(values)
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        why = f"no array can be made of them ({in_short(error)})"
        raise InputError(f"{name} are not rows of one length: {why}") from None


def on_host(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor; bfloat16, which numpy does not have, as float32."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy(force=True)


def native(array: NDArray[Any]) -> NDArray[Any]:
    """An array that torch can share: bytes in the order of this machine, no number longer than 8 bytes, not reversed.

    >>> native(np.array([1.5], dtype=">f4")).dtype, native(np.array([1.5], dtype=np.longdouble)).dtype
    (dtype('float32'), dtype('float64'))
    """
    if array.dtype.kind == "f" and array.dtype.itemsize not in (2, 4, 8):
        return array.astype(np.float64)
    if any(stride < 0 for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_held(tensor: Tensor, name: str) -> None:
    """Refuse tensors that hold no numbers to read in place."""
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        raise InputError(f"{name} are a sparse tensor, or one without numbers (meta): pass a dense one")


def as_tensor(array: Any, name: str) -> Tensor:
    """A floating tensor that shares memory with `array` where it can (a read-only memmap included)."""
    if not isinstance(array, Tensor):
        array = as_array(array, name)
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} have dtype {array.dtype}: float16, float32 or float64 is needed")
        array = array.astype(np.float64) if array.dtype == np.uint64 else native(array)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable.*")  # it is never written
            array = torch.from_numpy(array)
    tensor: Tensor = array.detach()
    check_held(tensor, name)
    if not tensor.ndim:
        raise InputError(f"{name} are a single value: one row per example is needed")
    if tensor.is_complex():
        raise InputError(f"{name} have dtype {tensor.dtype}: float16, float32 or float64 is needed")
    if tensor.is_floating_point():
        return tensor
    # float32 holds every whole number up to 2²⁴; times and identifiers are larger, and would become one value
    if tensor.dtype.itemsize > 2 and tensor.numel() and float(tensor.double().abs().max()) > SINGLE_WHOLE:
        return tensor.double()
    return tensor.float()


def as_single(x: Tensor) -> Tensor:
    """`x` in float32, unless float32 cannot tell the values of a column apart: then unchanged.

    A column such as 1.7e9 + i (a time in seconds) has steps of 128 in float32. The rule: no entry is above the whole numbers
    that float32 holds, and rounding the largest of a column moves it by at most a thousandth of what the column spans.

    >>> as_single(torch.tensor([[1.7e9], [1.7e9 + 1]], dtype=torch.float64)).dtype
    torch.float64
    """
    if x.dtype != torch.float64 or not len(x):
        return x.float()
    low, high = torch.aminmax(x, dim=0)
    largest = torch.maximum(low.abs(), high.abs())
    rounding = largest * torch.finfo(torch.float32).eps / 2
    coarse = (largest > SINGLE_WHOLE) | ((rounding > (high - low) / 1000) & (high > low))
    return x if bool(coarse.any()) else x.float()


def as_index(ids: Any, n: int) -> Tensor:
    """Row positions as an int64 tensor; a boolean mask becomes its positions."""
    array = as_array(list(ids) if isinstance(ids, set | frozenset) else ids, "positions")
    if array.dtype.kind == "b":
        if array.shape != (n,):
            raise InputError(f"a mask of shape {array.shape} cannot index {n} rows")
        return torch.from_numpy(np.flatnonzero(array))
    if not array.size:
        return torch.empty(0, dtype=torch.int64)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise InputError(f"positions must be a flat list of integers, not {array.dtype} of shape {array.shape}")
    index = torch.from_numpy(array.astype(np.int64)).reshape(-1)
    return index.sort().values if isinstance(ids, set | frozenset) else index


def chunks(array: RowSource, limit: int = CHUNK_BYTES) -> Iterator[slice]:
    """Slices of whole rows of at most `limit` bytes each (at least one row)."""
    rows = max(1, limit // max(1, array.shape[1:].numel() * max(4, array.dtype.itemsize)))
    for start in range(0, len(array), rows):
        yield slice(start, min(start + rows, len(array)))


def row_norms(x: Tensor) -> Tensor:
    """The norm of each row, in float64. It depends on the row alone: not on its neighbours, strides or the number of rows.

    >>> row_norms(torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [5.0, 1.0]
    """
    rows = max(1, NORM_BYTES // (8 * max(1, x.shape[1])))
    norms = torch.empty(len(x), dtype=torch.float64, device=x.device)
    for start in range(0, len(x), rows):  # in place: results kept between parts would stop the heap from shrinking
        norms[start : start + rows] = torch.linalg.vector_norm(x[start : start + rows].contiguous().double(), dim=1)
    return norms


def check_finite(x: Tensor, name: str, start: int = 0, advice: str = "drop or repair these rows") -> None:
    """Refuse NaN and inf, naming the rows; `start` is the number of the first."""
    for part in chunks(x):
        # A finite sum has no NaN or inf in it and clears a whole chunk; one that is not finite may be an overflow. In half
        # precision minimum and maximum show NaN and inf too, in a third of the time of a sum in float32.
        rows = x[part]
        if torch.isfinite(torch.stack(torch.aminmax(rows)).float().sum() if x.dtype.itemsize < 4 else rows.sum()):
            continue
        bad = (~torch.isfinite(x[part])).reshape(len(x[part]), -1).any(dim=1).nonzero()[:, 0]
        if len(bad):
            raise InputError(f"{name} hold NaN or inf in {name_rows(bad + part.start + start)}: {advice}")
