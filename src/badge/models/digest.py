"""Whose outputs are these? A digest of a model and one of a pool, cheap next to a pass over the pool."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import nn

from badge.models.network import random_state_kept, unwrap
from badge.models.opening import Pool
from badge.models.pools import SAMPLE, value_digest

__all__ = ["model_digest", "pool_digest"]


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


def pool_digest(pool: Pool) -> str:
    """Length and a fixed sample of the inputs; a dataset that augments at random gives the same ones each time."""
    positions = sorted({int(i) for i in np.linspace(0, pool.rows - 1, SAMPLE)})
    digest = hashlib.blake2b(digest_size=16)
    with random_state_kept():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002
        torch.default_generator.manual_seed(0)
        for item in pool.items(positions):
            digest.update(value_digest(item))
    return f"{pool.rows}:{digest.hexdigest()}"
