"""The names of the strategies, in the order in which tables and legends show them.

They stand apart from `badge.strategies` because that needs torch; statistics and report do not.
"""

from __future__ import annotations

__all__ = ["PAPER_STRATEGIES", "REFERENCE", "STRATEGIES"]

#: Every strategy of the registry, in the order in which tables and legends show them.
STRATEGIES: tuple[str, ...] = (
    "badge",
    "coreset",
    "conf",
    "marg",
    "entropy",
    "albl",
    "rand",
    "kdpp",
    "kcenter-grad",
)

#: The seven that the paper's matrices and curves compare; the other two are its ablations.
PAPER_STRATEGIES: tuple[str, ...] = STRATEGIES[:7]

#: The baseline that budgets, normalised errors and saved labels refer to.
REFERENCE = "rand"
