"""Any model in: one pass over any pool, and picks from what it said."""

from badge.models.predict import predict, select

__all__ = ["predict", "select"]
