"""MaxHerding, UHerding and ProbCover: the formulas by hand, their constants, what they do without labels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import badge
from badge.features.kinds import unit_rows
from badge.samplers.lloyd import lloyd
from badge.strategies.coverage import maxherding, probcover, pure_radius, uherding

RNG = np.random.default_rng


def outputs(n: int, c: int = 4, d: int = 6, seed: int = 0) -> badge.Outputs:
    rng = RNG(seed)
    return badge.Outputs.from_logits(2 * rng.normal(size=(n, c)), rng.normal(size=(n, d)))


def by_hand(out: badge.Outputs, done: badge.Outputs, k: int) -> list[int]:
    """UHerding as its paper states it, from the whole matrix of kernel values."""
    x, given = (z.embeddings.numpy() / np.linalg.norm(z.embeddings.numpy(), axis=1, keepdims=True) for z in (out, done))
    among = ((given[:, None] - given[None]) ** 2).sum(axis=2)
    sq_sigma = among[among > 0].min()
    two = np.sort(out.probabilities.numpy(), axis=1)[:, -2:]
    u = 1 - (two[:, 1] - two[:, 0])
    kernel = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=2) / sq_sigma)
    covered = np.exp(-((x[:, None] - given[None]) ** 2).sum(axis=2) / sq_sigma).max(axis=1)
    picks: list[int] = []
    for _ in range(k):
        gains = np.maximum(kernel - covered, 0) @ u
        gains[picks] = -1
        picks.append(int(gains.argmax()))
        covered = np.maximum(covered, kernel[picks[-1]])
    return picks


def test_uherding_by_hand() -> None:
    out, done = outputs(150), outputs(12, seed=1)
    assert uherding(out, 20, RNG(0), labeled=done).tolist() == by_hand(out, done, 20)


def test_uherding_before_labels_is_maxherding() -> None:
    out = outputs(80)
    assert uherding(out, 9, RNG(0)).tolist() == maxherding(out, 9, RNG(0)).tolist()
    without = badge.Outputs(embeddings=out.embeddings)
    assert uherding(without, 9, RNG(0)).tolist() == maxherding(out, 9, RNG(0)).tolist()


@pytest.mark.parametrize("strategy", [uherding, maxherding, probcover])
def test_lengths_do_not_matter(strategy: object) -> None:
    out, done = outputs(100), outputs(5, seed=2)
    scale = torch.linspace(0.1, 10, 100)[:, None]
    scaled = badge.Outputs(out.probabilities, out.embeddings * scale)
    assert strategy(out, 8, RNG(0), labeled=done).tolist() == strategy(scaled, 8, RNG(0), labeled=done).tolist()  # type: ignore[operator]


@pytest.mark.parametrize("strategy", ["uherding", "maxherding", "probcover", "auto"])
@pytest.mark.parametrize("small", [True, False])
def test_lengths_that_are_no_numbers_are_refused(strategy: str, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, and when rows are scaled as they are read."""
    monkeypatch.setattr("badge.features.kinds.small", lambda rows: small)
    out, done = outputs(100), outputs(5, seed=2)
    far = badge.Outputs(out.probabilities, out.embeddings.double() * 1e200)
    for pool, labeled in ((far, None), (far, done), (out, far[:5])):
        with pytest.raises(badge.errors.InputError, match="squared norms overflow float64: scale the embeddings down"):
            badge.select_from(pool, k=3, strategy=strategy, labeled=labeled)


@pytest.mark.parametrize("strategy", [uherding, maxherding, probcover])
def test_labelled_examples_are_covered(strategy: object) -> None:
    """A copy of a labelled example adds nothing, so that it is picked last."""
    out = outputs(30, c=3)
    picks = strategy(out, 24, RNG(0), labeled=out[:6], **({"delta": 1e-3} if strategy is probcover else {}))  # type: ignore[operator]
    assert min(picks.tolist()) >= 6


def test_the_radius_of_probcover() -> None:
    """Two clusters 1 apart on the circle: a ball of less than that is pure."""
    angle = np.concatenate([np.linspace(0, 0.2, 50), np.linspace(1.2, 1.4, 50)])
    x = unit_rows(torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], axis=1)))
    found = pure_radius(x, 2, RNG(0))
    assert 2 * np.sin(0.5) - 1e-6 <= found <= 2 * np.sin(0.53)


@pytest.mark.parametrize("n", [19, 20, 21, 100, 1000])
def test_the_radius_is_the_largest_at_which_over_95_percent_of_the_balls_are_pure(n: int) -> None:
    rng = RNG(n)
    x = unit_rows(torch.from_numpy(rng.normal(size=(n, 3))))
    cluster = lloyd(x, 4, RNG(0)).numpy()
    dists = np.linalg.norm(x.as_matrix().numpy()[:, None] - x.as_matrix().numpy(), axis=2)
    nearest = np.where(cluster[:, None] == cluster, np.inf, dists).min(axis=1)
    pure = [delta for delta in nearest if (nearest >= delta).mean() > 0.95]
    assert pure_radius(x, 4, RNG(0)) == pytest.approx(max(pure), rel=1e-6)
