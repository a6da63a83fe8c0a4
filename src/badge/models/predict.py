"""Any model in: `predict` runs a classifier once over a pool, `select` picks what to label next from what it says."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from badge.models.one_pass import Pass
from badge.models.options import Embeddings, Options, PassOptions, takes_options
from badge.models.pools import length
from badge.outputs import Outputs
from badge.strategies.bald import check_one_answer
from badge.strategies.choose import choose
from badge.strategies.protocol import Declaration, Strategy, declaration
from badge.strategies.registry import get
from badge.strategies.request import Request

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes_options(PassOptions)
def predict(
    model: Any,
    pool: Any,
    *,
    embeddings: Embeddings = None,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[PassOptions],
) -> Outputs:
    """Probabilities and penultimate embeddings of every example of a pool: one pass, in eval mode, without labels.

    Args:
        model: a PyTorch or Hugging Face classifier, a fitted scikit-learn estimator or pipeline, or a skorch net. It is
            afterwards exactly as it was before.
        pool: a tensor, array or memmap; a Dataset or DataLoader; a datasets.Dataset; a list of texts, of pairs of texts or
            of items; a dict of columns; a table or column of pandas or polars. Labels are ignored: what is named so, and
            a number behind an input.
        embeddings: False: probabilities alone, which is all that conf, marg and entropy look at; an output layer need not
            be found then. None: where there are any (trees on NaN, categories or hashed texts have none). True: an error
            where there are none. "only": no probabilities; of a model without a head what it returns is the embedding,
            the mean over tokens (those under the attention mask) or places.
        out: a directory: outputs are memory-mapped there, and an interrupted pass goes on where it stopped.
        {options}

    Returns:
        Probabilities [N, C] and embeddings [N, D], a row per example of the pool.

    Raises:
        InputError: an argument cannot mean anything, or the pool is empty.
        ModelError: the output layer cannot be found (pass `head=`), or the model cannot be run on the pool.

    >>> import badge, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> badge.predict(net, torch.zeros(100, 4))
    Outputs(100 examples, 3 probability columns, 8 embedding columns)
    """
    return Pass.of(model, pool, Options.of("predict", PassOptions, options, embeddings)).outputs(out)


@takes_options(PassOptions)
def select(
    model: Any,
    pool: Any,
    k: int,
    *,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Any = None,
    exclude: Any = None,
    bias: bool = False,
    out: str | os.PathLike[str] | None = None,
    **options: Unpack[PassOptions],
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions in `pool` of the k examples to label next, in the order in which they were picked.

    Args:
        model: a PyTorch or Hugging Face classifier, a fitted scikit-learn estimator or pipeline, or a skorch net. It is
            afterwards exactly as it was before.
        pool: a tensor, array or memmap; a Dataset or DataLoader; a datasets.Dataset; a list of texts, of pairs of texts or
            of items; a dict of columns; a table or column of pandas or polars. Labels are ignored: what is named so, and
            a number behind an input.
        k: number of examples to pick.
        strategy: a name, or any callable (outputs, k, rng, labeled=None) -> positions.
        seed: a whole number: the same picks each time. None: other picks each time.
        labeled: the examples that have labels, as a pool of any kind or as `Outputs`: coreset and albl
            need them, and strategies that cover the pool count them as covered.
        exclude: positions of the pool that may not be picked, or a mask of them.
        bias: count the gradient of the output layer's bias too (strategies on gradient embeddings).
        out: a directory for the outputs, which are memory-mapped there; an interrupted pass goes on where it stopped.
        {options}

    Returns:
        k distinct positions, int64.

    Raises:
        InputError: an argument cannot mean anything; k is above the number of examples that may be picked.
        UnknownNameError: there is no strategy of this name.
        ModelError: the output layer cannot be found (pass `head=`), or the model cannot be run on the pool.

    >>> import badge, torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> ids = badge.select(net, torch.randn(100, 4), k=5, seed=0)
    >>> ids.shape, ids.dtype
    ((5,), dtype('int64'))
    """
    chosen = get(strategy, bias)
    declared = declaration(chosen)
    how = Options.of("select", PassOptions, options, _embeddings(declared, on_disk=out is not None))
    if not declared.reads and out is None:
        return choose(Request.of(chosen, k, length(pool), seed, labeled, exclude), None)
    one_pass = Pass.of(model, pool, how)
    # an error comes before the pass, not after it
    request = Request.of(chosen, k, one_pass.rows, seed, labeled, exclude)
    if not one_pass.several:
        check_one_answer(chosen)
    outputs = one_pass.outputs(out)
    if labeled is not None and not isinstance(labeled, Outputs):
        request = replace(request, labeled=Pass.of(model, labeled, how).outputs())
    return choose(request, outputs)


def _embeddings(declared: Declaration, on_disk: bool) -> Embeddings:
    """Which embeddings a pass computes for a strategy; outputs on disk keep them for strategies to come."""
    if "embeddings" not in declared.reads:
        return None if on_disk else False
    if not declared.blocks:
        return None
    return True if "probabilities" in declared.reads else "only"
