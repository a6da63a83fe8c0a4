"""BALD: examples on which the members of an ensemble are each sure and do not agree."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge import samplers
from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies.protocol import Strategy, declare
from badge.strategies.uncertainty import entropies

__all__ = ["bald", "mutual_information"]


def mutual_information(members: Iterable[Outputs]) -> Tensor:
    """H(mean of p_m) − mean of H(p_m) of every row, [N], in float64; the members are gone through once.

    Houlsby, Huszár, Ghahramani & Lengyel (2011, "Bayesian Active Learning for Classification and Preference Learning"), with
    the members of an ensemble (or passes with dropout) as draws from the posterior, as in Gal, Islam & Ghahramani (2017). A
    generator of outputs never has more than one of them in memory.

    >>> sure = [Outputs([[1.0, 0.0], [0.5, 0.5]]), Outputs([[0.0, 1.0], [0.5, 0.5]])]
    >>> [round(float(x), 4) for x in mutual_information(sure)]
    [0.6931, 0.0]
    """
    total, mean, count, multilabel = torch.zeros(0), torch.zeros(0), 0, False
    for member in members:
        p, h = member.probabilities[:].double(), entropies(member)
        if count and p.shape != total.shape:
            raise InputError(f"members differ: probabilities {tuple(total.shape)} and {tuple(p.shape)}")
        total, mean = (total + p, mean + h) if count else (p, h)
        count, multilabel = count + 1, member.multilabel
    if count < 2:
        raise InputError(f"bald needs two members or more that can disagree, not {count}")
    together = Outputs.trusted(total / count, None, multilabel=multilabel)
    return (entropies(together) - mean / count).clamp(min=0)


def bald(members: Iterable[Outputs]) -> Strategy:
    """A strategy of largest mutual information; `Power(lambda outputs: mutual_information(members))` draws by it.

    >>> import badge
    >>> members = [Outputs([[1.0, 0.0], [0.5, 0.5]]), Outputs([[0.0, 1.0], [0.5, 0.5]])]
    >>> badge.select_from(members[0], k=1, strategy=bald(members)).tolist()
    [0]
    """
    scores = mutual_information(members).numpy(force=True)

    @declare(frozenset(), labeled="no")
    def strategy(
        outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]:
        if len(outputs) != len(scores):
            raise InputError(f"bald knows {len(scores)} rows, and {len(outputs)} are left: leave exclude out")
        return samplers.topk(scores, k, rng)

    return strategy
