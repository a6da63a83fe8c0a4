"""What a strategy is: a callable, what it declares of itself, and what one with memory has besides.

`reads` says what a strategy looks at, so that nothing else is computed, gathered or copied for it:

    "nothing"        how many candidates there are; the model does not run for it
    "probabilities"  the probabilities, row block by row block; there may be no embeddings
    "embeddings"     tensors of everything; what is assumed where a strategy declares nothing
    "blocks"         everything, row block by row block
    "vectors"        the embeddings, row block by row block; there may be no probabilities

Blocks are had from a `RowSource`, by a slice or by positions: `outputs.probabilities[a:b]`. Below some size that is a tensor
too, above it nothing but such blocks is ever in memory, so that a pool on disk stays there; `[:]` makes a tensor of all.
`needs_labeled` says that it wants the `Outputs` of the labelled examples; "if any", that it does without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from badge.errors import InputError
from badge.outputs import Outputs

__all__ = ["Reads", "Stateful", "Strategy", "declare", "needs_labeled", "reads", "wants_labeled"]

Reads = Literal["nothing", "probabilities", "embeddings", "blocks", "vectors"]


class Strategy(Protocol):
    """What `select_from` and the learner call: k distinct positions into `outputs`, in pick order."""

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]: ...


@runtime_checkable
class Stateful(Protocol):
    """A strategy that learns from what became of its batches; `albl` is one. The learner keeps its memory in the journal."""

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]: ...

    def picked(self, ids: NDArray[np.int64]) -> None:
        """The caller's own, stable ids of the batch that the last call chose, in its order."""

    def observe(self, ids: NDArray[np.int64], correct: NDArray[np.bool_]) -> None:
        """After training: the ids of the labelled examples, and whether the new model gets each right."""

    def state(self) -> dict[str, Any]:
        """Everything that it remembers, fit for JSON."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` gave."""


Callable_ = TypeVar("Callable_", bound=Callable[..., Any])


def declare(reads: Reads, needs_labeled: bool | Literal["if any"] = False) -> Callable[[Callable_], Callable_]:
    """A decorator that says of a strategy what it reads.

    >>> @declare(reads="probabilities")
    ... def first(outputs, k, rng, labeled=None):
    ...     return np.arange(k)
    >>> first.reads
    'probabilities'
    """

    def declared(strategy: Callable_) -> Callable_:
        vars(strategy).update(reads=reads, needs_labeled=needs_labeled)
        return strategy

    return declared


def reads(strategy: Strategy) -> Reads:
    """What a strategy says that it reads; one that says nothing is given tensors of everything."""
    found: Reads = getattr(strategy, "reads", "embeddings")
    if found not in get_args(Reads):
        raise InputError(f"a strategy reads {', '.join(map(repr, get_args(Reads)))}, not {found!r}")
    return found


def needs_labeled(strategy: Strategy) -> bool:
    """Whether a strategy cannot do without the outputs of labelled examples."""
    return getattr(strategy, "needs_labeled", False) is True


def wants_labeled(strategy: Strategy) -> bool:
    """Whether a strategy looks at the outputs of labelled examples where there are any."""
    return bool(getattr(strategy, "needs_labeled", False))
