"""The names of the strategies, in the order in which tables and legends show them.

They stand apart from `badge.strategies` because that needs torch; statistics and report do not.
"""

from __future__ import annotations

from badge.errors import InputError, UnknownNameError

__all__ = [
    "COLD",
    "CONDITIONED",
    "ON_GRADIENTS",
    "PAPER_STRATEGIES",
    "REFERENCE",
    "STRATEGIES",
    "WITHOUT_EMBEDDINGS",
    "check_bias",
    "check_name",
]

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
    "kmeanspp",
    "typiclust",
)

#: The seven that the paper's matrices and curves compare; then come its ablations, and two for a cold start.
PAPER_STRATEGIES: tuple[str, ...] = STRATEGIES[:7]

#: The baseline that budgets, normalised errors and saved labels refer to.
REFERENCE = "rand"

#: Those that look at probabilities only, or at nothing.
WITHOUT_EMBEDDINGS = ("conf", "marg", "entropy", "rand")

#: Those that are conditioned on the labelled examples.
CONDITIONED = ("coreset", "albl")

#: Those for the first batch, before any label: they look at embeddings alone.
COLD = ("kmeanspp", "typiclust")

#: Those on gradient embeddings, which can have the gradient of the output bias too.
ON_GRADIENTS = ("badge", "kdpp", "kcenter-grad")


def check_name(strategy: str) -> None:
    """A name of the registry, or of the form package.module:function.

    >>> check_name("nope")
    Traceback (most recent call last):
    badge.errors.UnknownNameError: unknown strategy 'nope'; known: badge, coreset, conf, marg, entropy, albl, rand, ...
    """
    if strategy not in STRATEGIES and ":" not in strategy:
        raise UnknownNameError("strategy", strategy, [*STRATEGIES, "or your own as package.module:function"])


def check_bias(strategy: object, takes_bias: bool) -> None:
    """Only gradients have a part for the output bias."""
    if not takes_bias:
        raise InputError(
            f"bias is for strategies on gradients ({', '.join(ON_GRADIENTS)}): leave it out for {strategy}"
        )
