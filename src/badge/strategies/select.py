"""`select_from`: the one door from a model's outputs to positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import CHUNK_BYTES, as_index
from badge.core.rng import generator
from badge.errors import InputError
from badge.outputs import Outputs
from badge.samplers.checks import check_k
from badge.strategies import Strategy, get

__all__ = ["select_from"]


def select_from(
    outputs: Outputs,
    k: int,
    strategy: str | Strategy = "badge",
    seed: int | None = 0,
    labeled: Outputs | None = None,
    exclude: Any = None,
) -> NDArray[np.int64]:
    """The k examples to label next: distinct int64 positions into `outputs`, in pick order.

    `strategy`: a name (badge, coreset, conf, marg, entropy, albl, rand, kdpp, kcenter-grad) or an object. `labeled`: the
    outputs of the labelled examples, for those that are conditioned on them. `exclude`: positions that have labels
    already; they are never picked, and stand in for `labeled` where that is not given. Same seed, same answer;
    seed=None draws one.

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
    if labeled is not None and labeled.embeddings.shape[1] != outputs.embeddings.shape[1]:
        raise InputError(
            f"labeled has {labeled.embeddings.shape[1]} embedding columns and the pool {outputs.embeddings.shape[1]}: "
            "both must come from one model"
        )
    chosen, rng = get(strategy), generator(seed)
    n = len(outputs)
    check_k(k, n)
    done = torch.unique(as_index([] if exclude is None else exclude, n))
    if not len(done):
        return _checked(chosen(outputs, k, rng, labeled=labeled), k, n)
    outside = done[(done < 0) | (done >= n)]
    if len(outside):
        raise InputError(f"exclude holds {int(outside[0])}: positions go from 0 to {n - 1}")
    keep = torch.ones(n, dtype=torch.bool)
    keep[done] = False
    left = keep.nonzero()[:, 0]
    if k > len(left):
        raise InputError(f"asked for {k} of {len(left)} candidates: {n} in the pool, {len(done)} excluded")
    if labeled is None and getattr(chosen, "needs_labeled", False):
        labeled = outputs[done]
    # A strategy of one's own is given tensors; ours read rows as they need them.
    ours = getattr(chosen, "__module__", "").startswith("badge.strategies.")
    rest = _take(outputs, left) if ours else outputs[left]
    return left.numpy()[_checked(chosen(rest, k, rng, labeled=labeled), k, len(left))]


def _checked(picks: Any, k: int, n: int) -> NDArray[np.int64]:
    """A strategy of one's own may be wrong: its answer must be k distinct positions."""
    ids = np.asarray(picks, dtype=np.int64)
    if ids.shape != (k,) or len(np.unique(ids)) != k or ids.min() < 0 or ids.max() >= n:
        raise InputError(
            f"the strategy returned {ids[:10].tolist()}… where {k} distinct positions below {n} were asked for"
        )
    return ids


def _take(outputs: Outputs, ids: Tensor) -> Outputs:
    """The rows `ids`: a copy where that is small, else a view that gathers rows as they are asked for."""
    ids = ids.to(outputs.device)
    if outputs.embeddings.numel() * outputs.embeddings.element_size() <= CHUNK_BYTES:
        return outputs[ids]
    views: Any = [View(outputs.probabilities, ids), View(outputs.embeddings, ids)]
    return Outputs.trusted(*views)


class View:
    """Rows of a large tensor by position, gathered block by block, so that a memory-mapped pool stays on disk."""

    def __init__(self, base: Tensor, ids: Tensor) -> None:
        self.base, self.ids = base, ids
        self.shape, self.dtype, self.device = torch.Size((len(ids), base.shape[1])), base.dtype, base.device
        self.ndim = 2

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, ids: slice | Tensor) -> Tensor:
        return self.base.index_select(0, self.ids[ids])

    def index_select(self, dim: int, ids: Tensor) -> Tensor:
        return self.base.index_select(dim, self.ids[ids])

    def numel(self) -> int:
        return self.shape.numel()

    def element_size(self) -> int:
        return self.base.element_size()
