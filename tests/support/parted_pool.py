"""A pool in parts on disk, and a strategy that no cluster takes, for the tests of selections on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import badge
from badge.outputs import parts
from badge.outputs.parts import place_of

N = 18_000
DONE = np.arange(0, 9_000, 7)


def on_disk(path: Path, n: int, rows: int = 5_000) -> badge.Outputs:
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(3 * rng.normal(size=(n, 4)), rng.normal(size=(n, 8)) * rng.random((n, 1)) ** 2)
    p, h = out.probabilities.numpy().astype(np.float16), out.embeddings.numpy().astype(np.float16)
    identity = {"model": "made"}
    parts.begin(path, identity)
    made = [
        parts.write(
            place_of(path),
            f"{a:06d}",
            p[a : a + rows],
            h[a : a + rows],
            np.arange(a, min(a + rows, n)) * 3,
            identity,
        )
        for a in range(0, n, rows)
    ]
    parts.finish(path, made)
    return badge.Outputs.load(path)


def halves(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
    return np.arange(k)
