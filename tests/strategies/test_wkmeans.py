"""Weighted k-means over the smallest margins, and Lloyd's iteration against its plain loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from badge.samplers import lloyd as module
from badge.samplers.lloyd import lloyd_from
from badge.samplers.plain import plain_lloyd
from badge.strategies.wkmeans import nearest_distinct, wkmeans

RNG = np.random.default_rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_lloyd_is_the_plain_loop(seed: int, offset: float, dtype: torch.dtype, weighted: bool) -> None:
    rng = RNG(seed)
    x = torch.from_numpy(
        rng.normal(size=(600, 9)) + 2 * rng.normal(size=(12, 9))[rng.integers(12, size=600)] + offset
    ).to(dtype)
    weights = torch.from_numpy(rng.random(600)) if weighted else None
    first = x[torch.from_numpy(rng.choice(600, size=40, replace=False))]
    fast, centres = lloyd_from(badge.Dense(x), first, weights=weights)
    plain, means = plain_lloyd(badge.Dense(x), first, weights=weights)
    assert fast.tolist() == plain.tolist()
    torch.testing.assert_close(centres, means)


def test_lloyd_leaves_out_rows_but_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds leave out most comparisons, in small blocks too, and the clusters stay those of the plain loop."""
    rng, compared, nearest = RNG(0), [0], module._nearest

    def counted(x: torch.Tensor, *rest: object) -> object:
        compared[0] += len(x)
        return nearest(x, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_nearest", counted)
    monkeypatch.setattr(module, "ROWS", 97)
    x = badge.Dense((rng.normal(size=(1500, 6)) + 4 * rng.normal(size=(9, 6))[rng.integers(9, size=1500)]).astype("f4"))
    first = x.as_matrix()[:35]
    assert lloyd_from(x, first)[0].tolist() == plain_lloyd(x, first)[0].tolist()
    assert compared[0] < 15 * 1500  # of 50 iterations


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_lloyd_compares_with_centres_that_moved(seed: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of many centres move in late iterations: most rows are compared with these alone, and all clusters are right."""
    rng, screened, nearest = RNG(seed), [0, 0], (module.Moved.apart, module._nearest)

    def counted(number: int) -> object:
        def call(*args: object) -> object:
            screened[number] += len(args[1 - number])  # type: ignore[arg-type]
            return nearest[number](*args)  # type: ignore[arg-type]

        return call

    monkeypatch.setattr(module.Moved, "apart", counted(0))
    monkeypatch.setattr(module, "_nearest", counted(1))
    x = badge.Dense((rng.normal(size=(1500, 3)) * rng.gamma(1.0, size=(1500, 1))).astype("f4"))
    weights = torch.from_numpy(rng.random(1500)) if weighted else None
    first = x.as_matrix()[:150]
    fast, plain = (way(x, first, weights=weights)[0].tolist() for way in (lloyd_from, plain_lloyd))
    assert fast == plain
    assert screened[0] > 150 and screened[1] < 25 * 1500


def test_lloyd_with_copies_and_few_iterations() -> None:
    x = badge.Dense(np.repeat(RNG(0).normal(size=(30, 3)), 4, axis=0))
    first = x.as_matrix()[:16]  # four copies of four rows each: centres that are equal, and centres without rows
    for iterations in (1, 2, 50):
        assert lloyd_from(x, first, iterations)[0].tolist() == plain_lloyd(x, first, iterations)[0].tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(12))
def test_rows_as_far_from_two_centres_go_to_the_lower_number(seed: int, dtype: torch.dtype) -> None:
    """Whole numbers: many rows lie in the middle of two centres, which are no whole numbers from the second step on."""
    rng = RNG(seed)
    x = badge.Dense(torch.from_numpy(rng.integers(-2, 3, size=(60, 3))).to(dtype))
    first = x.as_matrix()[torch.from_numpy(rng.choice(60, 7, replace=False))]
    for iterations in (1, 50):
        fast, plain = (way(x, first, iterations) for way in (lloyd_from, plain_lloyd))
        assert fast[0].tolist() == plain[0].tolist()
        torch.testing.assert_close(fast[1], plain[1])


def test_nearest_distinct() -> None:
    x = badge.Dense([[0.0], [1.0], [5.0]])
    assert nearest_distinct(x, torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("beta", [10.0, float("inf")])
@pytest.mark.parametrize("seed", range(3))
def test_picks_are_those_of_one_step_after_the_other(beta: float, seed: int) -> None:
    """The β·k smallest margins, k-means++, means weighted by 1 − margin, the nearest to each; without weights others."""
    rng, k = RNG(seed), 12
    out = badge.Outputs.from_logits(2 * rng.normal(size=(200, 3)), rng.normal(size=(200, 4)))
    two, draws = np.sort(out.probabilities.numpy(), axis=1)[:, -2:], RNG(seed)
    doubt, size = 1 - (two[:, 1] - two[:, 0]), min(200.0, beta * k)
    some = np.arange(200) if size == 200 else badge.samplers.topk(doubt, int(size), draws)
    x, weights = out.embeddings.numpy()[some], doubt[some]
    first = x[badge.samplers.kmeanspp(badge.Dense(x), k, draws)]

    def loop(weights: np.ndarray) -> list[int]:
        centres = first
        for _ in range(50):
            nearest = ((x[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
            centres = np.stack([np.average(x[nearest == c], axis=0, weights=weights[nearest == c]) for c in range(k)])
        picks: list[int] = []
        for centre in centres:
            sq_dists = ((x - centre) ** 2).sum(axis=1)
            sq_dists[picks] = np.inf
            picks.append(int(sq_dists.argmin()))
        return some[picks].tolist()

    strategy = wkmeans if beta == 10 else partial(wkmeans, beta=beta)
    found = badge.select_from(out, k, strategy, seed=seed).tolist()
    assert found == loop(weights) and found != loop(np.ones(len(x)))


def test_candidates_are_the_smallest_margins() -> None:
    rng = RNG(0)
    out = badge.Outputs.from_logits(2 * rng.normal(size=(200, 3)), rng.normal(size=(200, 4)))
    two = np.sort(out.probabilities.numpy(), axis=1)[:, -2:]
    smallest = set(np.argsort(two[:, 1] - two[:, 0])[:20].tolist())
    for seed in range(5):
        assert set(wkmeans(out, 10, RNG(seed), beta=2).tolist()) <= smallest
    assert set(wkmeans(out, 20, RNG(0), beta=1).tolist()) == smallest
    assert not set(wkmeans(out, 20, RNG(0), beta=float("inf")).tolist()) <= smallest


@pytest.mark.parametrize(
    "beta", [0, -1, -0.5, float("nan"), -float("inf"), True, np.True_, "10", b"10", None, [10], 1j, 10**400 * -1]
)
def test_beta_that_means_nothing_is_one_line(beta: Any) -> None:
    out = badge.Outputs([[0.5, 0.5]] * 4, [[0.0], [0.1], [9.0], [9.1]])
    with pytest.raises(InputError) as raised:
        badge.select_from(out, 2, partial(wkmeans, beta=beta))
    said = str(raised.value)
    assert said.startswith("beta must be a number above 0, not ") and f"{beta!r:.40}" in said and "\n" not in said


def test_beta_without_end_is_the_whole_pool() -> None:
    rng = RNG(0)
    out = badge.Outputs.from_logits(2 * rng.normal(size=(200, 3)), rng.normal(size=(200, 4)))
    expected = wkmeans(out, 10, RNG(0), beta=20)  # 20 · 10 are all
    assert wkmeans(out, 10, RNG(0), beta=19).tolist() != expected.tolist()
    for beta in (float("inf"), np.float32("inf"), 1e308, 21):
        assert wkmeans(out, 10, RNG(0), beta=beta).tolist() == expected.tolist()  # type: ignore[arg-type]
    assert len(set(wkmeans(out, 10, RNG(0), beta=1e-9).tolist())) == 10  # k examples at least


def test_a_batch_is_spread() -> None:
    """Four groups of uncertain rows: one pick from each, where the smallest margins alone are all in one group."""
    z = np.repeat(np.eye(4), 10, axis=0) + 0.01 * RNG(0).normal(size=(40, 4))
    p = 0.5 + np.linspace(0, 0.1, 40)
    out = badge.Outputs(np.stack([p, 1 - p], axis=1), z)
    assert sorted(int(i) // 10 for i in wkmeans(out, 4, RNG(0))) == [0, 1, 2, 3]
    assert sorted(int(i) // 10 for i in badge.select_from(out, 4, "marg")) == [0, 0, 0, 0]
