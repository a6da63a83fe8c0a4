"""The small pools on which samplers and strategies are tested, and the ways to hold one pool."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from badge.outputs import Outputs
from badge.outputs.part_rows import PartRows


def made(n: int, c: int = 4, d: int = 6, seed: int = 0, dtype: Any = np.float32) -> Outputs:
    """Random outputs of n examples, c classes and embeddings of width d."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, c))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return Outputs(p.astype(dtype), rng.normal(size=(n, d)).astype(dtype))


def _one_long() -> Outputs:
    """Nine gradients of zero, and one that is not."""
    return Outputs(np.concatenate([np.tile([[1.0, 0.0]], (9, 1)), [[0.5, 0.5]]]), np.ones((10, 3)))


#: name -> what makes the pool, and k
POOLS: dict[str, tuple[Callable[[], Outputs], int]] = {
    "ordinary": (lambda: made(50), 7),
    "float64": (lambda: made(50, dtype=np.float64), 7),
    "float16": (lambda: made(50, dtype=np.float16), 7),
    "one": (lambda: made(1), 1),
    "k = N": (lambda: made(15), 15),
    "k = N above the rank": (lambda: made(30), 30),
    "C = 2": (lambda: made(40, c=2), 5),
    "one column": (lambda: Outputs(made(40, c=2).probabilities[:, :1], made(40, c=2).embeddings), 5),
    "C = 1000": (lambda: made(60, c=1000, d=8), 20),
    "C = 1000, k = N": (lambda: made(60, c=1000, d=8), 60),
    "duplicates": (lambda: made(10)[np.repeat(np.arange(10), 6)], 12),
    "all the same": (lambda: made(1)[np.zeros(20, dtype=int)], 6),
    "zero gradients": (lambda: Outputs(np.tile([[1.0, 0.0, 0.0]], (12, 1)), np.ones((12, 3))), 5),
    "zero embeddings": (lambda: Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 11),
    "zero embeddings, k = N": (lambda: Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 12),
    "one gradient is not zero": (_one_long, 4),
    "wide": (lambda: made(20, c=3, d=300), 20),
}

#: Five examples, few enough to enumerate every draw: one confident, two alike, gradient norms over a decade.
SMALL = Outputs(
    np.array([[0.4, 0.35, 0.25], [0.97, 0.02, 0.01], [0.1, 0.6, 0.3], [0.12, 0.6, 0.28], [0.3, 0.25, 0.45]]),
    np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 0.5], [2.0, 0.4], [-0.3, 0.2]]),
)


def ways_to_hold(pool: Outputs, folder: Path) -> Iterator[tuple[str, Outputs]]:
    """The same rows memory-mapped, column by column, and in parts that are read block by block."""
    arrays = [x.numpy() for x in (pool.probabilities, pool.embeddings)]
    for i, array in enumerate(arrays):
        np.save(folder / f"{i}.npy", array)
    p, h = (np.load(folder / f"{i}.npy", mmap_mode="r") for i in range(2))
    yield "memory-mapped", Outputs(p, h)
    p, h = (np.asfortranarray(x) for x in arrays)
    yield "kept column by column", Outputs(p, h)
    blocks = [PartRows(torch.split(torch.from_numpy(x), 7)) for x in arrays]
    yield "read in blocks", Outputs.trusted(blocks[0], blocks[1])
