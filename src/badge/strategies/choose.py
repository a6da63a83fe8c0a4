"""From a name and outputs to picks: `Request.of` checks what needs no model, and every door ends in `choose`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from badge.core.arrays import as_array, as_index
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES, check_bias, check_name
from badge.core.importing import imported
from badge.core.numbers import flag
from badge.core.rng import generator
from badge.core.rows import Listed, Remaining, loaded, narrowed
from badge.errors import InputError
from badge.outputs import Outputs
from badge.samplers.checks import check_k
from badge.strategies import albl, embeddings, gradient, uncertainty  # noqa: F401
from badge.strategies.protocol import REGISTRY, Declaration, Strategy, declaration, declare

#: The names of all strategies.
NAMES = list(STRATEGIES)
#: Those that the paper compares.
PAPER = list(PAPER_STRATEGIES)
CALL = "(outputs, k, rng, labeled=None)"


def get(strategy: str | Strategy, bias: bool = False) -> Strategy:
    """The strategy of a name (a fresh one where it has memory), a user's "package.module:function", or the object itself.

    Args:
        strategy: a name, "package.module:function", or the object itself.
        bias: look at the gradient of the output layer's bias too, with strategies that have this parameter.

    Returns:
        A callable (outputs, k, rng, labeled=None) -> positions.

    Raises:
        UnknownNameError: there is no strategy of this name.
        InputError: `bias` with a strategy that is not on gradients.

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
    check_bias(name, "bias" in inspect.signature(strategy).parameters)
    with_bias: Strategy = partial(strategy, bias=True)  # type: ignore[call-arg]  # it was just looked up
    return declare(**vars(declaration(strategy)))(with_bias)


def _check_own(name: object, strategy: object) -> None:
    """Refuse what cannot be called as a strategy."""
    if not callable(strategy):
        raise InputError(f"a strategy is a name or a callable {CALL}, not {name!r}")
    try:
        takes = inspect.signature(strategy)
    except ValueError:  # one that does not tell
        return
    try:
        takes.bind(None, 1, None, labeled=None)
    except TypeError:
        shown = name if isinstance(name, str) else getattr(strategy, "__name__", type(strategy).__name__)
        raise InputError(f"a strategy is called as {CALL}, and {shown} takes {takes}") from None


@dataclass(frozen=True, eq=False)
class Request:
    """k picks by `strategy` among the rows `left` of a pool; `labeled` are the labelled examples, if they were passed."""

    strategy: Strategy
    k: int
    rng: np.random.Generator
    left: Remaining | Listed
    labeled: Any = None

    @classmethod
    def of(
        cls,
        strategy: str | Strategy,
        k: Any,
        rows: int,
        seed: int | np.random.Generator | None = 0,
        labeled: Any = None,
        exclude: Any = None,
        bias: bool = False,
    ) -> Request:
        """The request for k picks from a pool of `rows` rows, or an error that says what is wrong with it.

        >>> Request.of("badge", 3, rows=10, exclude=range(8))
        Traceback (most recent call last):
        badge.errors.InputError: asked for 3 of 2 candidates: 10 in the pool, 8 excluded
        """
        rng = seed if isinstance(seed, np.random.Generator) else generator(seed)
        done = None if exclude is None else torch.unique(as_index(exclude, rows)).numpy()
        if done is not None and len(outside := done[(done < 0) | (done >= rows)]):
            raise InputError(f"exclude holds {int(outside[0])}: positions go from 0 to {rows - 1}")
        k, left = check_k(k, rows), Remaining(0, rows, done)
        if k > (n := len(left)):
            raise InputError(f"asked for {k} of {n} candidates: {rows} in the pool, {rows - n} excluded")
        request = cls(get(strategy, bias), k, rng, left, labeled)
        if request.declared.labeled == "required" and labeled is None and not len(left.excluded):
            name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
            raise InputError(f"{name} is conditioned on the labelled examples: pass labeled=, or exclude=")
        return request

    @cached_property
    def declared(self) -> Declaration:
        """What the strategy reads."""
        return declaration(self.strategy)


def select_from(
    outputs: Outputs,
    k: int,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Outputs | None = None,
    exclude: Any = None,
    bias: bool = False,
) -> NDArray[np.int64]:
    """The k examples to label next: distinct int64 positions into `outputs`, in pick order.

    Args:
        outputs: what a model says about the pool.
        k: number of examples to pick.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or an object.
        seed: the same seed gives the same picks; None draws one.
        labeled: the outputs of the labelled examples, for strategies that are conditioned on them.
        exclude: positions that have labels already, or a mask of them. They are never picked, and stand in for `labeled`
            where that is not given.
        bias: count the gradient of the output layer's bias too (strategies on gradient embeddings).

    Returns:
        k distinct positions, int64.

    Raises:
        InputError: an argument cannot mean anything; k is above the number of examples that may be picked.
        UnknownNameError: there is no strategy of this name.

    >>> import badge, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> out = badge.Outputs.from_logits(rng.normal(size=(100, 3)), rng.normal(size=(100, 8)))
    >>> ids = badge.select_from(out, k=5, exclude=[0, 1, 2])
    >>> len(set(ids.tolist())), bool((ids > 2).all())
    (5, True)
    """
    if not isinstance(outputs, Outputs):
        raise InputError(f"outputs must be badge.Outputs, not {type(outputs).__name__}; for a model use badge.select")
    if labeled is not None and not isinstance(labeled, Outputs):
        raise InputError(f"labeled must be badge.Outputs of the labelled examples, not {type(labeled).__name__}")
    return choose(Request.of(strategy, k, len(outputs), seed, labeled, exclude, bias), outputs)


def choose(request: Request, outputs: Outputs | None) -> NDArray[np.int64]:
    """What the strategy picks among the remaining rows of `outputs`; None is enough for one that reads nothing."""
    declared, left, labeled = request.declared, request.left, None
    if outputs is None or not declared.reads:
        seen = Outputs.unread(len(left))
    else:
        check_one_model(outputs, request.labeled)
        if declared.labeled != "no":
            labeled = request.labeled
            if labeled is None and isinstance(left, Remaining):
                labeled = outputs[left.excluded]
            labeled = labeled or None  # no rows are none
        ready = loaded if declared.blocks else lambda rows: rows[:]
        seen = outputs.only(declared.reads).map(lambda rows: ready(narrowed(rows, left)))
    picks = checked(request.strategy(seen, request.k, request.rng, labeled=labeled), request.k, len(left))
    return left.positions(picks)


def check_one_model(outputs: Outputs, labeled: Outputs | None) -> None:
    both = [of for of in (labeled, outputs) if of is not None]
    widths = [(of.embeddings.shape[1], "embedding columns") for of in both if of.has_embeddings]
    classes = [(of.classes, "labels" if of.multilabel else "classes") for of in both if of.has_probabilities]
    for found in (widths, classes):
        if len(set(found)) > 1:
            (mine, what), (pool, other) = found
            rest = pool if what == other else f"{pool} {other}"
            raise InputError(f"labeled has {mine} {what} and the pool {rest}: both must come from one model")


def checked(picks: Any, k: int, n: int) -> NDArray[np.int64]:
    """The picks, if they are k distinct positions: a user's strategy may be wrong."""
    ids = as_array(picks, "the strategy's positions")
    found = set(ids.tolist()) if ids.dtype.kind in "iu" and ids.shape == (k,) else ()
    if len(found) != k or min(found) < 0 or max(found) >= n:
        shown = str(ids.reshape(-1)[:6].tolist())[:80]
        asked = f"{k} distinct positions (whole numbers below {n}) were asked for"
        raise InputError(f"the strategy returned {ids.dtype} of shape {ids.shape}, {shown}…, where {asked}")
    return ids.astype(np.int64)
