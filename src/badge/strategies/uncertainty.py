"""Uncertainty sampling: the k examples about which the model is least sure; and the uniform baseline.

Of multi-label outputs, labels being independent given the example:

    conf     smallest probability of the predicted set of labels, Π max(p_l, 1 − p_l)
    marg     smallest margin |2 p_l − 1| of any label ("binary minimum", Brinker 2006): the least certain decision
    entropy  largest entropy of the set of labels, which is the sum of the labels' entropies
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.outputs import Outputs
from badge.samplers.checks import check_k
from badge.samplers.topk import topk_by
from badge.strategies.protocol import declare

__all__ = ["conf", "entropy", "marg", "rand"]


@declare(reads="probabilities")
def conf(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> NDArray[np.int64]:
    """Confidence sampling: smallest max_i p_i.

    >>> import numpy as np
    >>> from badge import Outputs
    >>> conf(Outputs([[0.9, 0.1], [0.6, 0.4]], [[1.0], [1.0]]), 1, np.random.default_rng(0)).tolist()
    [1]
    """
    return _highest(outputs, lambda p: -p.amax(dim=1), lambda q: -q.log().sum(dim=1), k, rng)


@declare(reads="probabilities")
def marg(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> NDArray[np.int64]:
    """Margin sampling: smallest p_ŷ − p_y', the difference of the two largest probabilities."""

    def margin(p: Tensor) -> Tensor:
        two = p.topk(2, dim=1).values
        return two[:, 1] - two[:, 0]

    return _highest(outputs, margin, lambda q: 1 - 2 * q.amin(dim=1), k, rng)


@declare(reads="probabilities")
def entropy(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> NDArray[np.int64]:
    """Entropy sampling: largest Σ p_i ln 1/p_i."""

    def total(p: Tensor) -> Tensor:
        entropies: Tensor = torch.special.entr(p.clamp(min=0))
        return entropies.sum(dim=1)

    return _highest(outputs, total, lambda q: total(q) + total(1 - q), k, rng)


@declare(reads="nothing")
def rand(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> NDArray[np.int64]:
    """The naive baseline: k examples uniformly, without replacement."""
    k = check_k(k, len(outputs))
    return rng.choice(len(outputs), size=k, replace=False).astype(np.int64)


def _highest(
    outputs: Outputs,
    score: Callable[[Tensor], Tensor],
    of_labels: Callable[[Tensor], Tensor],
    k: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The k rows of probabilities of highest `score`.

    `of_labels` is its form for multi-label outputs, a function of each label's larger probability max(p_l, 1 − p_l).
    """
    multilabel = outputs.multilabel

    def of_rows(p: Tensor) -> Tensor:
        if multilabel:
            return of_labels(torch.maximum(p, 1 - p).clamp(max=1))
        return score(torch.cat([1 - p, p], dim=1) if p.shape[1] == 1 else p)  # binary: the other class is implied

    return topk_by(of_rows, outputs.probabilities, k, rng)
