"""badge: which examples to label next. Deep batch active learning by diverse gradient embeddings (ICLR 2020).

Attributes load lazily, so that `import badge` is instant and works where torch is not installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

#: public name -> the module that defines it (None: the module of that name itself)
_HOME: dict[str, str | None] = {
    "ActiveLearner": "badge.learner",
    "Dense": "badge.features",
    "Explanation": "badge.explanation",
    "Factored": "badge.features",
    "Outputs": "badge.types",
    "Trainer": "badge.trainer",
    "data": None,
    "errors": None,
    "explain": "badge.explanation",
    "gradient_embedding": "badge.features",
    "predict": "badge.prediction",
    "samplers": None,
    "select": "badge.prediction",
    "select_from": "badge.selection",
    "stats": None,
    "strategies": None,
}

__all__ = [
    "ActiveLearner",
    "Dense",
    "Explanation",
    "Factored",
    "Outputs",
    "Trainer",
    "data",
    "errors",
    "explain",
    "gradient_embedding",
    "predict",
    "samplers",
    "select",
    "select_from",
    "stats",
    "strategies",
]

if TYPE_CHECKING:
    from badge import data, errors, samplers, stats, strategies
    from badge.explanation import Explanation, explain
    from badge.features import Dense, Factored, gradient_embedding
    from badge.learner import ActiveLearner
    from badge.prediction import predict, select
    from badge.selection import select_from
    from badge.trainer import Trainer
    from badge.types import Outputs


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'badge' has no attribute {name!r}")
    home = _HOME[name]
    value = importlib.import_module(f"badge.{name}") if home is None else getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
