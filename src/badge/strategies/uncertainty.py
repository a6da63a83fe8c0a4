"""Uncertainty sampling: the k examples about which the model is least sure, or draws of them; and the uniform baseline.

For multi-label outputs, with labels independent given the example:

    conf     smallest probability of the predicted set of labels, Π max(p_l, 1 − p_l)
    marg     smallest margin |2 p_l − 1| of any label ("binary minimum", Brinker 2006): the least certain decision
    entropy  largest entropy of the set of labels, which is the sum of the labels' entropies
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.core.arrays import chunks
from badge.core.numbers import positive
from badge.features import gradient_embedding
from badge.outputs import Outputs
from badge.samplers.topk import Score, topk_by
from badge.strategies.protocol import Picks, listed


@listed("conf")
def conf(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Confidence sampling: smallest max_i p_i.

    >>> import numpy as np
    >>> from badge import Outputs
    >>> conf(Outputs([[0.9, 0.1], [0.6, 0.4]], [[1.0], [1.0]]), 1, np.random.default_rng(0)).tolist()
    [1]
    """
    return topk_by(_of_rows(outputs, _least_sure), outputs.probabilities, k, rng)


@listed("marg")
def marg(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Margin sampling: smallest p_ŷ − p_y', the difference of the two largest probabilities."""
    return topk_by(_of_rows(outputs, _closeness), outputs.probabilities, k, rng)


@listed("entropy")
def entropy(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Entropy sampling: largest Σ p_i ln 1/p_i."""
    return topk_by(_of_rows(outputs, _entropy), outputs.probabilities, k, rng)


@listed("rand")
def rand(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """The naive baseline: k examples uniformly, without replacement."""
    return rng.choice(len(outputs), size=k, replace=False).astype(np.int64)


def doubt(outputs: Outputs) -> Tensor:
    """1 − margin of every row, [N], in float64: 0 where the model is sure, 1 where two classes are level.

    >>> doubt(Outputs([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.5, 1.0]
    """
    return 1 + _each(outputs, _closeness)


def entropies(outputs: Outputs) -> Tensor:
    """The entropy of every row, [N], in float64."""
    return _each(outputs, _entropy)


# Scores of rows [n, C] of probabilities; with `labels` (multi-label) these are max(p_l, 1 − p_l) for each label.


def _least_sure(p: Tensor, labels: bool) -> Tensor:
    return -p.log().sum(dim=1) if labels else -p.amax(dim=1)


def _closeness(p: Tensor, labels: bool) -> Tensor:
    if labels:
        return 1 - 2 * p.amin(dim=1)
    two = p.topk(2, dim=1).values
    return two[:, 1] - two[:, 0]


def _entropy(p: Tensor, labels: bool) -> Tensor:
    terms: Tensor = torch.special.entr(p.clamp(min=0)).sum(dim=1)
    return terms + _entropy(1 - p, False) if labels else terms


def _each(outputs: Outputs, score: Callable[[Tensor, bool], Tensor]) -> Tensor:
    p, of_rows = outputs.probabilities, _of_rows(outputs, score)
    return torch.cat([of_rows(p[part].double()) for part in chunks(p)])


def _of_rows(outputs: Outputs, score: Callable[[Tensor, bool], Tensor]) -> Score:
    """The score of rows as a model gives them."""
    labels = outputs.multilabel

    def of_rows(p: Tensor) -> Tensor:
        if labels:
            p = torch.maximum(p, 1 - p).clamp(max=1)
        elif p.shape[1] == 1:  # binary: the other class is implied
            p = torch.cat([1 - p, p], dim=1)
        return score(p, labels)

    return of_rows


@dataclass(unsafe_hash=True)  # a process that one is sent to has a copy, which is equal
class Power:
    """A strategy that draws k examples without replacement, each time in proportion to score^β.

    Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal (2023, "Stochastic Batch Acquisition: A Simple Baseline
    for Deep Active Learning", TMLR): the k largest of log s_i + ε_i with ε_i ~ Gumbel(0, 1/β) have this law. Examples of
    score 0 come last, in random order. β = ∞ would be the k largest scores, β = 0 uniform.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [1.0, 0.0], [0.6, 0.4]])
    >>> Power(doubt)(out, 3, np.random.default_rng(0)).tolist()[-1]
    1
    """

    score: Callable[[Outputs], Tensor]

    def __call__(
        self, outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, beta: float = 1.0
    ) -> Picks:
        scale = 1 / positive(beta, "beta")
        scores = self.score(outputs).double().numpy(force=True)
        with np.errstate(divide="ignore"):  # log 0 = −∞: last
            return samplers.topk(np.log(scores.clip(min=0)) + rng.gumbel(scale=scale, size=len(scores)), k, rng)


def gradient_norm(outputs: Outputs) -> Tensor:
    """The length of every gradient at the guessed class, [N]."""
    return gradient_embedding(outputs).sq_norms.sqrt()


power_marg = listed("power-marg")(Power(doubt))
power_entropy = listed("power-entropy")(Power(entropies))
power_norm = listed("power-norm")(Power(gradient_norm))
