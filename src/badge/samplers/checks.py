"""What every sampler checks at its door."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar, cast

import numpy as np
import torch

from badge.core.numbers import whole
from badge.core.rng import check_rng
from badge.errors import InputError
from badge.features import Features
from badge.features.rows import check_features

Sampler = TypeVar("Sampler", bound=Callable[..., Any])


def check_k(k: Any, n: int) -> int:
    """`k` as a Python int from 1 to n."""
    number = whole(k, "k")
    if number > n:
        raise InputError(f"asked for {number} of {n} candidates: k must be at most {n}")
    return number


def sampler(function: Sampler) -> Sampler:
    """A decorator that checks the arguments of a sampler and turns autocast and autograd off.

    Products in half precision would rule out rows wrongly, and autograd's notes on many small steps take time.
    """

    @functools.wraps(function)
    def outside(features: Features, k: int, rng: np.random.Generator, *args: Any, **kwargs: Any) -> Any:
        check_features(features)
        k = check_k(k, len(features))
        check_rng(rng)
        kind = features.device.type
        off = torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
        with torch.inference_mode(), off:
            return function(features, k, rng, *args, **kwargs)

    return cast(Sampler, outside)
