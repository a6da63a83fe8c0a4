"""Stochastic batches by enumeration: k draws without replacement in proportion to score^β."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from badge.strategies.uncertainty import Power, gradient_norm, power_entropy, power_marg, power_norm
from badge.testing.laws import Law, chi_square, tally
from laws import ACCEPTED, REJECTED

P = np.array([[0.5, 0.5], [0.6, 0.4], [0.7, 0.3], [0.9, 0.1], [1.0, 0.0]])
OUT = badge.Outputs(P, np.arange(1.0, 11.0).reshape(5, 2))


def law_of(scores: np.ndarray, k: int) -> Law:
    law: Law = {}
    for picks in itertools.permutations(range(len(scores)), k):
        chance, left = 1.0, scores.sum()
        for pick in picks:
            chance *= scores[pick] / left
            left -= scores[pick]
        law[picks] = float(chance)
    return law


DOUBT = 1 - (P[:, 0] - P[:, 1])


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_the_law(beta: float) -> None:
    strategy = partial(Power(lambda outputs: torch.from_numpy(DOUBT)), beta=beta)
    counts = tally(lambda rng: strategy(OUT, 2, rng), 4_000, seed=1)
    assert chi_square(counts, law_of(DOUBT**beta, 2)) > ACCEPTED
    assert chi_square(counts, law_of(DOUBT ** (1.5 * beta + 0.1), 2)) < REJECTED


def test_the_scores() -> None:
    entropy = -(P[:4] * np.log(P[:4])).sum(axis=1)
    norm = np.sqrt(2) * (1 - P[:, 0]) * np.linalg.norm(OUT.embeddings.numpy(), axis=1)
    np.testing.assert_allclose(gradient_norm(OUT).numpy(), norm, atol=1e-12)
    for strategy, scores in ((power_marg, DOUBT), (power_entropy, np.append(entropy, 0.0)), (power_norm, norm)):
        counts = tally(lambda rng, s=strategy: s(OUT, 2, rng), 1_500, seed=2)
        assert chi_square(counts, law_of(scores, 2)) > ACCEPTED


@pytest.mark.parametrize("beta", [0, -1.0, np.True_, float("inf"), "1"])
def test_beta_is_positive(beta: Any) -> None:
    with pytest.raises(InputError, match="beta"):
        power_norm(OUT, 2, np.random.default_rng(0), beta=beta)
