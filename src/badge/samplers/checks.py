"""What every sampler checks at its door."""

from __future__ import annotations

import numpy as np

from badge.errors import InputError

__all__ = ["check_k"]


def check_k(k: int, n: int) -> None:
    """k must be a whole number from 1 to n."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number, not {k!r}")
    if k < 1:
        raise InputError(f"asked for {k} examples: k must be at least 1")
    if k > n:
        raise InputError(f"asked for {k} of {n} candidates: k must be at most {n}")
