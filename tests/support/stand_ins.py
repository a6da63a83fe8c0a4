"""Stand-ins for packages that pages of docs/ use and tests do without: just enough of each to run the page."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest
from torch import nn


class Trainer:
    """`lightning.Trainer`: fits with the module's own step and optimizer."""

    def __init__(self, max_epochs: int, **options: Any) -> None:
        self.max_epochs = max_epochs

    def fit(self, model: Any, loader: Any) -> None:
        optimizer = model.configure_optimizers()
        for _ in range(self.max_epochs):
            for number, batch in enumerate(loader):
                optimizer.zero_grad()
                model.training_step(batch, number).backward()
                optimizer.step()


class Run:
    """A run of wandb."""

    def log(self, values: dict[str, float]) -> None:
        assert values and all(isinstance(value, int | float) for value in values.values())

    def finish(self) -> None:
        pass


def log_metric(name: str, value: float, step: int | None = None) -> None:
    assert isinstance(name, str) and isinstance(value, int | float)


KNOWN: dict[str, dict[str, Any]] = {
    "lightning": {"LightningModule": nn.Module, "Trainer": Trainer},
    "mlflow": {"start_run": contextlib.nullcontext, "log_metric": log_metric},
    "wandb": {"init": lambda **options: Run()},
}


def stand_in(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in in the place of each package that a page imports and that is not installed."""
    for name, content in KNOWN.items():
        if f"\nimport {name}\n" in text and importlib.util.find_spec(name) is None:
            module = ModuleType(name)
            vars(module).update(content)
            monkeypatch.setitem(sys.modules, name, module)
