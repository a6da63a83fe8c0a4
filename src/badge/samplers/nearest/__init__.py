"""The nearest centre of every row, as bounds that are only tightened where it pays."""

from badge.samplers.nearest.nearest import Nearest, among

__all__ = ["Nearest", "among"]
