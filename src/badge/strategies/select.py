"""`select_from`: the one door from a model's outputs to positions; the learner goes through `choose` too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import CHUNK_BYTES, RowSource, as_array, as_index
from badge.core.rng import generator
from badge.errors import InputError
from badge.outputs import Outputs
from badge.samplers.checks import check_k
from badge.strategies.protocol import Strategy, needs_labeled, reads, wants_labeled
from badge.strategies.registry import get

__all__ = ["candidates", "check_one_model", "checked", "choose", "excluded", "request", "select_from"]

IntArray = NDArray[np.int64]


def select_from(
    outputs: Outputs,
    k: int,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Outputs | None = None,
    exclude: Any = None,
    bias: bool = False,
) -> IntArray:
    """The k examples to label next: distinct int64 positions into `outputs`, in pick order.

    `strategy`: a name (badge, coreset, conf, marg, entropy, albl, rand, kdpp, kcenter-grad, kmeanspp, typiclust) or an
    object. `labeled`: the outputs of the labelled examples, for those that are conditioned on them. `exclude`: positions
    that have labels already; they are never picked, and stand in for `labeled` where that is not given. Same seed, same
    answer; seed=None draws one. `bias=True`: badge, kdpp and kcenter-grad look at the gradient of the output bias too,
    which the paper's models do not have and which is left out otherwise.

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
    chosen, rng = request(strategy, seed, labeled, exclude, bias)
    k, left = candidates(k, len(outputs), exclude)
    if labeled is None and left is not None and wants_labeled(chosen):
        labeled = outputs[np.setdiff1d(np.arange(len(outputs)), left)]
    return choose(chosen, outputs, k, rng, left, labeled)


def request(
    strategy: str | Strategy, seed: int | None, labeled: Any, exclude: Any, bias: bool
) -> tuple[Strategy, np.random.Generator]:
    """The strategy and the generator that are asked for; what is wrong with them needs no outputs to be said."""
    chosen, rng = get(strategy, bias), generator(seed)
    if needs_labeled(chosen) and labeled is None and exclude is None:
        raise InputError(f"{strategy} is conditioned on the labelled examples: pass labeled=, or exclude=")
    return chosen, rng


def excluded(k: Any, n: int, exclude: Any) -> tuple[int, IntArray]:
    """`k` as an int, and the excluded ones of n positions, ascending; k others must be there."""
    done = torch.unique(as_index([] if exclude is None else exclude, n)).numpy()
    outside = done[(done < 0) | (done >= n)]
    if len(outside):
        raise InputError(f"exclude holds {int(outside[0])}: positions go from 0 to {n - 1}")
    k = check_k(k, n)
    if k > n - len(done):
        raise InputError(f"asked for {k} of {n - len(done)} candidates: {n} in the pool, {len(done)} excluded")
    return k, done


def candidates(k: Any, n: int, exclude: Any) -> tuple[int, IntArray | None]:
    """`k` as an int, and the positions that are left of n, ascending (None: all); k of them must be there."""
    k, done = excluded(k, n, exclude)
    if not len(done):
        return k, None
    keep = np.ones(n, dtype=bool)
    keep[done] = False
    return k, np.flatnonzero(keep)


def choose(
    strategy: Strategy,
    outputs: Outputs | int,
    k: int,
    rng: np.random.Generator,
    left: IntArray | None = None,
    labeled: Outputs | None = None,
) -> IntArray:
    """What a strategy picks among the rows `left` (None: all) of `outputs`, or of so many rows where it reads nothing."""
    n = outputs if isinstance(outputs, int) else len(outputs)
    if isinstance(outputs, int) or reads(strategy) == "nothing":
        seen = Outputs.unread(n if left is None else len(left))
    else:
        check_one_model(outputs, labeled)
        seen = _all_for(strategy, outputs) if left is None else _rows_for(strategy, outputs, left)
    picks = checked(strategy(seen, k, rng, labeled=labeled), k, len(seen))
    return picks if left is None else left[picks]


def check_one_model(outputs: Outputs, labeled: Outputs | None) -> None:
    if labeled is None or not (labeled.has_embeddings and outputs.has_embeddings):
        return
    if labeled.embeddings.shape[1] != outputs.embeddings.shape[1]:
        raise InputError(
            f"labeled has {labeled.embeddings.shape[1]} embedding columns and the pool {outputs.embeddings.shape[1]}: "
            "both must come from one model"
        )


def checked(picks: Any, k: int, n: int) -> IntArray:
    """A strategy of one's own may be wrong: its answer must be k distinct positions."""
    ids = as_array(picks, "the strategy's positions")
    if ids.dtype.kind not in "iu" or ids.shape != (k,) or len(np.unique(ids)) != k or ids.min() < 0 or ids.max() >= n:
        shown = str(ids.reshape(-1)[:6].tolist())[:80]
        raise InputError(
            f"the strategy returned {ids.dtype} of shape {ids.shape}, {shown}…, where {k} distinct positions (whole "
            f"numbers below {n}) were asked for"
        )
    return ids.astype(np.int64)


def _all_for(strategy: Strategy, outputs: Outputs) -> Outputs:
    """All rows; as tensors where the strategy wants them and the outputs are in parts."""
    return outputs.map(lambda x: x[:]) if reads(strategy) == "embeddings" else outputs


def _rows_for(strategy: Strategy, outputs: Outputs, left: IntArray) -> Outputs:
    """The rows `left` of what the strategy reads: a copy, or where it goes block by block and they are many, a view."""
    ids = torch.from_numpy(left).to(outputs.device)
    if reads(strategy) == "probabilities":
        outputs = Outputs.trusted(outputs.probabilities, None, multilabel=outputs.multilabel)
    if reads(strategy) == "vectors":
        outputs = Outputs.trusted(None, outputs.embeddings)
    widest = outputs.embeddings if outputs.has_embeddings else outputs.probabilities
    if reads(strategy) == "embeddings" or widest.shape.numel() * widest.dtype.itemsize <= CHUNK_BYTES:
        return outputs.map(lambda x: x.index_select(0, ids))
    return outputs.map(lambda x: View(x, ids))


class View:
    """Rows of a large tensor by position, gathered block by block, so that a memory-mapped pool stays on disk."""

    def __init__(self, base: RowSource, ids: Tensor) -> None:
        self.base, self.ids = base, ids
        self.shape, self.dtype, self.device = torch.Size((len(ids), *base.shape[1:])), base.dtype, base.device

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Tensor:
        return self.base.index_select(0, self.ids[rows])

    def index_select(self, dim: int, index: Tensor) -> Tensor:
        return self.base.index_select(dim, self.ids[index])
