"""The picks are a function of the pool and the seed: not of blocks, threads, bounds, sketches, memory or shards."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import badge
from badge.core.rows import LOST, Here
from badge.features import Exact, Features
from badge.outputs.part_rows import PartRows
from badge.samplers import envelope, kcenter, kmeanspp
from badge.samplers.envelope import SEGMENT, Masses
from badge.samplers.kcenter import kcenter_over
from badge.samplers.kmeanspp import kmeanspp_over
from badge.samplers.nearest import Tuning, sum_of_norms
from badge.samplers.nearest.few import within
from badge.samplers.shard import Shard
from badge.testing.laws import chi_square, kmeanspp_law, sq_dists, tally
from laws import ACCEPTED, TINY, force_sketch, tuned
from local_shards import LocalShards

module = importlib.import_module("badge.samplers.kmeanspp")
N, K = 900, 50


def outputs(n: int, seed: int = 0, dtype: Any = np.float32, width: int = 12) -> badge.Outputs:
    """ReLU features around class means and the softmax of scaled logits, a tenth of the rows twice."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(5, width))
    h = np.maximum(0, means[rng.integers(5, size=n)] + 0.7 * rng.normal(size=(n, width)))
    logits = h @ means.T * rng.uniform(0.2, 1.5, size=(n, 1))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    h[-n // 10 :], p[-n // 10 :] = h[: n // 10], p[: n // 10]
    return badge.Outputs((p / p.sum(axis=1, keepdims=True)).astype(dtype), h.astype(dtype))


OUT = outputs(N)


def pool(kind: str) -> tuple[Features, Features]:
    """Features of the kind, and some that are given."""
    dtype = {"float16": np.float16, "float64": np.float64}.get(kind, np.float32)
    g = badge.gradient_embedding(outputs(N, dtype=dtype, width=40 if kind == "wide" else 12), bias=kind == "bias")
    x = badge.Dense(outputs(N).embeddings) if kind == "dense" else g
    return x, x[slice(50, 70)]


KINDS = ["float16", "float32", "float64", "dense", "bias", "wide"]
bounded = functools.partial(Tuning, at_once=0)  # else all that these small pools need is compared at once
TUNINGS = {
    "all through bounds": bounded(),
    "some through bounds": Tuning(at_once=500),
    "blocks of 4": bounded(block=4, first_block=4, top=1),
    "blocks of 50": bounded(block=50, first_block=50, top=50),
    "one block": bounded(block=100_000, first_block=100_000, top=N - 1),
    "tiles of 7": bounded(tile=7, part=3, young=1, anchors=2),
    "tiles of the pool": bounded(tile=100_000, young=10_000),
    "rows followed to the end": bounded(follow=0.0, outlined=0.0),
    "rows dropped at once": bounded(follow=1.0, outlined=1.0, part=5),
    "outlined": bounded(newest=3, part=4, few=2, block=20),
    "sketched": bounded(sketch_from=1),
    "from another origin": bounded(origin_from=1),
    "sketched late": bounded(sketch_from=40, block=30),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TUNINGS)
def test_no_pick_depends_on_the_tuning(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    force_sketch(monkeypatch, rank=3)
    features, given = pool(kind)
    for (function, options), expected in zip(every_way(given), untuned(kind), strict=True):
        found = tuned(function, TUNINGS[name])(features, K, np.random.default_rng(1), **options)
        assert found.tolist() == expected


@functools.cache
def untuned(kind: str) -> list[list[int]]:
    features, given = pool(kind)
    ways = every_way(given)
    return [function(features, K, np.random.default_rng(1), **options).tolist() for function, options in ways]


def every_way(given: Features) -> list[tuple[Any, dict[str, Any]]]:
    return [(kmeanspp, {}), (kmeanspp, {"first": "max-norm"}), (kmeanspp, {"given": given}), (kcenter, {}),
            (kcenter, {"given": given})]  # fmt: skip


@pytest.mark.parametrize("function", [kmeanspp, kcenter])
def test_no_pick_depends_on_the_threads(function: Any) -> None:
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            g = badge.gradient_embedding(outputs(9_000))
            found.append(function(g, 200, np.random.default_rng(3)).tolist())
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_what_the_caller_draws_next_does_not_depend_on_it_either() -> None:
    g, after = badge.gradient_embedding(OUT), []
    for sampler in (kmeanspp, tuned(kmeanspp, TUNINGS["blocks of 50"])):
        rng = np.random.default_rng(0)
        sampler(g, 20, rng)
        after.append(rng.random())
    assert after[0] == after[1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_pick_depends_on_where_the_pool_is_kept(dtype: Any, tmp_path: Path) -> None:
    """In memory, memory-mapped, column by column, in parts, as the rest of a larger pool."""
    out = outputs(N, dtype=dtype)
    p, h = out.probabilities.numpy(), out.embeddings.numpy()
    for name, array in (("p", p), ("h", h)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = badge.Outputs(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("p", "h")))
    columns = badge.Outputs(np.asfortranarray(p), np.asfortranarray(h))
    parts = badge.Outputs.trusted(*(PartRows(torch.split(torch.from_numpy(x), 200)) for x in (p, h)))  # type: ignore[arg-type]
    larger = badge.Outputs(np.concatenate([p[:100], p]), np.concatenate([h[:100], h]))
    for strategy in ("badge", "kcenter-grad"):
        expected = badge.select_from(out, 30, strategy, seed=4)
        for other in (mapped, columns, parts):
            assert badge.select_from(other, 30, strategy, seed=4).tolist() == expected.tolist()
        found = badge.select_from(larger, 30, strategy, seed=4, exclude=range(100))
        assert (found - 100).tolist() == expected.tolist()


# --- shards ------------------------------------------------------------------------------------------------------------


class Unreliable(LocalShards):
    """Shards that travel as bytes, and of which some are lost: shard i with the call number n, for each (n, i)."""

    def __init__(self, features: Features, cuts: Sequence[int], lost: set[tuple[int, int]]) -> None:
        super().__init__(features, cuts)
        self.lost, self.calls = lost, 0

    def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        self.calls += 1
        gone = {i for n, i in self.lost if n == self.calls or n < 0}
        if (-1, -1) in self.lost:  # all of them, before every call, but never the news that they are told anew
            gone = set(arguments) if self.calls % 2 else set()
        for i in gone & set(arguments):
            self.shards[i] = self.make(i)
        lost = dict.fromkeys(gone & set(arguments), LOST)
        arguments = pickle.loads(pickle.dumps({i: mine for i, mine in arguments.items() if i not in gone}))
        return pickle.loads(pickle.dumps(super().ask(message, arguments))) | lost


SHARDED = 15 * SEGMENT - 100
CUTS: dict[int, list[int]] = {
    1: [],
    2: [7 * SEGMENT],
    4: [3 * SEGMENT, 5 * SEGMENT, 11 * SEGMENT],
    15: [i * SEGMENT for i in range(1, 15)],
}


@pytest.fixture(scope="module")
def sharded() -> tuple[Features, dict[Any, NDArray[np.int64]]]:
    g = badge.gradient_embedding(outputs(SHARDED))
    return g, {f: f(g, 250, np.random.default_rng(5)) for f in (kmeanspp, kcenter)}


@pytest.mark.parametrize("over", [kmeanspp_over, kcenter_over])
@pytest.mark.parametrize("shards", CUTS)
@pytest.mark.parametrize("lost", [set(), {(2, 1), (3, 0), (3, 2), (4, 3)}], ids=["kept", "lost"])
def test_no_pick_depends_on_the_shards(over: Any, shards: int, lost: set[tuple[int, int]], sharded: Any) -> None:
    features, expected = sharded
    pool = Unreliable(features, CUTS[shards], lost)
    picks = over(pool, 250, np.random.default_rng(5))
    assert picks.tolist() == expected[kmeanspp if over is kmeanspp_over else kcenter].tolist()
    assert pool.calls >= 4


@pytest.mark.parametrize("function", [kmeanspp, kcenter])
def test_bounds_only_save_work(function: Any) -> None:
    """Every shard forgets all that it knows before every message: nothing is ever known of a distance from before."""
    g = badge.gradient_embedding(OUT)
    over = kmeanspp_over if function is kmeanspp else kcenter_over
    forgetful = Unreliable(g, [], {(-1, -1)})
    assert over(forgetful, K, np.random.default_rng(2)).tolist() == function(g, K, np.random.default_rng(2)).tolist()


@pytest.mark.parametrize("many_given", [False, True])
@pytest.mark.parametrize("n", [120, 700])
@pytest.mark.parametrize("kind", ["float32", "dense"])
def test_the_last_rows_of_a_pool_are_picked_in_one_order(
    kind: str, n: int, many_given: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most events are rejected where few rows are left: U is rebuilt from distances. Fewer picks are the first of more."""
    exact: list[int] = []
    segments = Shard.segments

    def spy(shard: Shard, news: Any, envelope: Any) -> Any:
        exact.append(envelope.count if envelope.exact else 0)
        return segments(shard, news, envelope)

    monkeypatch.setattr(Shard, "segments", spy)
    x, given = (badge.Dense(o.embeddings) if kind == "dense" else badge.gradient_embedding(o) for o in
                (outputs(n), outputs(1000, seed=1)))  # fmt: skip

    def picks(k: int, tuning: Tuning | None = None) -> list[int]:
        sampler = kmeanspp if tuning is None else tuned(kmeanspp, tuning)
        return sampler(x, k, np.random.default_rng(1), given=given if many_given else None).tolist()

    expected = picks(n)
    assert sorted(expected) == list(range(n))
    assert len({count for count in exact if count}) > 1, "U was not rebuilt from distances: the test says nothing"
    for tuning in (Tuning(), bounded(), bounded(block=7, first_block=7), TINY):
        assert picks(n, tuning) == expected
    for k in (n // 3, n // 2, n // 2 + 5, 3 * n // 4, n - 1):
        assert picks(k) == expected[:k]


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e8])
def test_probabilities_whose_squares_vanish(scale: float) -> None:
    """Products of such numbers are lost, and what they were to be multiplied by is large."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = np.zeros((30, 5), np.float32)
        p[:, 0], p[:, 1:], p[0] = 1, 10.0 ** rng.uniform(-25, -21, size=(30, 4)), 0.2
        x = badge.gradient_embedding(badge.Outputs(p, (rng.random((30, 6)) * scale).astype(np.float32)))
        expected = kmeanspp(x, 25, np.random.default_rng(seed)).tolist()
        assert kmeanspp(x, 15, np.random.default_rng(seed)).tolist() == expected[:15]
        assert tuned(kmeanspp, bounded())(x, 25, np.random.default_rng(seed)).tolist() == expected


def test_the_stream_ends_where_products_vanish() -> None:
    """Factors of one's own are taken as they are: what products cannot tell apart is drawn uniformly."""
    a = np.float32([[0.5, -0.5], [0.0, 2.75e-23], [0.0, 2.75e-23]])
    x = badge.Factored(a, np.float32([[1e6, 0.0], [1e6, 0.0], [8e5, 6e5]]))
    for seed in range(20):
        assert sorted(kmeanspp(x, 3, np.random.default_rng(seed)).tolist()) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_picks_from_the_first_events_are_those_of_the_whole_stream(kind: str) -> None:
    x, _ = pool(kind)
    fell_back = []
    for features in (x, x[slice(0, 30)], x[np.arange(40) % 9]):
        for seed, k in itertools.product(range(4), (1, 2, 7, 20)):
            expected = kmeanspp_over(Here(features, Shard), k, np.random.default_rng(seed)).tolist()
            found = module.first_picks(features, k, np.random.default_rng(seed))
            fell_back.append(found is None)
            assert found is None or found.tolist() == expected
            assert kmeanspp(features, k, np.random.default_rng(seed)).tolist() == expected
    assert 0 < sum(fell_back) < len(fell_back) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_are_compared_as_many_are(kind: str) -> None:
    """Also where the threshold is the squared distance itself, or off by its last bit."""
    x, _ = pool(kind)
    rows = x.rows(torch.cat([torch.arange(12), torch.arange(4)]))
    exact = Exact.of(rows)
    i, j = torch.tril_indices(16, 16, -1)
    sq_dists = exact.sq_dists(i, exact, j)
    for at in range(len(i)):
        limits = torch.zeros(16, dtype=torch.float64)
        for limit in (sq_dists[at], torch.nextafter(sq_dists[at], torch.tensor(-1.0, dtype=torch.float64))):
            limits[i[at]] = limit
            expected = (sq_dists <= limits[i]).numpy()
            assert within(rows, rows, limits.numpy())[i, j].tolist() == expected.tolist()


def test_masses_by_norms_are_rounded_as_on_every_machine() -> None:
    """torch rounds some square roots to the wrong side."""
    for dtype in (torch.float32, torch.float64):
        sq_norms = torch.rand(2000, generator=torch.Generator().manual_seed(0), dtype=dtype) ** 20
        for reach in (0.0, 0.3):
            tiny = torch.finfo(dtype).tiny
            expected = [(math.sqrt(x) + reach) * (math.sqrt(x) + reach) * (1 + 1e-6) + tiny for x in sq_norms.tolist()]
            assert envelope.sum_of_norms(sq_norms.numpy(), reach).tolist() == expected
            assert np.allclose(sum_of_norms(sq_norms, reach), expected, rtol=1e-15)


def test_rejects_drawing_from_tightened_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where events are drawn from what is known so far the law is right, and the picks depend on the blocks."""

    def catch_up(shard: Any, news: Any, envelope: Any) -> Any:
        shard._hear(news)
        every = torch.arange(len(shard.features))
        bounds = shard.bounds.at(every).numpy().copy()
        if shard.fresh:  # the events of a block and the masses that they were drawn from belong together
            shard.masses = Masses(bounds, np.copy)
        shard.fresh = not shard.fresh
        return shard.masses

    def survivors(stream: Any, size: int) -> Any:
        found = stream.pool.tell(Shard.segments, [(stream.envelope,)])
        stream.cumulative = np.cumsum(np.concatenate(found))
        stream.mass = float(stream.cumulative[-1])
        return right(stream, size)

    right = module.Stream.survivors
    monkeypatch.setattr(Shard, "fresh", True, raising=False)
    monkeypatch.setattr(Shard, "_catch_up", catch_up)
    monkeypatch.setattr(module.Stream, "_start", start_from_bounds)
    monkeypatch.setattr(module.Stream, "survivors", survivors)
    g = badge.gradient_embedding(OUT)
    picks = [tuned(kmeanspp, bounded(block=b, first_block=b))(g, K, np.random.default_rng(1)) for b in (16, 64)]
    assert (picks[0] == picks[1]).mean() < 0.9


def start_from_bounds(stream: Any, envelope: Any) -> None:
    stream.envelope, stream.mass, stream.first = envelope, 1.0, np.array([0, 1])
    stream.events, stream.accepted, stream.weighed, stream.picked = 0, [], 0, 0.0


def test_no_pick_depends_on_layout_where_picks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms so skewed that picks soon have most of U: it is rebuilt without them, in the middle of blocks."""
    starts: list[Any] = []
    start = module.Stream._start
    monkeypatch.setattr(module.Stream, "_start", lambda stream, u: starts.append(u) or start(stream, u))
    rng = np.random.default_rng(0)
    x = badge.Dense(rng.normal(size=(2 * SEGMENT, 6)) * np.exp(2 * rng.normal(size=(2 * SEGMENT, 1))))
    expected, usual = kmeanspp(x, 600, np.random.default_rng(1)).tolist(), list(starts)
    assert sum(u.count > 0 and not u.exact for u in usual) >= 2
    for name in ("blocks of 4", "blocks of 50", "one block"):
        starts.clear()
        assert tuned(kmeanspp, TUNINGS[name])(x, 600, np.random.default_rng(1)).tolist() == expected
        assert starts == usual
    monkeypatch.setattr("badge.samplers.envelope.SMALL", 0)
    for lost in (set(), {(n, n % 2) for n in range(3, 40, 4)}):
        assert kmeanspp_over(Unreliable(x, [SEGMENT], lost), 600, np.random.default_rng(1)).tolist() == expected


# --- the law where U is rebuilt, and far from the origin -------------------------------------------------------------


POINTS = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0], [3.0, 1.0], [1.0, -1.0], [40.0, 9.0]])
RESTARTS: dict[str, tuple[int, dict[str, Any]]] = {
    "duplicates, into the uniform rest": (5, {}),
    "k is the number of distinct rows": (4, {}),
    "the first centre is far away": (3, {"first": "max-norm"}),
    "given": (2, {"given": badge.Dense(POINTS[[4, 5]] + 0.5)}),
}


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("name", RESTARTS)
def test_law_where_the_stream_is_restarted(name: str, forced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it comes, and after every fourth event: from norms where these have changed, else from all distances."""
    k, options = RESTARTS[name]
    monkeypatch.setattr(module, "FIRST_PICKS", 0)
    if forced:
        for constant, value in (("CHECK", 4), ("RARE", 1), ("SHORTER", 1.0)):
            monkeypatch.setattr(module, constant, value)
    starts: list[Any] = []
    start = module.Stream._start
    monkeypatch.setattr(module.Stream, "_start", lambda stream, u: starts.append(u) or start(stream, u))
    given = options["given"].as_matrix().numpy() if "given" in options else None
    points = badge.Dense(POINTS)
    counts = tally(lambda rng: kmeanspp(points, k, rng, **options), 300, 3)
    assert chi_square(counts, kmeanspp_law(POINTS, k, options.get("first", "uniform"), given)) > ACCEPTED
    if forced or k > 3:
        assert sum(u.exact for u in starts) >= 60 * (forced or k > 4)
        assert sum(u.count > 0 and not u.exact for u in starts) >= 100 * (given is None)
        assert len(starts) > 400


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
def test_law_far_from_the_origin(offset: float) -> None:
    """float64 vectors with a common offset: ‖x‖² + ‖c‖² − 2⟨x, c⟩ would have lost all its digits at 1e8."""
    x = np.random.default_rng(0).normal(size=(5, 3)) + offset
    points = badge.Dense(x)
    counts = tally(lambda rng: kmeanspp(points, 3, rng), 200, 4)
    assert chi_square(counts, kmeanspp_law(x, 3)) > ACCEPTED


@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("tuning", [Tuning(), TINY, replace(TINY, origin_from=2)], ids=["whole", "tiny", "shifted"])
def test_greedy_picks_far_from_the_origin(offset: float, tuning: Tuning) -> None:
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(40, 4)) + offset
        picks = tuned(kcenter, tuning)(badge.Dense(x), 30, np.random.default_rng(seed)).tolist()
        among = sq_dists(x)
        greedy = picks[:1]
        while len(greedy) < 30:
            greedy.append(int(among[:, greedy].min(axis=1).argmax()))
        assert picks == greedy
