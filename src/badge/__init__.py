"""badge: which examples to label next. Deep batch active learning by diverse gradient embeddings (ICLR 2020).

Attributes load lazily, so that `import badge` is instant and works where torch is not installed.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

#: public name -> the module that defines it (None: the module of that name itself)
_HOME: dict[str, str | None] = {
    "ActiveLearner": "badge.learner",
    "Dense": "badge.features",
    "Explanation": "badge.strategies.explain",
    "Factored": "badge.features",
    "Outputs": "badge.outputs",
    "Trainer": "badge.training",
    "cluster": None,
    "data": None,
    "errors": None,
    "experiment": None,
    "explain": "badge.strategies.explain",
    "gradient_embedding": "badge.features",
    "journal": None,
    "labelling": None,
    "networks": "badge.training",
    "predict": "badge.models",
    "report": None,
    "samplers": None,
    "select": "badge.models",
    "select_from": "badge.strategies.choose",
    "stats": None,
    "strategies": None,
    "testing": None,
    "training": None,
}

__all__ = [
    "ActiveLearner", "Dense", "Explanation", "Factored", "Outputs", "Trainer", "cluster", "data", "errors",
    "experiment", "explain", "gradient_embedding", "journal", "labelling", "networks", "predict", "report",
    "samplers", "select", "select_from", "stats", "strategies", "testing", "training",
]  # fmt: skip

if TYPE_CHECKING:
    from badge import (
        cluster,
        data,
        errors,
        experiment,
        journal,
        labelling,
        report,
        samplers,
        stats,
        strategies,
        testing,
        training,
    )
    from badge.features import Dense, Factored, gradient_embedding
    from badge.learner import ActiveLearner
    from badge.models.predict import predict, select
    from badge.outputs import Outputs
    from badge.strategies.choose import select_from
    from badge.strategies.explain import Explanation, explain
    from badge.training import Trainer, networks


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'badge' has no attribute {name!r}")
    home = _HOME[name]
    value = importlib.import_module(f"badge.{name}") if home is None else getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
