"""What every sampler checks at its door."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch

from badge.errors import InputError
from badge.features import Features

__all__ = ["check_k", "in_full_precision"]

Sampler = TypeVar("Sampler", bound=Callable[..., Any])


def check_k(k: int, n: int) -> None:
    """k must be a whole number from 1 to n."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number, not {k!r}")
    if k < 1:
        raise InputError(f"asked for {k} examples: k must be at least 1")
    if k > n:
        raise InputError(f"asked for {k} of {n} candidates: k must be at most {n}")


def in_full_precision(sampler: Sampler) -> Sampler:
    """The sampler, outside of any autocast: products in half precision would rule out what they should not."""

    @functools.wraps(sampler)
    def outside(features: Features, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(features.device.type, enabled=False):
            return sampler(features, *args, **kwargs)

    return cast(Sampler, outside)
