"""Pools that outgrow one machine: prediction, selection and experiments on a Ray cluster, with the picks of one machine.

Attributes load lazily: a worker that compares names of rows need not load torch for it.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["predict", "select", "select_from"]

if TYPE_CHECKING:
    from badge.cluster.predicting import predict
    from badge.cluster.selecting import select, select_from


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'badge.cluster' has no attribute {name!r}")
    module = "predicting" if name == "predict" else "selecting"
    value = getattr(importlib.import_module(f"badge.cluster.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
