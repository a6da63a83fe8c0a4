"""Whose outputs are these? A digest of a model and one of a pool, cheap next to a pass over the pool."""

import hashlib
import pickle
import random
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import TensorDataset

from badge.core.arrays import on_host
from badge.errors import ModelError, in_short
from badge.models.borrowed import random_state_kept
from badge.models.inputs import is_frame, series
from badge.models.network import unwrap
from badge.models.pools import OpenPool

#: items that go into a pool's digest: enough to tell pools apart, few enough to read at once
SAMPLE = 64
#: looks at each item: a rare augmentation shows in one of three looks at one of 64 items
LOOKS = 3
#: pools that are digested whole, and the number of rows that are read at a time
_WHOLE, ROWS = (torch.Tensor, np.ndarray, TensorDataset, Mapping, list, tuple), 4096


def model_digest(model: Any) -> str:
    """Class and all parameters and buffers of a network; the whole fitted state of an estimator."""
    if not isinstance(model, nn.Module):
        import joblib

        try:
            return f"{type(model).__name__}:{joblib.hash(model)}"
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            why = f"cannot be pickled ({in_short(error)}), so that its outputs on disk could not be told from another's"
            way_out = "use functions of a module in it, no lambda, or leave out out="
            raise ModelError(f"{type(model).__name__} {why}: {way_out}") from error
    model = unwrap(model)
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    return f"{type(model).__name__}:{digest.hexdigest()}"


def sample_of(rows: int) -> NDArray[np.int64]:
    """The positions of the items that identify a pool: evenly spaced, at most SAMPLE of them."""
    return np.unique(np.linspace(0, rows - 1, SAMPLE).astype(np.int64))


def sample_digest(pool: OpenPool, positions: Iterable[int]) -> str | None:
    """A digest of some items; None if one of them differs each time it is read.

    The random state is set before each reading, so that most datasets that augment at random give the same items each time.
    A dataset with its own generator does not: then its items cannot identify it.
    """
    digest = hashlib.sha256()
    with random_state_kept():
        for position in positions:
            looks = {_look(pool, int(position)) for _ in range(LOOKS)}
            if len(looks) > 1:
                return None
            digest.update(looks.pop())
    return digest.hexdigest()[:16]


def whole_digest(pool: Any, opened: OpenPool) -> str:
    """Length and content of a pool: all of arrays, tables, texts and lists; of a dataset a sample, or its `digest()`.

    Where items differ each time they are read, their type stands for the sample.
    """
    sample = sample_digest(opened, sample_of(opened.rows)) or type(opened.item(0)).__qualname__
    digest = hashlib.blake2b(f"{opened.rows} {sample}".encode(), digest_size=16)
    if callable(getattr(type(pool), "digest", None)):
        digest.update(str(pool.digest()).encode())
    elif isinstance(pool, _WHOLE) or hasattr(pool, "iloc") or hasattr(pool, "tocsr") or is_frame(pool):
        starts = range(0, opened.rows, ROWS)
        ranges = zip((0, *opened.ends), opened.ends, strict=False) if opened.ends else ((a, a + ROWS) for a in starts)
        for start, stop in ranges:  # a memory-mapped pool stays on disk
            _feed(digest, opened.part(slice(start, min(stop, opened.rows))))
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a part of a pool; its columns, its rows, its numbers one after the other."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    if hasattr(value, "tocsr"):
        value = [value.data, value.indices, value.indptr]
    elif hasattr(value, "columns"):
        value = [series(value[name]) for name in value.columns]
    elif hasattr(value, "iloc") or is_frame(value):
        value = series(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        digest.update(f"{value.shape}{value.dtype}".encode())
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, str):
        digest.update(f"{len(value)} {value}".encode(errors="surrogatepass"))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            digest.update(str(key).encode(errors="surrogatepass"))
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        for entry in value:
            _feed(digest, entry)
    else:
        digest.update(value_digest(value))


def _look(pool: OpenPool, position: int) -> bytes:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.default_generator.manual_seed(0)
    return value_digest(pool.item(position))


def value_digest(value: Any) -> bytes:
    """A digest of plain data that does not depend on the process or the kind of array."""
    if isinstance(value, torch.Tensor):
        value = on_host(value)
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, Mapping):
        value = sorted((str(key), value_digest(entry)) for key, entry in value.items())
    elif isinstance(value, list | tuple):
        value = [value_digest(entry) for entry in value]
    elif not isinstance(value, str | bytes | None):
        array = np.asarray(value)
        value = type(value).__qualname__ if array.dtype == object else (array.shape, str(array.dtype), array.tobytes())
    return hashlib.sha256(repr(value).encode()).digest()
