"""`choose`: from a request and outputs to picks. Every door ends here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.core.arrays import as_array
from badge.core.rows import Remaining, loaded, narrowed
from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies.protocol import Strategy
from badge.strategies.request import Request


def select_from(
    outputs: Outputs,
    k: int,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Outputs | None = None,
    exclude: Any = None,
    bias: bool = False,
) -> NDArray[np.int64]:
    """Pick the k examples to label next, from the outputs of a model.

    Args:
        outputs: the model's outputs for the pool.
        k: the number of examples to pick.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or a callable (outputs, k, rng,
            labeled=None) -> positions.
        seed: the same seed gives the same picks; None draws a new seed.
        labeled: the outputs of the labelled examples, for strategies that use them.
        exclude: positions that have labels already, or a mask of them. They are never picked. Without `labeled`, they are
            the labelled examples.
        bias: include the gradient of the output layer's bias (strategies on gradient embeddings).

    Returns:
        k distinct positions in the pool, int64, in pick order.

    Raises:
        InputError: an argument is invalid, or k is larger than the number of candidates.
        UnknownNameError: no strategy has this name.

    >>> import badge, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> out = badge.Outputs.from_logits(rng.normal(size=(100, 3)), rng.normal(size=(100, 8)))
    >>> ids = badge.select_from(out, k=5, exclude=[0, 1, 2])
    >>> len(set(ids.tolist())), bool((ids > 2).all())
    (5, True)
    """
    if not isinstance(outputs, Outputs):
        raise InputError(f"outputs must be badge.Outputs, not {type(outputs).__name__}; for a model use badge.select")
    check_labeled(labeled)
    return choose(Request.of(strategy, k, len(outputs), seed, labeled, exclude, bias), outputs)


def choose(request: Request, outputs: Outputs | None) -> NDArray[np.int64]:
    """What the strategy picks among the remaining rows of `outputs`; None is enough for one that reads nothing."""
    seen, labeled, left = Outputs.unread(len(request.left)), None, request.left
    if outputs is not None and request.declared.reads:
        seen, labeled = given_to(request, outputs)
    picks = checked(request.strategy(seen, request.k, request.rng, labeled=labeled), request.k, len(left))
    return left.positions(picks)


def given_to(request: Request, outputs: Outputs) -> tuple[Outputs, Outputs | None]:
    """What the strategy of a request is given: the remaining rows, as it reads them, and the labelled examples."""
    declared, left, labeled = request.declared, request.left, None
    check_one_model(outputs, request.labeled)
    if declared.labeled != "no":
        labeled = request.labeled
        if labeled is None and isinstance(left, Remaining):
            labeled = outputs[left.excluded]
        labeled = labeled or None  # an empty set counts as no labelled examples
    ready = loaded if declared.blocks else lambda rows: rows[:]
    return outputs.only(declared.reads).map(lambda rows: ready(narrowed(rows, left))), labeled


def check_labeled(labeled: Any) -> None:
    if labeled is not None and not isinstance(labeled, Outputs):
        raise InputError(f"labeled must be badge.Outputs of the labelled examples, not {type(labeled).__name__}")


def check_one_model(outputs: Outputs, labeled: Outputs | None) -> None:
    both = [one for one in (labeled, outputs) if one is not None]
    widths = [(one.embeddings.shape[1], "embedding columns") for one in both if one.has_embeddings]
    classes = [(one.classes, "labels" if one.multilabel else "classes") for one in both if one.has_probabilities]
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
