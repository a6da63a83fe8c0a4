"""Which of equal rows is picked: what the docstrings and docs/strategies.md say, on shuffled copies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import badge
from badge.samplers.plain import plain_bait
from badge.strategies.bait import bait, bait_binary
from badge.strategies.cold import typiclust
from badge.strategies.uncertainty import entropies
from badge.strategies.wkmeans import wkmeans

RNG = np.random.default_rng


def copies(kinds: int, each: int, seed: int, d: int = 5) -> tuple[badge.Outputs, np.ndarray]:
    """Rows of a few kinds in random order, and the kind of each."""
    rng = RNG(seed)
    kind = rng.permutation(np.repeat(np.arange(kinds), each))
    out = badge.Outputs.from_logits(2 * rng.normal(size=(kinds, 3)), rng.normal(size=(kinds, d)))
    return out[kind], kind


def check_lowest(picks: np.ndarray, kind: np.ndarray) -> None:
    """Each pick is the lowest position of its kind that was left."""
    for place, pick in enumerate(picks):
        left = np.setdiff1d(np.flatnonzero(kind == kind[pick]), picks[:place])
        assert pick == left[0], (picks.tolist(), kind[picks].tolist())


@pytest.mark.parametrize("strategy", ["maxherding", "uherding", "probcover", "auto"])
@pytest.mark.parametrize("each", [2, 40])
@pytest.mark.parametrize("seed", range(3))
def test_coverage_takes_the_lowest_position_and_draws_what_gains_nothing(strategy: str, each: int, seed: int) -> None:
    out, kind = copies(8, each, seed)
    labeled = out[np.flatnonzero(kind == 7)[:1]]
    picks = badge.select_from(out, 12, strategy, labeled=labeled)
    gain = badge.explain(out, picks, strategy, labeled).gain
    assert gain is not None
    check_lowest(picks[gain > 1e-9], kind)
    assert len(set(kind[picks[gain > 1e-9]])) == (gain > 1e-9).sum()  # a second copy adds nothing
    others = [badge.select_from(out, 12, strategy, labeled=labeled, seed=seed) for seed in (0, 1, 2)]
    if strategy != "probcover":  # its radius is drawn too
        assert picks[gain > 1e-9].tolist() == others[1][gain > 1e-9].tolist()
    assert picks.tolist() == others[0].tolist() != others[2].tolist()


@pytest.mark.parametrize("each", [3, 40])
@pytest.mark.parametrize("seed", range(3))
def test_bait_adds_the_lowest_and_removes_what_it_added_first(each: int, seed: int) -> None:
    """As the plain loop does; also if there are more copies than bait works out in float64 at a time."""
    out, _ = copies(6, each, seed)
    p, h = out.probabilities.double().numpy(), out.embeddings.double().numpy()
    penalty = 0.01 * float((h**2).sum(axis=1).mean())
    top = p.max(axis=1)
    a = np.sqrt(p)[:, :, None] * (np.eye(3) - p[:, None, :])
    whole = np.einsum("nyc,nd->nycd", a, h).reshape(len(p), 3, -1)
    binary = (np.sqrt(top * (1 - top))[:, None] * h)[:, None]
    for strategy, blocks in ((bait, whole), (bait_binary, binary)):
        expected = plain_bait(blocks, None, 4, penalty).tolist()
        assert strategy(out, 4, RNG(0)).tolist() == strategy(out, 4, RNG(1)).tolist() == expected


def test_bait_keeps_the_later_of_two_copies() -> None:
    out = badge.Outputs(np.full((2, 2), 0.5), np.ones((2, 1)))
    for strategy in (bait, bait_binary):
        assert strategy(out, 1, RNG(0)).tolist() == [1]


@pytest.mark.parametrize("seed", range(4))
def test_wkmeans_takes_the_lowest_position_of_the_whole_pool(seed: int) -> None:
    out, kind = copies(12, 5, seed)
    check_lowest(wkmeans(out, 6, RNG(seed), beta=math.inf), kind)


def test_wkmeans_takes_the_smaller_margin_and_draws_between_equal_ones() -> None:
    z = [[0.0], [0.0], [0.0], [0.0]]
    out = badge.Outputs([[0.7, 0.3], [0.55, 0.45], [0.6, 0.4], [1.0, 0.0]], z)
    assert {wkmeans(out, 1, RNG(seed), beta=3).tolist()[0] for seed in range(9)} == {1}
    level = badge.Outputs(np.full((4, 2), 0.5), z)
    found = {wkmeans(level, 1, RNG(seed), beta=3).tolist()[0] for seed in range(30)}
    assert found == {0, 1, 2, 3} and len({wkmeans(level, 1, RNG(3), beta=3).tolist()[0] for _ in range(9)}) == 1


def test_typiclust_takes_the_lowest_position_of_equally_typical_rows() -> None:
    """Whole numbers, so that nothing is rounded: six rows at each of three places, and one cluster or three."""
    kind = RNG(0).permutation(np.repeat(np.arange(3), 6))
    out = badge.Outputs(embeddings=np.array([[0.0, 0.0], [64.0, 0.0], [0.0, 64.0]])[kind])
    first = [int(np.flatnonzero(kind == one)[0]) for one in range(3)]
    orders = {tuple(typiclust(out, 3, RNG(seed)).tolist()) for seed in range(12)}
    assert {tuple(sorted(one)) for one in orders} == {tuple(sorted(first))}
    assert len(orders) > 1  # the seed draws the order of clusters of one size


def test_bald_leaves_it_to_the_seed() -> None:
    out, _ = copies(1, 20, 0)
    out.expected_entropy = entropies(out)[:, None] / 2
    assert len({tuple(badge.select_from(out, 3, "bald", seed=seed).tolist()) for seed in range(9)}) > 6
    assert len({tuple(badge.select_from(out, 3, "bald", seed=4).tolist()) for _ in range(3)}) == 1


def test_a_learner_with_ids_of_its_own_takes_the_first_by_id() -> None:
    ids = [f"n{i:02}" for i in RNG(0).permutation(20)]
    z = torch.ones(20, 3).numpy()
    with badge.ActiveLearner(z, LogisticRegression(), classes=2, ids=ids, first="maxherding", embeddings=z) as learner:
        assert learner.ask(1).tolist() == ["n00"]
