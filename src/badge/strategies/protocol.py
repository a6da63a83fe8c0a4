"""What a strategy is: a callable, what it declares, and what one with memory has besides.

A strategy declares three things, so that nothing else is computed, gathered or copied for it:

    reads    which of "probabilities" and "embeddings" it looks at; with neither the model does not run
    blocks   it reads rows block by block, `outputs.embeddings[a:b]` or by positions; without this it is given tensors
    labeled  whether it is given the `Outputs` of the labelled examples: "no", "if any", or "required"

One that declares nothing is given everything: tensors of both, and the labelled outputs if there are any. With `blocks` a
pool on disk stays on disk, and `[:]` makes a tensor of all rows. A `functools.partial` of a strategy, which sets its options,
declares what the strategy declares.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from badge.core.catalog import BOTH, Labeled, Spec, names, spec
from badge.errors import InputError
from badge.outputs import Outputs

#: positions, in pick order
Picks = NDArray[np.int64]


class Strategy(Protocol):
    """A strategy: a callable that returns k distinct positions of `outputs`, in pick order.

    >>> import badge
    >>> def least_sure(outputs, k, rng, labeled=None):
    ...     return outputs.probabilities.amax(dim=1).argsort()[:k].numpy()
    >>> out = badge.Outputs([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]], [[1.0], [2.0], [3.0]])
    >>> badge.select_from(out, k=2, strategy=least_sure).tolist()
    [1, 2]
    """

    def __call__(self, outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
        """Pick k examples.

        Args:
            outputs: the model's outputs for the candidates.
            k: the number of examples to pick.
            rng: the generator for everything random.
            labeled: the outputs of the labelled examples, or None.
        """
        ...


@runtime_checkable
class Stateful(Strategy, Protocol):
    """A strategy that learns from the results of its batches, such as `albl`. The journal keeps its memory.

    >>> from badge.strategies import ALBL
    >>> isinstance(ALBL(rounds=20), Stateful)
    True
    """

    def picked(self, ids: NDArray[np.int64]) -> None:
        """Receive the ids of the batch that the last call picked, in pick order.

        Args:
            ids: the ids, [k]; `observe` uses the same ones.
        """

    def observe(self, ids: NDArray[np.int64], correct: NDArray[np.bool_]) -> None:
        """Receive, after each training, whether the new model is right about each labelled example.

        Args:
            ids: the ids of all labelled examples, [n].
            correct: whether the model is right about each, [n].
        """

    def state(self) -> dict[str, Any]:
        """The whole memory, as JSON values."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from an earlier `state()`.

        Args:
            state: the result of `state()`.
        """


@dataclass(frozen=True)
class Declaration:
    """What a strategy reads."""

    reads: frozenset[str] = BOTH
    blocks: bool = False
    labeled: Labeled = "if any"

    def __post_init__(self) -> None:
        if isinstance(self.reads, str) or not isinstance(self.reads, Iterable) or not BOTH.issuperset(self.reads):
            raise InputError(f"a strategy reads a set of {', '.join(sorted(BOTH))}, not {self.reads!r:.80}")
        if not isinstance(self.blocks, bool):
            raise InputError(f"a strategy's blocks is True or False, not {self.blocks!r:.80}")
        if self.labeled not in get_args(Labeled):
            said = ", ".join(map(repr, get_args(Labeled)))
            raise InputError(f"a strategy's labeled is one of {said}, not {self.labeled!r:.80}")
        object.__setattr__(self, "reads", frozenset(self.reads))


Made = TypeVar("Made", bound=Callable[..., Any])


def declare(reads: Iterable[str] = BOTH, blocks: bool = False, labeled: Labeled = "if any") -> Callable[[Made], Made]:
    """A decorator that declares what a strategy reads.

    Args:
        reads: a set of "probabilities" and "embeddings". For an empty set the model does not run.
        blocks: the strategy reads the pool in blocks of rows, so a pool on disk stays on disk.
        labeled: whether the strategy gets the outputs of the labelled examples: "no", "if any" or "required".

    Returns:
        The decorator.

    Raises:
        InputError: one of the three is invalid.

    >>> @declare(reads={"probabilities"}, blocks=True, labeled="no")
    ... def first(outputs, k, rng, labeled=None):
    ...     return np.arange(k)
    >>> declaration(first)
    Declaration(reads=frozenset({'probabilities'}), blocks=True, labeled='no')
    """
    said = Declaration(reads, blocks, labeled)  # type: ignore[arg-type]  # checked and frozen there

    def declared(strategy: Made) -> Made:
        for name, value in vars(said).items():
            setattr(strategy, name, value)
        return strategy

    return declared


def declaration(strategy: Any) -> Declaration:
    """The declaration of a strategy. A strategy that declares nothing reads everything.

    Args:
        strategy: any strategy, or a `functools.partial` of one.

    Returns:
        A `Declaration`: `reads`, `blocks`, `labeled`.

    >>> from badge import strategies
    >>> strategies.declaration(strategies.get("marg")).labeled
    'no'
    """
    said = {name: getattr(strategy, name) for name in ("reads", "blocks", "labeled") if hasattr(strategy, name)}
    return declaration(strategy.func) if not said and isinstance(strategy, partial) else Declaration(**said)


def unwrapped(strategy: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The strategy that a `functools.partial` calls, and the arguments that it sets: by place and by name.

    >>> unwrapped(partial(len, 3, beta=2))
    (<built-in function len>, (3,), {'beta': 2})
    """
    places: tuple[Any, ...] = ()
    options: dict[str, Any] = {}
    while isinstance(strategy, partial):
        strategy, places, options = strategy.func, (*strategy.args, *places), {**strategy.keywords, **options}
    return strategy, places, options


def check_one_label(outputs: Outputs, strategy: str) -> None:
    """Refuse multi-label outputs, for a strategy that has no form for them."""
    if outputs.multilabel:
        alike = ", ".join(names(lambda row: not row.multilabel))
        raise InputError(f"{strategy} is for one label per example: for multi-label outputs use any but {alike}")


def required(labeled: Outputs | None, strategy: str) -> Outputs:
    """The labelled examples, for a strategy that cannot do without them."""
    if labeled is None:
        what = f"{strategy} is conditioned on the labelled examples"
        raise InputError(what, in_python="pass labeled=, or exclude=")
    return labeled


#: name -> the strategy, or the class of one with memory; filled by `listed`
REGISTRY: dict[str, Any] = {}


def listed(name: str) -> Callable[[Made], Made]:
    """A decorator for the strategies of the table, which declares what their rows say."""
    row: Spec = spec(name)

    def found(strategy: Made) -> Made:
        REGISTRY[name] = strategy
        return declare(row.reads, row.blocks, row.labeled)(strategy)

    return found


def title(strategy: Any) -> str:
    """What a strategy is called in messages: its name, or that of its function or class."""
    strategy, *_ = unwrapped(strategy)
    own = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
    return next((name for name, listed in REGISTRY.items() if listed is strategy), own)
