"""Furthest-first: the picks of the blocked sampler are those of the plain greedy loop, one for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import badge
from badge.samplers import kcenter
from badge.samplers.envelope import SEGMENT
from badge.samplers.kcenter import kcenter_over
from badge.samplers.plain import plain_kcenter
from badge.testing.laws import sq_dists
from laws import TINY, force_sketch, tuned
from local_shards import LocalShards


@pytest.fixture(params=["whole", "tiny", "sketched"])
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "sketched":
        force_sketch(monkeypatch)
    sketched = replace(TINY, sketch_from=1)
    return {"whole": kcenter, "tiny": tuned(kcenter, TINY), "sketched": tuned(kcenter, sketched)}[request.param]


def greedy(x: NDArray[np.float64], k: int, first: int | None, given: NDArray[np.float64] | None) -> list[int]:
    """Furthest-first by its definition; exact on integers."""
    picks = [] if first is None else [first]
    d = sq_dists(x, x[picks] if given is None else given).min(axis=1)
    d[picks] = -1
    while len(picks) < k:
        picks.append(int(d.argmax()))
        d = np.minimum(d, sq_dists(x, x[picks[-1:]])[:, 0])
        d[picks] = -1
    return picks


def pools() -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    grid = rng.integers(-3, 4, size=(24, 3)).astype(float)
    few = rng.normal(size=(8, 6)).astype(np.float32) * 70
    return {
        "random float32": rng.normal(size=(24, 8)).astype(np.float32),
        "random float64": rng.normal(size=(24, 8)),
        "float16": rng.normal(size=(24, 8)).astype(np.float16),
        "duplicates": few[rng.integers(8, size=24)],
        "grid": grid,
        "grid float32, far out": (grid + 1000).astype(np.float32),
        "zeros": np.zeros((20, 3), dtype=np.float32),
        "skewed": (rng.normal(size=(24, 5)) * 10.0 ** rng.uniform(-3, 2, size=(24, 1))).astype(np.float32),
    }


@pytest.mark.parametrize("name", pools())
@pytest.mark.parametrize("conditioned", [False, True])
def test_identical_to_the_plain_loop(name: str, conditioned: bool, sampler: Any) -> None:
    x = pools()[name]
    features, given = badge.Dense(x), badge.Dense(x[[3, 7, 5]]) if conditioned else None
    for k in (1, len(x)):
        fast, plain = (f(features, k, np.random.default_rng(k), given=given).tolist() for f in (sampler, plain_kcenter))
        assert fast == plain
        assert len(set(fast)) == k


@pytest.mark.parametrize("name", ["grid", "grid float32, far out", "zeros"])
@pytest.mark.parametrize("conditioned", [False, True])
def test_many_exact_ties_go_to_the_lowest_position(name: str, conditioned: bool, sampler: Any) -> None:
    """On integers the definition itself is exact; float32 far from the origin is not, and must not matter."""
    x = pools()[name]
    given = x[[3, 7, 5]] if conditioned else None
    picks = sampler(badge.Dense(x), 20, np.random.default_rng(5), given=badge.Dense(given) if conditioned else None)
    exact = x.astype(float)
    first = None if conditioned else int(picks[0])
    assert picks.tolist() == greedy(exact, 20, first, exact[[3, 7, 5]] if conditioned else None)


@settings(max_examples=40, deadline=None, derandomize=True)
@for_all(
    points=st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=14),
    centres=st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=3),
    seed=st.integers(0, 5),
)
def test_any_small_grid(points: list[tuple[int, int]], centres: list[tuple[int, int]], seed: int) -> None:
    x = np.array(points, dtype=float)
    given = np.array(centres, dtype=float) if centres else None
    near = None if given is None else badge.Dense(given)
    picks = tuned(kcenter, TINY)(badge.Dense(x), len(x), np.random.default_rng(seed), given=near)
    first = int(np.random.default_rng(seed).integers(len(x))) if given is None else None
    assert picks.tolist() == greedy(x, len(x), first, given)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_embeddings(seed: int, sampler: Any) -> None:
    rng = np.random.default_rng(seed)
    out = badge.Outputs.from_logits(3 * rng.normal(size=(120, 4)), np.maximum(0, rng.normal(size=(120, 6))))
    g = badge.gradient_embedding(out)
    picks = [f(g, 30, np.random.default_rng(seed)).tolist() for f in (sampler, plain_kcenter)]
    assert picks[0] == picks[1]
    assert picks[0] == sampler(badge.Dense(g.as_matrix()), 30, np.random.default_rng(seed)).tolist()


def test_a_larger_pool_with_all_its_machinery() -> None:
    """Skewed norms, some duplicates, enough picks that bounds are renewed for the whole pool on the way."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2000, 8)) * 10.0 ** rng.uniform(-2, 1, size=(2000, 1))).astype(np.float32)
    x[1500:] = x[:500]
    features = badge.Dense(x)
    picks = [f(features, 250, np.random.default_rng(1)).tolist() for f in (kcenter, plain_kcenter)]
    assert picks[0] == picks[1]


def test_the_first_pick_is_uniform_by_the_rng() -> None:
    x = badge.Dense([[0.0], [1.0], [5.0], [9.0]])
    assert {int(kcenter(x, 1, np.random.default_rng(s))[0]) for s in range(40)} == {0, 1, 2, 3}


def test_many_given_points_without_their_matrix() -> None:
    """3,000 labelled against 600: identical to the loop, and the given points are looked at in blocks."""
    rng = np.random.default_rng(0)
    x, given = (badge.Dense(rng.normal(size=(n, 4)).astype(np.float32)) for n in (600, 3000))
    d = sq_dists(x.as_matrix().double().numpy(), given.as_matrix().double().numpy()).min(axis=1)
    assert kcenter(x, 1, rng, given=given)[0] == d.argmax()


class Counted(LocalShards):
    """Shards that count the driver's messages."""

    rounds = 0

    def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        self.rounds += 1
        return super().ask(message, arguments)


def test_rounds_are_few_and_do_not_depend_on_the_shards() -> None:
    """Points in a cube, where distances fall slowly: 67 rounds for 300 picks, before a shard settled its rows itself."""
    x = badge.Dense(np.random.default_rng(0).random((6 * SEGMENT, 3)).astype(np.float32))
    picks, rounds = [], []
    for cuts in ([], [SEGMENT * i for i in range(1, 6)]):
        shards = Counted(x, cuts)
        picks.append(kcenter_over(shards, 300, np.random.default_rng(0)).tolist())
        rounds.append(shards.rounds)
    assert picks[0] == picks[1]
    assert max(rounds) <= 30 and max(rounds) <= 2 * min(rounds)
