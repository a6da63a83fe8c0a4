"""Names → strategies."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import cast

from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES, check_bias, check_name
from badge.core.importing import imported
from badge.core.numbers import flag
from badge.errors import InputError
from badge.strategies.albl import ALBL
from badge.strategies.cold import kmeanspp, typiclust
from badge.strategies.coreset import coreset
from badge.strategies.gradient import badge, kcenter_grad, kdpp
from badge.strategies.protocol import Strategy, declare, needs_labeled, reads
from badge.strategies.uncertainty import conf, entropy, marg, rand

__all__ = ["NAMES", "PAPER", "REGISTRY", "get"]

#: name -> a function that makes a fresh strategy
REGISTRY: dict[str, Callable[[], Strategy]] = {
    "badge": lambda: badge,
    "coreset": lambda: coreset,
    "conf": lambda: conf,
    "marg": lambda: marg,
    "entropy": lambda: entropy,
    "albl": ALBL,
    "rand": lambda: rand,
    "kdpp": lambda: kdpp,
    "kcenter-grad": lambda: kcenter_grad,
    "kmeanspp": lambda: kmeanspp,
    "typiclust": lambda: typiclust,
}
NAMES = list(STRATEGIES)
PAPER = list(PAPER_STRATEGIES)


def get(strategy: str | Strategy, bias: bool = False) -> Strategy:
    """The strategy of a name (a fresh one where it has memory), one's own "package.module:function", or the object itself.

    `bias=True`: on gradients with respect to the output bias too, for strategies that have a parameter of that name.

    >>> from badge import strategies
    >>> strategies.get("nope")
    Traceback (most recent call last):
    badge.errors.UnknownNameError: unknown strategy 'nope'; known: badge, coreset, conf, marg, entropy, albl, rand, ...
    """
    name = strategy
    if isinstance(strategy, str):
        strategy = _named(strategy)
    elif not callable(strategy):
        raise InputError(f"a strategy is a name or a callable (outputs, k, rng, labeled=None), not {strategy!r}")
    if not flag(bias, "bias"):
        return strategy
    check_bias(name, "bias" in inspect.signature(strategy).parameters)
    with_bias: Strategy = partial(strategy, bias=True)  # type: ignore[call-arg]  # it was just looked up
    return declare(reads(strategy), needs_labeled(strategy))(with_bias)


def _named(name: str) -> Strategy:
    if ":" in name:  # one's own; a class is one with memory, of which each run needs its own
        found = imported("strategy", name)
        return cast(Strategy, found() if isinstance(found, type) else found)
    check_name(name)
    return REGISTRY[name]()
