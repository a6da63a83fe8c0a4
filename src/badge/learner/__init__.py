"""Ask and tell: the loop, its ledger and its classes."""

from badge.learner.learner import ActiveLearner

__all__ = ["ActiveLearner"]
