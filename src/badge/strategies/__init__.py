"""Strategies: which k examples to label next, given what the model says. A strategy is an embedding and a sampler.

    badge         k-means++ on gradient embeddings                          (the paper's algorithm 1)
    coreset       furthest-first on embeddings, conditioned on the labelled (Sener & Savarese 2018)
    conf          smallest probability of the predicted class               (Wang & Shang 2014)
    marg          smallest margin between the two largest probabilities     (Roth & Small 2006)
    entropy       largest entropy of the predicted probabilities            (Wang & Shang 2014)
    albl          a bandit over coreset and conf                            (Hsu & Lin 2015)
    rand          uniform
    kdpp          a k-DPP on gradient embeddings                            (the paper's ablation)
    kcenter-grad  furthest-first on gradient embeddings                     (the paper's ablation)

Protocol: `strategy(outputs, k, rng, labeled=None)` gives k distinct positions into `outputs`; `needs_labeled` tells whether
it wants the `Outputs` of the labelled examples. Strategies with memory also have `picked`, `observe`, `state`, `restore`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from badge.core.importing import imported
from badge.errors import InputError, UnknownNameError
from badge.outputs import Outputs
from badge.strategies.albl import ALBL
from badge.strategies.coreset import coreset
from badge.strategies.gradient import badge, kcenter_grad, kdpp
from badge.strategies.uncertainty import conf, entropy, marg, rand

__all__ = ["ALBL", "NAMES", "PAPER", "Strategy", "get"]


class Strategy(Protocol):
    """What `select_from` and the learner call."""

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]: ...


#: name -> a function that makes a fresh strategy. The first seven are those of the paper's main comparison.
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
}
NAMES = list(REGISTRY)
PAPER = NAMES[:7]


def get(strategy: str | Strategy) -> Strategy:
    """The strategy of a name (a fresh one where it has memory), one's own "package.module:function", or the object itself.

    >>> from badge import strategies
    >>> strategies.get("nope")
    Traceback (most recent call last):
    badge.errors.UnknownNameError: unknown strategy 'nope'; known: badge, coreset, conf, marg, entropy, albl, rand, ...
    """
    if isinstance(strategy, str):
        if ":" in strategy:  # one's own; a class is one with memory, of which each run needs its own
            found = imported("strategy", strategy)
            return cast(Strategy, found() if isinstance(found, type) else found)
        if strategy not in REGISTRY:
            raise UnknownNameError("strategy", strategy, [*NAMES, "or your own as package.module:function"])
        return REGISTRY[strategy]()
    if not callable(strategy):
        raise InputError(f"a strategy is a name or a callable (outputs, k, rng, labeled=None), not {strategy!r}")
    return strategy
