"""A learner on sixty points of two classes, quick to train, for the tests of what a journal lives through."""

from __future__ import annotations

from typing import Any

import numpy as np

import badge
from small_loop import Trainer, predict

X = np.random.default_rng(0).normal(size=(60, 2))
TRUTH = (X[:, 0] > 0).astype(int)
KEYS = [f"img/{n:03d}.png" for n in np.random.default_rng(1).permutation(60)]


def make(path: Any = None, pool: Any = X, **options: Any) -> badge.ActiveLearner:
    options = {"classes": 2, "predict": predict, **options}
    return badge.ActiveLearner(pool, options.pop("trainer", None) or Trainer(0.0), journal=path, **options)


def rounds(learner: badge.ActiveLearner, asks: int, k: int = 4) -> list[list[Any]]:
    for _ in range(asks):
        ids = learner.ask(k)
        learner.tell(ids, TRUTH[learner.positions(ids)])
    return [batch.tolist() for batch in learner.batches]
