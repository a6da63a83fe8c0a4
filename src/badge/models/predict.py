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
    """Run a model once over a pool, and return the probabilities and penultimate embeddings of every example.

    Args:
        model: a PyTorch or Hugging Face classifier, a fitted scikit-learn estimator or pipeline, or a skorch net. It runs
            in eval mode and is left unchanged.
        pool: a tensor, array or memmap; a Dataset or DataLoader; a datasets.Dataset; a list of texts, of pairs of texts or
            of items; a dict of columns; a table or column of pandas or polars. Labels are ignored: columns with the name of
            a label, and a number after an input.
        embeddings: None: return embeddings if the model has any (trees on NaN, categories or hashed texts have none). True:
            raise an error if it has none. False: return probabilities only, which is all that conf, marg and entropy need;
            the output layer need not be found. "only": return embeddings only. The embedding of a model without a head is
            its output, averaged over places or over the tokens that the attention mask keeps.
        out: a directory. The outputs are written there and memory-mapped. An interrupted pass resumes.
        {options}

    Returns:
        `Outputs` with probabilities [N, C] and embeddings [N, D], one row per example of the pool.

    Raises:
        InputError: an argument is invalid, or the pool is empty.
        ModelError: the output layer cannot be found (pass `head=`), or the model cannot run on the pool.

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
    """Pick the k examples of a pool to label next, from what a model predicts for them.

    Args:
        model: a PyTorch or Hugging Face classifier, a fitted scikit-learn estimator or pipeline, or a skorch net. It runs
            in eval mode and is left unchanged.
        pool: a tensor, array or memmap; a Dataset or DataLoader; a datasets.Dataset; a list of texts, of pairs of texts or
            of items; a dict of columns; a table or column of pandas or polars. Labels are ignored: columns with the name of
            a label, and a number after an input.
        k: the number of examples to pick.
        strategy: a name of `badge.strategies.NAMES`, "package.module:function", or a callable (outputs, k, rng,
            labeled=None) -> positions.
        seed: the same seed gives the same picks; None draws a new seed.
        labeled: the labelled examples, as a pool of any kind or as `Outputs`. coreset and albl need them, and strategies
            that cover the pool count them as covered.
        exclude: positions that have labels already, or a mask of them. They are never picked. Without `labeled`, they are
            the labelled examples.
        bias: include the gradient of the output layer's bias (strategies on gradient embeddings).
        out: a directory. The outputs are written there and memory-mapped. An interrupted pass resumes.
        {options}

    Returns:
        k distinct positions in the pool, int64, in pick order.

    Raises:
        InputError: an argument is invalid, or k is larger than the number of candidates.
        UnknownNameError: no strategy has this name.
        ModelError: the output layer cannot be found (pass `head=`), or the model cannot run on the pool.

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
