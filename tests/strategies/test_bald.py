"""BALD against the textbook formula."""

from __future__ import annotations

import numpy as np
import pytest

import badge
from badge.errors import InputError
from badge.strategies.bald import bald, mutual_information
from badge.strategies.power import Power


def members(count: int, n: int = 30, c: int = 4) -> list[badge.Outputs]:
    rng = np.random.default_rng(0)
    return [badge.Outputs.from_logits(2 * rng.normal(size=(n, c))) for _ in range(count)]


def test_the_textbook_formula() -> None:
    some = members(5)
    p = np.stack([one.probabilities.numpy() for one in some])  # [members, rows, classes]
    joint = (p / 5 * np.log(p / p.mean(axis=0))).sum(axis=(0, 2))  # KL from the joint to the product of the marginals
    np.testing.assert_allclose(mutual_information(iter(some)).numpy(), joint, atol=1e-12)
    assert badge.select_from(some[0], k=3, strategy=bald(some)).tolist() == np.argsort(-joint)[:3].tolist()
    drawn = Power(lambda outputs: mutual_information(some))(some[0], 30, np.random.default_rng(0))
    assert sorted(drawn.tolist()) == list(range(30))


def test_binary_and_multilabel() -> None:
    for options in ({}, {"multilabel": True}):
        pair = [badge.Outputs([[0.9]], **options), badge.Outputs([[0.1]], **options)]
        expected = np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1)
        assert float(mutual_information(pair)[0]) == pytest.approx(expected)


def test_mistakes() -> None:
    with pytest.raises(InputError, match="two members or more that can disagree, not 1"):
        bald(members(1))
    with pytest.raises(InputError, match=r"members differ: probabilities \(30, 4\) and \(9, 4\)"):
        bald([*members(1), *members(1, n=9)])
    with pytest.raises(InputError, match="leave exclude out"):
        badge.select_from(members(2)[0], k=2, strategy=bald(members(2)), exclude=[0])
