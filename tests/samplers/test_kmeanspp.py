"""k-means++: the law by enumeration, wrong samplers that the same test rejects, and the corners of floating point."""

from __future__ import annotations

import functools
import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import badge
from badge.errors import InputError
from badge.features import Features
from badge.features.rows import resolution
from badge.samplers import kmeanspp
from badge.samplers.nearest import Tuning
from badge.samplers.plain import plain_kmeanspp
from badge.testing.checks import SMALL
from badge.testing.laws import Law, chi_square, kmeanspp_law, tally
from laws import ACCEPTED, REJECTED, TINY, force_sketch, tuned, two_sample

module = importlib.import_module("badge.samplers.kmeanspp")  # the package's attribute of that name is the function
TINY_SKETCHED = replace(TINY, sketch_from=1)


@pytest.fixture(params=["whole", "tiny", "sketched"])
def sampler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The sampler as it is; with everything as small as it goes; that with a sketch."""
    if request.param == "sketched":
        force_sketch(monkeypatch)
    return {"whole": kmeanspp, "tiny": tuned(kmeanspp, TINY), "sketched": tuned(kmeanspp, TINY_SKETCHED)}[request.param]


G = badge.gradient_embedding(SMALL)
X = G.as_matrix().numpy()


def features(kind: str, ids: Any = slice(None)) -> Features:
    return G[ids] if kind == "Factored" else badge.Dense(X[ids])


# --- the law -----------------------------------------------------------------------------------------------------------


def test_the_enumeration_by_hand() -> None:
    """Points 0, 1, 3 on a line: after 0 the others weigh 1 and 9; after 1: 1 and 4; after 3: 9 and 4."""
    law = kmeanspp_law(np.array([[0.0], [1.0], [3.0]]), 2)
    assert law[0, 1] == pytest.approx(1 / 3 * 1 / 10)
    assert law[1, 2] == pytest.approx(1 / 3 * 4 / 5)
    assert law[2, 0] == pytest.approx(1 / 3 * 9 / 13)
    assert sum(law.values()) == pytest.approx(1)


#: a right sampler with another tuning makes the same picks, draw by draw: fewer draws tell than for a law
SAME = 60


def in_turn(sampler: Any, pool: Features, k: int, draws: int, seed: int, **options: Any) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [sampler(pool, k, rng, **options).tolist() for _ in range(draws)]


def check_law(sampler: Any, pool: Features, k: int, draws: int, seed: int, law: Law, **options: Any) -> None:
    """The law of the sampler as it is, by chi-square; with another tuning, the picks of the sampler as it is."""
    if sampler is kmeanspp:
        assert chi_square(tally(lambda rng: kmeanspp(pool, k, rng, **options), draws, seed), law) > ACCEPTED
    else:
        expected = in_turn(kmeanspp, pool, k, SAME, seed, **options)
        assert in_turn(sampler, pool, k, SAME, seed, **options) == expected


@pytest.mark.parametrize("kind", ["Factored", "Dense"])
def test_blocked_law(kind: str, sampler: Any) -> None:
    check_law(sampler, features(kind), 3, 500, 2, kmeanspp_law(X, 3))


def test_law_given_centres(sampler: Any) -> None:
    """Labelled points count as centres: the first pick is weighted by distance too, whatever `first` says."""
    pool, given = [0, 1, 2, 4], [3]
    law = kmeanspp_law(X[pool], 2, given=X[given])
    check_law(sampler, G[pool], 2, 400, 3, law, first="max-norm", given=G[given])


@pytest.mark.parametrize("sampler", [plain_kmeanspp, kmeanspp])
def test_law_with_the_longest_first(sampler: Any) -> None:
    """What the authors' code does, on request only."""
    law = kmeanspp_law(X, 3, first="max-norm")
    counts = tally(lambda rng: sampler(G, 3, rng, first="max-norm"), 400, 4)
    assert chi_square(counts, law) > ACCEPTED
    assert chi_square(counts, kmeanspp_law(X, 3)) < REJECTED


def test_law_with_duplicates_and_zeros(sampler: Any) -> None:
    """Three of five rows coincide at the origin: k = 4 runs into the uniform rest."""
    x = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [2.0, 1.0], [1.0, -1.0]])
    check_law(sampler, badge.Dense(x), 4, 200, 5, kmeanspp_law(x, 4))


def skewed(n: int, seed: int) -> badge.Outputs:
    """ReLU features around class means and the softmax of scaled logits: norms over decades, like a trained model's."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(10, 16))
    h = np.maximum(0, means[rng.integers(10, size=n)] + 0.7 * rng.normal(size=(n, 16))).astype(np.float32)
    return badge.Outputs.from_logits((h @ means.T * 0.8).astype(np.float32), h)


@functools.cache
def large_pool() -> tuple[Features, NDArray[np.int64]]:
    """A pool of 20,000, and the decile of each norm."""
    g = badge.gradient_embedding(skewed(20_000, 0))
    norms = g.sq_norms.numpy()
    return g, np.searchsorted(np.quantile(norms, np.linspace(0.1, 0.9, 9)), norms)


def deciles(sampler: Any, seeds: int) -> NDArray[np.int64]:
    g, decile = large_pool()
    picks = [sampler(g, 60, np.random.default_rng([9, s])) for s in range(seeds)]
    return np.bincount(decile[np.concatenate(picks)], minlength=10)


@functools.cache
def plain_deciles() -> NDArray[np.int64]:
    return deciles(plain_kmeanspp, 20)


@pytest.mark.parametrize("sketched", [False, True])
def test_large_pool_against_the_plain_loop(sketched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """N = 20,000: picks binned by decile of the norm; blocks, tiles and pruning are all at work."""
    fast: Any = kmeanspp
    if sketched:
        force_sketch(monkeypatch, rank=8)
        fast = tuned(kmeanspp, Tuning(at_once=0, sketch_from=1))
    merged = np.array([deciles(fast, 60), plain_deciles()])
    while (merged.sum(axis=0) * merged.sum(axis=1).min() / merged.sum()).min() < 5:  # short ones are rarely picked
        merged = np.column_stack([merged[:, :2].sum(axis=1), merged[:, 2:]])
    assert merged.shape[1] >= 4
    assert two_sample(*merged) > ACCEPTED
    uniform = np.full(merged.shape[1], merged[0].sum() // merged.shape[1])
    assert two_sample(merged[0], uniform) < REJECTED  # the bins can tell


def test_rejects_a_sketch_that_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sketch whose part outside the subspace is forgotten rules centres out that are near: the picks are others."""
    force_sketch(monkeypatch, outside=0.0)
    for kind in ("Factored", "Dense"):
        with pytest.raises(AssertionError):
            check_law(tuned(kmeanspp, TINY_SKETCHED), features(kind), 3, 500, 2, {})


# --- wrong samplers that the helper must reject ------------------------------------------------------------------------


def weighted(
    x: NDArray[np.float64], k: int, rng: np.random.Generator, power: float = 1.0, ghost: bool = False, trials: int = 1
) -> list[int]:
    """k-means++ with a fault on request: another power of D², the origin as a centre, the best of several trials."""
    picks = [int(rng.integers(len(x)))]
    d = ((x - x[picks[0]]) ** 2).sum(axis=1)
    if ghost:
        d = np.minimum(d, (x**2).sum(axis=1))
    while len(picks) < k:
        mass = d**power
        tried = rng.choice(len(x), size=trials, p=mass / mass.sum())
        new = [np.minimum(d, ((x - x[t]) ** 2).sum(axis=1)) for t in tried]
        best = int(np.argmin([v.sum() for v in new]))
        picks.append(int(tried[best]))
        d = new[best]
    return picks


def test_the_helper_accepts_its_own_faultless_twin() -> None:
    assert chi_square(tally(lambda rng: weighted(X, 3, rng), 2000, 7), kmeanspp_law(X, 3)) > ACCEPTED


@pytest.mark.parametrize("fault", [{"ghost": True}, {"power": 0.5}, {"trials": 3}], ids=str)
def test_rejects_wrong_samplers(fault: dict[str, Any]) -> None:
    """A ghost centre at the origin (scikit-activeml 1.0.1), distance for squared distance, greedy k-means++."""
    counts = tally(lambda rng: weighted(X, 3, rng, **fault), 2000, 8)
    assert chi_square(counts, kmeanspp_law(X, 3)) < REJECTED


def test_rejects_a_forgotten_label() -> None:
    """small-text 1.4.1: a = −p, so that confidence counts as uncertainty."""
    wrong = torch.einsum("nc,nd->ncd", -SMALL.probabilities, SMALL.embeddings).flatten(1).numpy()
    counts = tally(lambda rng: kmeanspp(badge.Dense(wrong), 3, rng), 600, 9)
    assert chi_square(counts, kmeanspp_law(X, 3)) < REJECTED
    assert chi_square(counts, kmeanspp_law(wrong, 3)) > ACCEPTED


def test_rejects_a_block_without_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking candidates by their stale distances bends the law."""

    def stale(rows: Any, others: Any, thresholds: Any) -> Any:
        table = within(rows, others, thresholds)
        same = (rows.as_matrix()[:, None] == rows.as_matrix()).all(dim=2).numpy()
        same[:, 0] = True  # the first row is a centre from before the block
        return table & same

    within = module.within
    monkeypatch.setattr(module, "within", stale)
    counts = tally(lambda rng: kmeanspp(G, 3, rng), 600, 10)
    assert chi_square(counts, kmeanspp_law(X, 3)) < REJECTED


def test_rejects_a_block_that_looks_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through the events in an order that depends on those not yet gone through bends the law."""

    def look_ahead(stream: Any, size: int) -> Any:
        found = survivors(stream, size)
        order = found.threshold.argsort(descending=True)
        return replace(
            found, position=found.position[order.numpy()], rows=found.rows[order], threshold=found.threshold[order]
        )

    survivors = module.Stream.survivors
    monkeypatch.setattr(module.Stream, "survivors", look_ahead)
    monkeypatch.setattr(module, "FIRST_PICKS", 0)
    counts = tally(lambda rng: kmeanspp(G, 3, rng), 600, 11)
    assert chi_square(counts, kmeanspp_law(X, 3)) < REJECTED


# --- floating point ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_no_duplicate_while_a_distinct_point_is_left(seed: int, sampler: Any) -> None:
    """20 distinct rows at norm² 3·10⁴ in float32, 6 copies of each: the first 20 picks are all distinct rows.

    DISTIL and scikit-activeml repeat; one repeat turns the rest of a bmdal-reg batch random.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(20, 40)).astype(np.float32)
    x *= 173 / np.linalg.norm(x, axis=1, keepdims=True)
    group = rng.permutation(np.repeat(np.arange(20), 6))
    picks = sampler(badge.Dense(x[group]), 27, np.random.default_rng(seed))
    assert sorted(group[picks[:20]]) == list(range(20))
    assert len(set(picks.tolist())) == 27


def test_no_duplicate_of_factored_rows(sampler: Any) -> None:
    out = skewed(25, 1)
    group = np.random.default_rng(0).permutation(np.repeat(np.arange(25), 8))
    pool = badge.Outputs(out.probabilities[group], out.embeddings[group] * 50)
    picks = sampler(badge.gradient_embedding(pool), 25, np.random.default_rng(0))
    assert sorted(group[picks]) == list(range(25))


def test_never_a_row_that_coincides_with_a_given_one(sampler: Any) -> None:
    x = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32) * 60
    pool = np.concatenate([x, x[:10]])
    picks = sampler(badge.Dense(pool), 10, np.random.default_rng(1), given=badge.Dense(x[:10]))
    assert sorted(picks.tolist()) == list(range(10, 20))


def test_all_zero_pool_is_uniform(sampler: Any) -> None:
    """DISTIL and the authors' code crash here."""
    x = np.zeros((5, 3))
    check_law(sampler, badge.Dense(x), 2, 200, 12, kmeanspp_law(x, 2))


def test_the_whole_pool(sampler: Any) -> None:
    g = badge.gradient_embedding(skewed(70, 2))
    assert sorted(sampler(g, 70, np.random.default_rng(0)).tolist()) == list(range(70))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_skew_of_norms(dtype: Any, sampler: Any) -> None:
    """Norms over 18 decades. After the longest all others are equally far; from then on the longest left is certain."""
    x = np.diag(10.0 ** -np.arange(0, 20, 2)).astype(dtype)
    for seed in range(5):
        picks = sampler(badge.Dense(x), 10, np.random.default_rng(seed), first="max-norm").tolist()
        assert sorted(picks) == list(range(10))
        longer = list(range(1, picks[1]))
        assert picks[0] == 0
        assert picks[2 : 2 + len(longer)] == longer


def test_float16_is_computed_in_float32(sampler: Any) -> None:
    out = skewed(500, 3)
    half = badge.Outputs(out.probabilities.half(), out.embeddings.half())
    full = badge.Outputs.trusted(half.probabilities.float(), half.embeddings.float())
    picks = sampler(badge.gradient_embedding(half), 40, np.random.default_rng(0))
    assert picks.tolist() == sampler(badge.gradient_embedding(full), 40, np.random.default_rng(0)).tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("bias", [False, True])
def test_factored_and_matrix_agree_pick_for_pick(seed: int, bias: bool) -> None:
    out = skewed(400, seed)
    out = badge.Outputs(
        out.probabilities.double() / out.probabilities.double().sum(dim=1, keepdim=True), out.embeddings
    )
    g = badge.gradient_embedding(out, bias=bias)
    x = badge.Dense(g.as_matrix())
    for sampler in (kmeanspp, plain_kmeanspp):
        picks = [sampler(f, 50, np.random.default_rng(seed)).tolist() for f in (g, x)]
        assert picks[0] == picks[1]


def test_the_origin_is_no_centre() -> None:
    """With a ghost centre at the origin an all-zero row could never be picked second."""
    x = np.array([[0.0, 0.0], [5.0, 0.0]])
    assert {kmeanspp(badge.Dense(x), 2, np.random.default_rng(s))[1] for s in range(20)} == {0, 1}


@pytest.mark.parametrize("sampler", [kmeanspp, badge.samplers.kcenter])
def test_autocast_around_it_changes_nothing(sampler: Any) -> None:
    g = badge.gradient_embedding(skewed(3_000, 1))
    picks = sampler(g, 300, np.random.default_rng(0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (sampler(g, 300, np.random.default_rng(0)) == picks).all()


def test_coarse_products_are_allowed_for() -> None:
    """Where torch may multiply in TF32 or bfloat16, more centres are compared in float64."""
    assert resolution(torch.float32) == torch.finfo(torch.float32).eps
    torch.set_float32_matmul_precision("medium")
    try:
        assert resolution(torch.float32) == 2**-7 and resolution(torch.float64) == torch.finfo(torch.float64).eps
        x = badge.Dense(X)
        assert chi_square(tally(lambda rng: kmeanspp(x, 3, rng), 500, 2), kmeanspp_law(X, 3)) > ACCEPTED
    finally:
        torch.set_float32_matmul_precision("highest")


def test_given_rows_of_another_dtype_are_cast_first() -> None:
    """0.7 in float64 is not 0.7 in float32: the given row is rounded once, and then coincides."""
    pool = badge.Dense(np.array([[0.7], [0.7001]], dtype=np.float32))
    given = badge.Dense(np.array([[0.7]]))
    assert all(kmeanspp(pool, 1, np.random.default_rng(s), given=given).tolist() == [1] for s in range(20))


def test_given_rows_that_overflow_are_refused() -> None:
    pool = badge.Dense(np.array([[0.0], [1.0]], dtype=np.float32))
    with pytest.raises(InputError, match="overflow float32"):
        kmeanspp(pool, 1, np.random.default_rng(0), given=badge.Dense(np.array([[3e19]], dtype=np.float32)))


def test_no_global_state_is_touched() -> None:
    g = badge.gradient_embedding(skewed(200, 4))
    torch.manual_seed(0)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    numpy_before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    kmeanspp(g, 20, np.random.default_rng(0))
    assert torch.equal(before, torch.random.get_rng_state())
    assert (numpy_before == np.random.get_state(legacy=False)["state"]["key"]).all()  # noqa: NPY002
    assert torch.get_num_threads() == threads
