"""A loop that is quick, for the scripts that attack it: its pool, its truth, its trainer. Not a test module."""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import badge
from badge import journal
from badge.journal.schema import typed
from badge.learner.ledger import Ledger
from badge.learner.opening import recorded_ledger

X = np.random.default_rng(0).normal(size=(50, 2))
TRUTH = (X[:, 0] > 0).astype(int)


class Trainer:
    """Class means, shaken; slow enough that a random moment can fall into training."""

    def __init__(self, seconds: float = 0.001) -> None:
        self.seconds = seconds

    def fit(self, examples: Any, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        time.sleep(self.seconds)
        return np.stack([examples[labels == c].mean(0) for c in range(2)]) + rng.normal(scale=0.1, size=(2, 2))


def predict(model: np.ndarray, pool: np.ndarray) -> badge.Outputs:
    return badge.Outputs.from_logits(-((pool[:, None] - model[None]) ** 2).sum(-1), pool)


def learner(path: Path | None, pool: np.ndarray = X, seconds: float = 0.001, **options: Any) -> badge.ActiveLearner:
    options = {"strategy": "albl", **options}
    return badge.ActiveLearner(pool, Trainer(seconds), classes=2, journal=path, predict=predict, **options)


def quietly_read(path: Path) -> list[journal.Event]:
    """The events of a journal, without the warning about a torn last line, which is expected here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return journal.read(path) if path.exists() else []


def ledger_in(path: Path) -> Ledger:
    """The state that a journal holds."""
    return recorded_ledger([typed(event) for event in quietly_read(path)], path)


def arguments(times: int, what: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", type=int, default=times, help=what)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    return chosen
