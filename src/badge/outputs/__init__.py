"""What a model said about a pool: in memory, or on disk and memory-mapped."""

from badge.outputs.outputs import Outputs

__all__ = ["Outputs"]
