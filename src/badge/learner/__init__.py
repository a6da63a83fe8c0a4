"""Ask and tell: the loop, its ledger and its classes. `ActiveLearner` loads when it is asked for: journals need no torch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from badge.learner.learner import ActiveLearner

__all__ = ["ActiveLearner"]


def __getattr__(name: str) -> Any:
    if name != "ActiveLearner":
        raise AttributeError(f"module 'badge.learner' has no attribute {name!r}")
    from badge.learner.learner import ActiveLearner

    return ActiveLearner
