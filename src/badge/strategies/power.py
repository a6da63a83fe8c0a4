"""Stochastic batches: scores with noise, so that a batch is not k times the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from badge import samplers
from badge.core.numbers import positive
from badge.features import gradient_embedding
from badge.outputs import Outputs
from badge.strategies.protocol import listed
from badge.strategies.uncertainty import doubt, entropies


@dataclass(eq=False)
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
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive(self.beta, "beta")

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]:
        scores = self.score(outputs).double().numpy(force=True)
        with np.errstate(divide="ignore"):  # log 0 = −∞: last
            return samplers.topk(np.log(scores.clip(min=0)) + rng.gumbel(scale=1 / self.beta, size=len(scores)), k, rng)


def gradient_norm(outputs: Outputs) -> Tensor:
    """The length of every hallucinated gradient, [N]."""
    return gradient_embedding(outputs).sq_norms.sqrt()


power_marg = listed("power-marg")(Power(doubt))
power_entropy = listed("power-entropy")(Power(entropies))
power_norm = listed("power-norm")(Power(gradient_norm))
