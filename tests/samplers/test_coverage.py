"""Coverage picks what the plain greedy loop picks, whatever the kernel, the weights and what is given."""

from __future__ import annotations

import sys
from copy import copy

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from badge.samplers import Ball, Gauss, boxes, coverage
from badge.samplers import cover as blocks
from badge.samplers.cover import Cover
from badge.samplers.plain import plain_coverage

module = sys.modules["badge.samplers.coverage"]


def clumps(n: int, d: int, seed: int, dtype: torch.dtype = torch.float32) -> badge.Dense:
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.normal(size=(n, d)) + rng.normal(size=(8, d))[rng.integers(8, size=n)]
    return badge.Dense(torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True)).to(dtype))


def both(x: badge.features.Features, k: int, *args: object, **options: object) -> tuple[list[int], list[int]]:
    fast, plain = (f(x, k, np.random.default_rng(0), *args, **options) for f in (coverage, plain_coverage))
    return fast.tolist(), plain.tolist()


@pytest.mark.parametrize(
    ("kernel", "k"),
    [(Gauss(1.0), 25), (Gauss(0.3), 25), (Gauss(0.05), 9), (Ball(0.8), 25), (Ball(0.3), 25)],  # 0.05: all but ties
)
@pytest.mark.parametrize("labels", [0, 1, 30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_same_picks_as_plain(kernel: Gauss | Ball, k: int, labels: int, dtype: torch.dtype) -> None:
    x = clumps(250, 12, seed=labels, dtype=dtype)
    weights = torch.from_numpy(np.random.default_rng(1).random(250)) if labels else None
    given = clumps(labels, 12, seed=5, dtype=dtype) if labels else None
    fast, plain = both(x, k, kernel, weights, given=given)
    assert fast == plain


@pytest.mark.parametrize("seed", [*range(20), 108, 146])  # the last two need sums in float64
def test_same_picks_of_any_pool(seed: int) -> None:
    """Copies, grids and long rows; weights that are 0, tiny or all equal; kernels that reach one row or all."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([5, 200, 400])), int(rng.choice([1, 2, 20]))
    x = rng.normal(size=(n, d))
    x = [x, x[rng.integers(n, size=n)], np.round(2 * x), x * 10.0 ** rng.uniform(-3, 2, size=(n, 1))][seed % 4]
    weights = rng.random(n) ** rng.choice([0, 1, 20]) * (rng.random(n) < rng.choice([0.01, 0.5, 1]))
    kernel = (Ball if seed % 3 == 0 else Gauss)(float(np.exp(rng.uniform(-4, 2))))
    features = badge.Dense(x.astype("f4" if seed % 5 else "f8"))
    given = features[rng.integers(n, size=7)] if seed % 2 else None
    fast, plain = both(features, int(rng.integers(1, 5)), kernel, torch.from_numpy(weights), given=given)
    assert fast == plain


@pytest.mark.parametrize("apart", [False, True])
def test_bounds_in_float64_where_float32_does_not_tell_rows_apart(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are nearly parallel, and rows so far apart that all gains are equal: few gains are worked out one by one."""
    vectors = np.random.default_rng(0).normal(size=(500, 16)) + (0 if apart else 1000)
    x = badge.Dense((vectors if apart else vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f4"))
    worked, gain = [], Cover.gain
    monkeypatch.setattr(Cover, "gain", lambda cover, i: worked.append(i) or gain(cover, i))
    fast, plain = both(x, 8, Gauss(0.1 if apart else 1.0))
    assert fast == plain and len(worked) < 200


def test_weights_far_below_the_largest_count() -> None:
    """Two light rows that are near each other are worth more than one that is a little heavier."""
    places = 100.0 * np.arange(40)
    places[21] = places[20] + 0.5
    weights = torch.zeros(40, dtype=torch.float64)
    weights[[5, 9, 20, 21]] = torch.tensor([1.0, 1.5e-20, 1e-20, 1e-20], dtype=torch.float64)
    fast, plain = both(badge.Dense(places[:, None]), 3, Gauss(1.0), weights)
    assert fast == plain == [5, 20, 9]


def test_same_picks_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GROUP": 3,
        "BLOCK": 7,
        "SPAN": 9,
        "PART": 4,
        "TOLD": 3,
        "WIDE": 4,
        "SAMPLE": 50,
        "LOOSE": 99,
    }.items():
        monkeypatch.setattr(blocks, name, value)
    for name, value in {"LEAF": 3, "RANK": 2, "SAMPLE": 9, "BLOCK": 50}.items():
        monkeypatch.setattr(boxes, name, value)
    monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(module, "FEW", 1)
    monkeypatch.setattr(module, "MANY", 4)
    monkeypatch.setattr(module, "SHORTLIST", ((4, 20), (20, 3)))
    for given in (None, clumps(9, 5, seed=3)):
        for kernel in (Gauss(0.2), Gauss(1.0), Ball(0.5)):
            fast, plain = both(clumps(100, 5, seed=2), 15, kernel, given=given)
            assert fast == plain


def test_same_picks_on_gradients() -> None:
    rng = np.random.default_rng(0)
    g = badge.gradient_embedding(badge.Outputs.from_logits(2 * rng.normal(size=(300, 4)), rng.normal(size=(300, 6))))
    fast, plain = both(g, 40, Gauss(1.5), given=g[:10])
    assert fast == plain


def test_rows_at_a_balls_radius() -> None:
    """√5 squared is just above 5, so rows at a squared distance of 5 are inside. Exact squares decide, in both."""
    rng = np.random.default_rng(0)
    x = badge.Dense(rng.integers(-2, 3, size=(60, 2)).astype(np.float32))
    fast, plain = both(x, 6, Ball(5**0.5), torch.from_numpy(rng.random(60)))
    assert fast == plain


def test_equal_gains_go_to_the_lowest_position() -> None:
    x = badge.Dense(np.repeat(np.eye(5), 4, axis=0))
    assert coverage(x, 5, np.random.default_rng(0), Gauss(0.5)).tolist() == [0, 4, 8, 12, 16]


def test_a_pool_that_is_covered() -> None:
    """The rest is uniform: no position is repeated, and the seed decides."""
    x = badge.Dense(np.zeros((9, 2)))
    picks = [coverage(x, 6, np.random.default_rng(seed), Ball(0.5)).tolist() for seed in range(5)]
    assert all(p[0] == 0 and len(set(p)) == 6 for p in picks) and len({tuple(p) for p in picks}) > 1


def test_bounds_are_bounds() -> None:
    """An upper bound is never below the gain; this is what makes lazy picks the greedy ones."""
    x = clumps(200, 16, seed=4)
    for kernel in (Gauss(0.4), Gauss(0.05), Ball(0.5)):
        cover = Cover(x, kernel, torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
        cover.add(clumps(20, 16, seed=6).rows(slice(None)))
        bounds = cover.bounds(torch.arange(200))
        gains = torch.tensor([cover.gain(i) for i in range(200)], dtype=torch.float64)
        assert bool((bounds >= gains).all()) and bool((bounds <= 1.02 * gains + 1e-3).all())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", [Gauss(0.08), Gauss(0.04), Ball(0.3)])
def test_bounds_through_sketches_are_bounds(
    kernel: Gauss | Ball, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernel values below `far` are not worked out: bounds are higher, never too low."""
    for name, value in {"SPAN": 100, "PART": 16, "BLOCK": 64}.items():
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(boxes, "RANK", 4)
    x, before = clumps(350, 16, seed=4), torch.get_num_threads()
    weights = 5 * torch.rand(350, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).pow(4)
    weights[::9] = 0
    cover = Cover(x, kernel, weights)
    cover.add(clumps(20, 16, seed=6).rows(slice(None)))
    gains = torch.tensor([cover.gain(i) for i in range(350)], dtype=torch.float64)
    torch.set_num_threads(threads)
    try:
        found = [cover.bounds(cover.every), cover.near_bounds(1e-3), cover.near_bounds(0.3)]
    finally:
        torch.set_num_threads(before)
    assert all(bool((bounds >= gains).all()) for bounds in found)
    assert bool((found[0] <= 1.02 * gains + 1e-3).all())
    assert isinstance(kernel, Ball) or float(found[0].sum()) < float(found[1].sum()) < float(found[2].sum())


def test_a_pick_lowers_bounds_by_no_more_than_the_loss() -> None:
    x = clumps(200, 16, seed=4)
    for kernel in (Gauss(0.4), Gauss(1.0), Ball(0.8)):
        cover = Cover(x, kernel, torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
        cover.add(x.rows(slice(0, 3)))
        gains, before = torch.tensor([cover.gain(i) for i in range(200)], dtype=torch.float64), cover.covered
        cover.add(x.rows(slice(7, 8)))
        now = torch.tensor([cover.gain(i) for i in range(200)], dtype=torch.float64)
        lost = cover.lost(cover.every, (cover.covered > before).nonzero()[:, 0], before)
        assert bool((lost <= gains - now + 1e-12).all()) and bool((lost >= 0.98 * (gains - now) - 1e-3).all())
        bounds = gains.clone()
        cover.lower(bounds, before, 0.0)
        assert bool((bounds >= now - 1e-12).all()) and bool((bounds < gains).any())
        high, share = gains.clone(), 0.5
        cover.lower(high, before, share)
        above = gains > share * gains.max()
        assert bool((high >= now - 1e-12).all()) and bool((high < gains)[above].any())
        assert torch.equal(high[~above], gains[~above])


@pytest.mark.parametrize("kernel", [Gauss(1.0), Gauss(0.2), Ball(0.8)])
def test_a_pick_whose_gain_is_known_is_a_centre_like_any_other(kernel: Gauss | Ball) -> None:
    x = clumps(400, 16, seed=4)
    known, plain = (Cover(x, kernel, torch.ones(400, dtype=torch.float64)) for _ in range(2))
    for i in (5, 9, 300):
        known.gain(i)
        known.pick(i)
        plain.add(x.rows(slice(i, i + 1)))
        torch.testing.assert_close(known.covered, plain.covered, rtol=0, atol=blocks.FAINT)
        seen = plain.covered > blocks.FAINT
        assert torch.equal(known.sq_near[seen], plain.sq_near[seen]) and bool(seen.any())


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_boxes_leave_out_no_row_that_is_near(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows within their limit are found, whatever the group; far ones are left out, and the tests can fail."""
    rng, x = np.random.default_rng(n), clumps(n, 40, seed=n)
    monkeypatch.setattr(boxes, "BLOCK", 100)
    pool, rows = boxes.Boxes(x), x.as_matrix()
    assert sorted(pool.order.tolist()) == list(range(n))
    exact = torch.cdist(rows, rows).square()
    limits = torch.from_numpy(rng.uniform(0, 0.6, size=n).astype(np.float32))
    limits[rng.random(n) < 0.1] = -torch.inf
    share, short = [], 0
    for size in (1, 2, 7, n):
        ids = torch.from_numpy(rng.choice(n, min(size, n), replace=False))
        found, wanted = pool.near(ids, pool.limits(limits + 1e-5)), exact[ids].amin(dim=0) < limits
        assert len(found.unique()) == len(found)
        assert set(wanted.nonzero()[:, 0].tolist()) <= set(found.tolist())
        too_near = pool.near(ids, pool.limits(limits / 2))
        short += len(set(wanted.nonzero()[:, 0].tolist()) - set(too_near.tolist()))
        share.append(len(found) / n)
    assert n < 1000 or (share[0] < 0.5 and short > 0)


@pytest.mark.parametrize("shortlist", [((512, 4096), (8192, 128)), ((4, 20), (20, 3)), ((1, 9), (1, 1))])
@pytest.mark.parametrize("k", [20, 12])  # the bounds of 12 are made through sketches
def test_right_and_wrong_guesses_give_the_greedy_picks(
    shortlist: tuple[tuple[int, int], ...], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds after guessed picks hold at any time, also where a guess is never picked."""
    for name, value in {"WIDE": 4, "SAMPLE": 50, "LOOSE": 99}.items():
        monkeypatch.setattr(blocks, name, value)
    monkeypatch.setattr(module, "GUESS", 64)
    monkeypatch.setattr(module, "SHORTLIST", shortlist)
    for seed in range(3):
        for kernel in (Gauss(0.5), Gauss(1.0), Ball(0.8)):
            fast, plain = both(clumps(120, 4, seed=seed), k, kernel)
            assert fast == plain


@pytest.mark.parametrize("kernel", [Gauss(0.5), Gauss(1.0), Ball(0.9)])
def test_a_sketch_bounds_from_above(kernel: Gauss | Ball, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sketch of few numbers, which is loose, and of nearly all, which is tight."""
    x, found = clumps(600, 16, seed=4), []
    for piece in (8, 2):
        for name, value in {"WIDE": 16, "PIECES": (piece,), "SAMPLE": 100, "LOOSE": 99}.items():
            monkeypatch.setattr(blocks, name, value)
        cover = Cover(x, kernel, torch.ones(600, dtype=torch.float64))
        sketch = blocks.sketched(x, kernel)
        assert sketch is not None
        cover.add(x.rows(slice(3, 4)))
        found.append(cover.gained(cover.every, cover.every, sketch))
        assert all(found[-1][i] >= cover.gain(i) * (1 - 1e-6) for i in range(0, 600, 7))
    assert bool((found[1] <= found[0] * (1 + 1e-5)).all()) and float(found[1].sum()) < 0.95 * float(found[0].sum())


def test_no_sketch_holds_more_than_half_of_its_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of words have more columns than a sample has rows: a basis of them took minutes."""
    for name, value in {"WIDE": 16, "SAMPLE": 100, "LOOSE": 99}.items():
        monkeypatch.setattr(blocks, name, value)
    found = [blocks.sketched(clumps(120, width, seed=4), Gauss(1.0)) for width in (100, 200, 204)]
    assert [None if one is None else one.factors[0].shape[1] for one in found] == [26, 51, None]


@pytest.mark.parametrize("kernel", [Gauss(0.5), Gauss(1.0), Ball(0.9)])
def test_bounds_for_several_states_at_once(kernel: Gauss | Ball, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WIDE": 16, "SAMPLE": 100, "LOOSE": 99}.items():
        monkeypatch.setattr(blocks, name, value)
    x = clumps(600, 16, seed=4)
    cover = Cover(x, kernel, torch.ones(600, dtype=torch.float64))
    one = copy(cover)
    one.add(x.rows(slice(3, 4)))
    states, sketch = torch.stack([cover.covered, one.covered]), blocks.sketched(x, kernel)
    assert sketch is not None
    for state, bounds, loose in zip((cover, one), *map(cover.all_bounds, [states] * 2, [None, sketch]), strict=True):
        gains = torch.tensor([state.gain(i) for i in range(600)], dtype=torch.float64)
        assert bool((bounds >= gains).all()) and bool((bounds <= gains + 0.1).all())
        assert bool((loose >= gains).all()) and float(loose.sum()) > float(bounds.sum())


def test_weights_are_checked() -> None:
    with pytest.raises(InputError, match="weights must be 3 finite numbers of at least 0"):
        coverage(badge.Dense(np.eye(3)), 1, np.random.default_rng(0), Gauss(1.0), torch.tensor([1.0, -1.0, 1.0]))
