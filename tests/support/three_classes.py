"""A learner on sixty points of three classes, with a trainer that counts its fits."""

from __future__ import annotations

from typing import Any

import numpy as np

import badge

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
TRUTH = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)


class Centroids:
    """A trainer that is quick and uses its rng: class means, shaken a little."""

    def __init__(self) -> None:
        self.fits = 0

    def fit(self, examples: Any, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self.fits += 1
        x = np.asarray(examples, dtype=float)
        means = [x[labels == c].mean(0) if (labels == c).any() else np.full(3, 9.0) for c in range(3)]
        return np.stack(means) + rng.normal(scale=0.1, size=(3, 3))


def predict(model: np.ndarray, pool: Any) -> badge.Outputs:
    x = np.stack([np.asarray(item[0] if isinstance(item, tuple) else item, dtype=float) for item in pool])
    return badge.Outputs.from_logits(-((x[:, None] - model[None]) ** 2).sum(-1), x)


def make(journal: Any = None, pool: Any = X, trainer: Any = None, **options: Any) -> badge.ActiveLearner:
    options = {"classes": 3, "seed": 0, "predict": predict, **options}
    return badge.ActiveLearner(pool, Centroids() if trainer is None else trainer, journal=journal, **options)


def run(learner: badge.ActiveLearner, asks: int, k: int = 5, truth: np.ndarray = TRUTH) -> list[list[int]]:
    for _ in range(asks):
        ids = learner.ask(k)
        learner.tell(ids, truth[ids])
    return [batch.tolist() for batch in learner.batches]
