"""Pools of examples: how many there are, some of them by position, and a digest that tells one pool from another."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from badge.errors import InputError

__all__ = ["SAMPLE", "fingerprint", "length", "take", "value_digest"]

#: items that go into a pool's digest: enough to tell pools apart, few enough to read at once
SAMPLE = 64


def length(pool: Any) -> int:
    """Number of examples of a tensor, an array, a table, a list or a map-style Dataset.

    >>> length(["a", "b"]), length(np.zeros((3, 2)))
    (2, 3)
    """
    shape = getattr(pool, "shape", None)
    n = int(shape[0]) if shape is not None and len(shape) else len(pool) if hasattr(pool, "__len__") else -1
    if n < 0 or not (hasattr(pool, "__getitem__") or hasattr(pool, "iloc")):
        raise InputError(
            f"a pool of type {type(pool).__name__} cannot be indexed: give a tensor, an array, a list or a map-style "
            "Dataset, not a stream"
        )
    if n == 0:
        raise InputError("the pool is empty")
    return n


def take(pool: Any, ids: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    """The examples `ids`, in the pool's own kind; items of a Dataset come without the labels that it may carry.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if isinstance(pool, torch.Tensor):
        return pool[torch.from_numpy(ids).to(pool.device)]
    if hasattr(pool, "iloc"):  # pandas
        return pool.iloc[ids]
    if isinstance(pool, np.ndarray) or hasattr(pool, "tocsr"):
        return pool[ids]
    if hasattr(pool, "select") and hasattr(pool, "column_names"):  # a Hugging Face dataset
        return pool.select(ids)
    items = [example(pool[int(id)]) for id in ids]
    if items and all(isinstance(item, torch.Tensor) and item.shape == items[0].shape for item in items):
        return torch.stack(items)
    if items and all(isinstance(item, np.ndarray) and item.shape == items[0].shape for item in items):
        return np.stack(items)
    return items


def example(item: Any) -> Any:
    """The input of a Dataset's item: `(input, label)` loses its label."""
    return item[0] if isinstance(item, tuple) and len(item) == 2 else item


def fingerprint(pool: Any) -> dict[str, Any]:
    """Length and a digest of a fixed sample of items: the same for the same data as tensor, array or list of arrays.

    >>> fingerprint(np.arange(6.0)) == fingerprint(torch.arange(6.0, dtype=torch.float64))
    True
    """
    n = length(pool)
    digest = hashlib.sha256()
    for position in np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64)):
        digest.update(_item_digest(pool, int(position)))
    return {"length": n, "digest": digest.hexdigest()[:16]}


def _item_digest(pool: Any, position: int) -> bytes:
    """Digest of one item, read twice: one that comes out different (random transforms) counts by its type alone."""
    first, second = (value_digest(_item(pool, position)) for _ in range(2))
    return first if first == second else type(_item(pool, position)).__qualname__.encode()


def _item(pool: Any, position: int) -> Any:
    return pool.iloc[position].tolist() if hasattr(pool, "iloc") else example(pool[position])


def value_digest(value: Any) -> bytes:
    """A digest of plain data that does not depend on the process or the kind of array."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
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
