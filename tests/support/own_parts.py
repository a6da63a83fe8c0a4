"""One's own data and networks for the tests of experiments, named on the command line as `own_parts:blobs`."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
from torch import nn

from badge.core.rng import derive
from badge.data import Dataset
from badge.outputs import Outputs

CLASSES = 3
MADE = threading.local()


def blobs(seed: int) -> Dataset:
    """Three overlapping clouds in the plane: 90 training and 60 test examples."""
    rng = derive(seed, "blobs")
    y = rng.integers(CLASSES, size=150)
    x = rng.normal(size=(150, 2)).astype(np.float32) + 1.5 * np.stack([y == 1, y == 2], axis=1)
    return Dataset(x[:90], y[:90], x[90:], y[90:], classes=CLASSES, name="blobs", lr=0.02, total=1000)


def deadly(seed: int) -> Dataset:
    """Data that take the worker down with them, but not the process that asks whether they are there."""
    if os.environ.get("BADGE_TEST_PARENT") != str(os.getpid()):
        os._exit(7)
    return blobs(seed)


def broken(seed: int) -> Dataset:
    if os.environ.get("BADGE_TEST_PARENT") != str(os.getpid()):
        raise ZeroDivisionError("the data are broken")
    return blobs(seed)


def small(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 8), nn.ReLU(), nn.Linear(8, classes))


def slow(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Slow enough to be caught at work."""
    time.sleep(0.02)
    return small(shape, classes)


def held(shape: tuple[int, ...], classes: int) -> nn.Module:
    """The model of a second round, and each after it, waits while the working folder holds a file `shut`.

    A thread that runs a cell makes one model to look at it, and one for each round.
    """
    MADE.models = getattr(MADE, "models", 0) + 1
    while MADE.models > 2 and Path("shut").exists():
        time.sleep(0.02)
    return small(shape, classes)


def lowest(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> np.ndarray:
    """One's own strategy: the first k."""
    return np.arange(k)


class Counting:
    """One with memory: how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> np.ndarray:
        self.asked += 1
        return np.arange(self.asked, self.asked + k) % len(outputs)

    def picked(self, ids: np.ndarray) -> None: ...

    def observe(self, ids: np.ndarray, correct: np.ndarray) -> None: ...

    def state(self) -> dict[str, int]:
        return {"asked": self.asked}

    def restore(self, state: dict[str, int]) -> None:
        self.asked = state["asked"]
