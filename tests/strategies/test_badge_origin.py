"""BADGE with the origin as a centre: its law, and that sure examples are left out."""

from __future__ import annotations

import numpy as np

import badge
from badge.strategies.gradient import badge_origin
from badge.testing.laws import chi_square, kmeanspp_law, tally
from laws import ACCEPTED, REJECTED

P = np.array([[0.5, 0.5], [0.6, 0.4], [0.3, 0.7], [0.9, 0.1], [0.99, 0.01]])
OUT = badge.Outputs(P, np.random.default_rng(0).normal(size=(5, 2)))


def test_the_law() -> None:
    g = badge.gradient_embedding(OUT).as_matrix().double().numpy()
    counts = tally(lambda rng: badge_origin(OUT, 3, rng), 400, seed=0)
    assert chi_square(counts, kmeanspp_law(g, 3, given=np.zeros((1, 4)))) > ACCEPTED
    assert chi_square(counts, kmeanspp_law(g, 3)) < REJECTED


def test_examples_without_gradient_come_last() -> None:
    out = badge.Outputs(
        np.concatenate([P, np.tile([[1.0, 0.0]], (40, 1))]), np.random.default_rng(1).normal(size=(45, 2))
    )
    for seed in range(20):
        picks = badge_origin(out, 8, np.random.default_rng(seed)).tolist()
        assert sorted(picks[:5]) == [0, 1, 2, 3, 4] and len(set(picks)) == 8
    with_bias = badge_origin(out, 5, np.random.default_rng(0), bias=True)
    assert sorted(with_bias.tolist()) == [0, 1, 2, 3, 4]
