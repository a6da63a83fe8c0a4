"""Strategies: which k examples to label next, given what the model says. A strategy is an embedding and a sampler.

`strategy(outputs, k, rng, labeled=None)` gives k distinct positions into `outputs`. `badge.core.catalog` is the table of all
strategies, `protocol` says what a strategy declares and what one with memory has besides, `registry` finds one by its name.
"""

from badge.strategies.albl import ALBL
from badge.strategies.protocol import Stateful, Strategy, declaration, declare
from badge.strategies.registry import NAMES, PAPER, get

__all__ = ["ALBL", "NAMES", "PAPER", "Stateful", "Strategy", "declaration", "declare", "get"]
