"""From the name of a strategy to the strategy: `get`. Importing this module registers every strategy of ours."""

import inspect
from functools import partial
from typing import cast

from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES, check_bias, check_name
from badge.core.importing import imported
from badge.core.numbers import flag
from badge.errors import InputError
from badge.strategies import albl, auto, bait, bald, cold, coreset, coverage, gradient, uncertainty, wkmeans  # noqa: F401
from badge.strategies.protocol import REGISTRY, Stateful, Strategy, title, unwrapped

#: The names of all strategies.
NAMES = list(STRATEGIES)
#: Those that the paper compares.
PAPER = list(PAPER_STRATEGIES)
CALL = "(outputs, k, rng, labeled=None)"


def get(strategy: str | Strategy, bias: bool = False) -> Strategy:
    """Look up a strategy. A strategy with memory is new on every call.

    Args:
        strategy: a name, "package.module:function", or an object, which is returned unchanged.
        bias: include the gradient of the output layer's bias (strategies on gradient embeddings).

    Returns:
        A callable (outputs, k, rng, labeled=None) -> positions.

    Raises:
        UnknownNameError: no strategy has this name.
        InputError: `bias` is set and the strategy has no such option.

    >>> from badge import strategies
    >>> strategies.get("nope")
    Traceback (most recent call last):
    badge.errors.UnknownNameError: unknown strategy 'nope'; known: badge, coreset, conf, marg, entropy, albl, rand, ...
    """
    name = strategy
    if isinstance(strategy, str):
        check_name(strategy)
        found = imported("strategy", strategy) if ":" in strategy else REGISTRY[strategy]
        strategy = cast(Strategy, found() if isinstance(found, type) else found)  # a class has memory: each run its own
    if not isinstance(name, str) or ":" in name:
        _check_own(name, strategy)
    if not flag(bias, "bias"):
        return strategy
    check_bias(title(name), "bias" in inspect.signature(strategy).parameters)
    with_bias: Strategy = partial(strategy, bias=True)  # type: ignore[call-arg]  # it was just looked up
    return with_bias


def _check_own(name: object, strategy: object) -> None:
    """Refuse what cannot be called as a strategy."""
    if not callable(strategy):
        raise InputError(f"a strategy is a name or a callable {CALL}, not {name!r}")
    shown = name if isinstance(name, str) else title(strategy)
    base, places, options = unwrapped(strategy)
    if "labeled" in options:
        raise InputError(f"labeled is given with every call: leave it out of the partial of {shown}")
    if base is not strategy and isinstance(base, Stateful):
        raise InputError(f"{shown} has a memory, which a partial of it hides: pass the object itself")
    try:
        takes = inspect.signature(base)
    except ValueError:  # one that does not tell
        return
    try:
        takes.bind(*places, None, 1, None, labeled=None, **options)
    except TypeError as error:
        if not options:
            raise InputError(f"a strategy is called as {CALL}, and {shown} takes {takes}") from None
        known = ", ".join(takes.parameters)
        raise InputError(f"a partial of {shown} cannot be called as {CALL}: {error}; {shown} takes {known}") from None
