"""Whose outputs are these? A digest of a model and one of a pool, cheap next to a pass over the pool."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from badge.models.network import random_state_kept, unwrap
from badge.models.pools import Pool, open_pool

__all__ = ["fingerprint", "model_digest", "pool_digest", "value_digest"]

#: items that go into a pool's digest: enough to tell pools apart, few enough to read at once
SAMPLE = 64


def model_digest(model: Any) -> str:
    """Class and all parameters and buffers of a network; the whole fitted state of an estimator."""
    if not isinstance(model, nn.Module):
        import joblib

        return f"{type(model).__name__}:{joblib.hash(model)}"
    model = unwrap(model)
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
        digest.update(memoryview(flat.numpy()))
    return f"{type(model).__name__}:{digest.hexdigest()}"


def fingerprint(pool: Any) -> dict[str, Any]:
    """Length and digest of a pool: the same for the same data as tensor, array or list of arrays.

    >>> fingerprint(np.arange(6.0)) == fingerprint(torch.arange(6.0, dtype=torch.float64))
    True
    """
    opened = open_pool(pool)
    return {"length": opened.rows, "digest": pool_digest(opened)}


def pool_digest(pool: Pool) -> str:
    """A digest of a fixed sample of the inputs; a dataset that augments at random gives the same ones each time."""
    digest = hashlib.sha256()
    with random_state_kept():
        for position in np.unique(np.linspace(0, pool.rows - 1, SAMPLE).astype(np.int64)):
            digest.update(_item_digest(pool, int(position)))
    return digest.hexdigest()[:16]


def _item_digest(pool: Pool, position: int) -> bytes:
    """Digest of one item, read twice: one that comes out different (a generator of its own) counts by its type alone."""
    item: Any = None
    found = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        torch.default_generator.manual_seed(0)
        item = pool.item(position)
        found.append(value_digest(item))
    return found[0] if found[0] == found[1] else type(item).__qualname__.encode()


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
