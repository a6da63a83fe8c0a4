"""k-DPP: the exact law over all subsets, detailed balance of the swap chain, and what happens at the rank."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import badge
from badge.errors import InputError, RankError
from badge.samplers import kdpp
from badge.samplers.swap_chain import Block, factorised, independent_rows, invert, swap_chain, uniform_rows, unit
from badge.testing.laws import as_sets, chi_square, kdpp_law, tally
from laws import ACCEPTED, REJECTED

chain = importlib.import_module("badge.samplers.swap_chain")
sampler = importlib.import_module("badge.samplers.kdpp")


def outputs(n: int, c: int, d: int, seed: int = 0) -> badge.Outputs:
    rng = np.random.default_rng(seed)
    return badge.Outputs.from_logits(rng.normal(size=(n, c)), rng.normal(size=(n, d)))


def matrix(g: badge.Factored | badge.Dense) -> NDArray[np.float64]:
    return g.as_matrix().double().numpy()


# --- exact -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "c", "d", "k"),
    [(5, 3, 2, 2), (6, 3, 2, 3), (6, 2, 2, 2), (6, 1, 3, 3)],
    ids=["primal", "equal", "dual", "one"],
)
def test_exact_law(n: int, c: int, d: int, k: int) -> None:
    """N ≤ C·D decomposes the Gram matrix, N > C·D the dual kernel; the law is the same."""
    g = badge.gradient_embedding(outputs(n, c, d, seed=n + c))
    law = kdpp_law(matrix(g), k)
    counts = as_sets(tally(lambda rng: kdpp(g, k, rng, method="exact"), 1200, 1))
    assert chi_square(counts, law) > ACCEPTED


def test_exact_law_of_one_eigenvalue_far_above_the_others() -> None:
    x = np.random.default_rng(2).normal(size=(5, 3)) * [100.0, 1.0, 0.01]
    counts = as_sets(tally(lambda rng: kdpp(badge.Dense(x), 3, rng, method="exact"), 1500, 2))
    assert chi_square(counts, kdpp_law(x, 3)) > ACCEPTED


@pytest.mark.parametrize("wrong", ["uniform", "norms", "greedy order"])
def test_rejects_wrong_samplers(wrong: str) -> None:
    """Sets drawn uniformly, by squared norm alone, or one at a time by residual (the adaptive law, not the k-DPP)."""
    x = matrix(badge.gradient_embedding(outputs(6, 3, 2, seed=9)))

    def draw(rng: np.random.Generator) -> Any:
        mass = np.ones(6) if wrong == "uniform" else (x**2).sum(axis=1)
        if wrong != "greedy order":
            return rng.choice(6, size=2, replace=False, p=mass / mass.sum())
        i = int(rng.choice(6, p=mass / mass.sum()))
        left = np.maximum(0, mass - (x @ x[i]) ** 2 / mass[i])
        left[i] = 0
        return [i, int(rng.choice(6, p=left / left.sum()))]

    assert chi_square(as_sets(tally(draw, 6000, 3)), kdpp_law(x, 2)) < REJECTED


def test_elementary_symmetric_polynomials_in_log_space() -> None:
    values = np.random.default_rng(0).random(7) * 1e200
    table = sampler.log_elementary_symmetric(values, 4)
    for k in range(5):
        parts = [np.log(list(s)).sum() for s in itertools.combinations(values, k)]
        assert table[k, -1] == pytest.approx(np.logaddexp.reduce(parts), rel=1e-12)


def test_exact_refuses_above_the_limit() -> None:
    g = badge.Factored(np.ones((5000, 2)), np.ones((5000, 4000)))
    with pytest.raises(InputError, match=r"min\(N, C·D\) = min\(5000, 8000\), above the limit 4096.*mcmc"):
        kdpp(g, 2, np.random.default_rng(0), method="exact")


# --- the chain ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3])
def test_ratio_is_the_ratio_of_determinants(k: int) -> None:
    """Also after several accepted swaps within one block, for every proposal behind them."""
    g = badge.gradient_embedding(outputs(9, 3, 3, seed=4))
    x = unit(g, torch.arange(9))
    full = x.gram(x).numpy()

    def det(s: list[int]) -> float:
        return float(np.linalg.det(full[np.ix_(s, s)]))

    inside, proposals = list(range(k)), list(range(k, 9))
    members = unit(g, torch.tensor(inside))
    block = Block(invert(members), members, unit(g, torch.tensor(proposals)))
    for t, swap_slot in ((0, 1), (2, 0), (3, 1), (4, 1)):
        for later in range(t, len(proposals)):
            for slot in range(k):
                swapped = [proposals[later] if s == slot else inside[s] for s in range(k)]
                assert block.ratio(later, slot) == pytest.approx(det(swapped) / det(inside), rel=1e-8)
        block.swap(t, swap_slot)
        inside[swap_slot] = proposals[t]
    np.testing.assert_allclose(block.inverse().numpy(), np.linalg.inv(full[np.ix_(inside, inside)]), rtol=1e-8)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3)])
def test_detailed_balance(n: int, k: int) -> None:
    """The transition matrix over all subsets, from the ratios that the chain uses, keeps the law of the k-DPP."""
    g = badge.gradient_embedding(outputs(n, 3, 2, seed=n))
    norms = g.sq_norms.double().numpy()
    law = kdpp_law(matrix(g), k)
    states = list(law)
    transition = np.zeros((len(states), len(states)))
    for a, state in enumerate(states):
        others = [i for i in range(n) if i not in state]
        members = unit(g, torch.tensor(state))
        block = Block(invert(members), members, unit(g, torch.tensor(others)))
        for (t, new), (slot, old) in itertools.product(enumerate(others), enumerate(state)):
            b = states.index(tuple(sorted({*state, new} - {old})))
            transition[a, b] += min(1.0, block.ratio(t, slot) * norms[new] / norms[old]) / (k * len(others))
        transition[a, a] = 1 - transition[a].sum()
    pi = np.array(list(law.values()))
    flow = pi[:, None] * transition
    np.testing.assert_allclose(flow, flow.T, atol=1e-7)
    np.testing.assert_allclose(pi @ transition, pi, atol=1e-7)
    assert transition.min() >= 0
    assert abs(np.sort(np.abs(np.linalg.eigvals(transition)))[-2]) < 1  # and it has no other


def test_frequencies_after_many_steps() -> None:
    x = np.array([[1.0, 0.2], [0.3, 2.0], [0.8, 0.9], [1.5, -0.5]])
    counts = as_sets(tally(lambda rng: kdpp(badge.Dense(x), 2, rng, steps=60), 200, 5))
    assert chi_square(counts, kdpp_law(x, 2)) > ACCEPTED


@pytest.mark.parametrize("start", ["uniform", "cholesky"])
def test_one_step_from_the_start_by_hand(start: Any) -> None:
    """After one step the law is that of the start, times the transition matrix: few steps remember where they started."""
    x = np.array([[1.0, 0.2], [0.3, 2.0], [0.8, 0.9], [1.5, -0.5]])
    g = badge.Dense(x)
    gram = x @ x.T
    det = {s: np.linalg.det(gram[np.ix_(s, s)]) for s in itertools.combinations(range(4), 2)}
    first = {tuple(sorted(independent_rows(g, 2).tolist())): 1.0} if start == "cholesky" else dict.fromkeys(det, 1 / 6)
    law = dict.fromkeys(det, 0.0)
    for state, p in first.items():
        for old, new in itertools.product(state, set(range(4)) - set(state)):
            s = tuple(sorted({*state, new} - {old}))
            law[s] += p * min(1.0, det[s] / det[state]) / 4
            law[state] += p * (1 - min(1.0, det[s] / det[state])) / 4
    counts = as_sets(tally(lambda rng: kdpp(g, 2, rng, steps=1, start=start), 600, 6))
    assert chi_square(counts, law) > ACCEPTED
    other = as_sets(
        tally(lambda rng: kdpp(g, 2, rng, steps=1, start={"uniform": "cholesky"}.get(start, "uniform")), 600, 6)
    )  # type: ignore[arg-type]
    assert chi_square(other, law) < REJECTED


def test_the_uniform_start_is_uniform() -> None:
    g = badge.Dense(np.random.default_rng(0).normal(size=(5, 3)) * [[1], [1], [1], [50], [1]])
    counts = as_sets(tally(lambda rng: uniform_rows(g, 2, rng), 2000, 7))
    assert chi_square(counts, dict.fromkeys(itertools.combinations(range(5), 2), 0.1)) > ACCEPTED


def test_the_uniform_start_replaces_dependent_rows() -> None:
    """Copies and zeros never start together, over several blocks; where they are all there is, pivoting is asked."""
    rng = np.random.default_rng(1)
    x = np.concatenate([np.repeat(rng.normal(size=(150, 200)), 3, axis=0), np.zeros((50, 200))])
    for seed in range(5):
        found = uniform_rows(badge.Dense(x), 140, np.random.default_rng(seed))
        assert found is not None
        assert len({int(i) // 3 for i in found}) == 140 and int(found.max()) < 450
        assert factorised(unit(badge.Dense(x), found)) is not None
    assert uniform_rows(badge.Dense(x), 151, rng) is None
    rare = np.zeros((5000, 40))
    rare[:30, :30] = np.eye(30)  # a random order of 1,024 rows hardly meets them
    assert uniform_rows(badge.Dense(rare), 30, rng) is None
    assert sorted(kdpp(badge.Dense(rare), 30, rng).tolist()) == list(range(30))


def test_default_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """⌊5 k ln k⌋, as the paper's appendix has it; at least 1."""
    asked: list[int] = []
    monkeypatch.setattr(
        sampler, "swap_chain", lambda features, k, rng, steps, start: asked.append(steps) or np.arange(k)
    )
    g = badge.Dense(np.eye(12))
    for k in (2, 3, 10):
        kdpp(g, k, np.random.default_rng(0))
    assert asked == [6, 16, 115]


def test_one_point_is_drawn_exactly() -> None:
    g = badge.gradient_embedding(outputs(6, 3, 2, seed=7))
    counts = tally(lambda rng: kdpp(g, 1, rng), 3000, 8)
    assert chi_square(counts, kdpp_law(matrix(g), 1)) > ACCEPTED


def test_the_whole_pool_has_one_answer() -> None:
    """Also where its determinant is 0: letter's last batch of 100 has 64 distinct rows."""
    for g in (badge.gradient_embedding(outputs(4, 3, 4)), badge.Dense(np.ones((4, 2))), badge.Dense(np.zeros((4, 2)))):
        for method in ("mcmc", "exact"):
            assert sorted(kdpp(g, 4, np.random.default_rng(0), method=method).tolist()) == [0, 1, 2, 3]  # type: ignore[arg-type]


def test_the_last_rounds_of_a_pool_with_copies() -> None:
    """16,871 of letter's 18,000 training rows are distinct: a k-DPP leaves the copies for the end, and must get there."""
    rng = np.random.default_rng(0)
    copies = rng.integers(1, 5, size=150)
    out = outputs(150, 6, 30, seed=3)
    rows = np.repeat(np.arange(150), copies)
    left, k = np.arange(len(rows)), 25
    while len(left):
        take = min(k, len(left))
        if len(np.unique(rows[left])) < take < len(left):  # more asked for than there are distinct: no k-DPP
            with pytest.raises(
                RankError, match=f"asked for {take} points of a kernel of rank {len(np.unique(rows[left]))}"
            ):
                kdpp(badge.gradient_embedding(out[rows[left]]), take, rng)
            break
        picks = kdpp(badge.gradient_embedding(out[rows[left]]), take, rng)
        assert len(np.unique(rows[left[picks]])) == take or take == len(left)
        left = np.delete(left, picks)
    assert len(left) < 4 * k


def test_rows_that_rounding_calls_independent() -> None:
    """Rows a hair apart, 10⁻⁷ of their length: the chain goes on, or says RankError; never torch's own error."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=(12, 12))
        x = np.concatenate([base + 10.0 ** -rng.uniform(3, 9) * rng.normal(size=(12, 12)) for _ in range(20)])
        for start in ("uniform", "cholesky"):
            picks = kdpp(badge.Dense(x), 11, rng, steps=2000, start=start)  # type: ignore[arg-type]
            assert factorised(unit(badge.Dense(x), torch.from_numpy(picks))) is not None


def test_a_failing_factorisation_is_a_rank_error() -> None:
    with pytest.raises(RankError, match=r"the Gram matrix of 3 points cannot be factorised.*dependent.*kmeanspp"):
        invert(unit(badge.Dense([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.arange(3)))


def test_the_inverse_stays_the_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long chain over badly conditioned sets: after every block B · Gram is the identity, refreshed before it drifts."""
    errors: list[float] = []
    start = Block.__init__

    def watched(self: Block, inverse: torch.Tensor, members: Any, proposals: Any) -> None:
        gram = members.gram(members)
        errors.append(float((gram @ inverse - torch.eye(len(gram), dtype=gram.dtype)).abs().max()))
        start(self, inverse, members, proposals)

    refreshed: list[int] = []
    monkeypatch.setattr(Block, "__init__", watched)
    monkeypatch.setattr(chain, "invert", lambda members: refreshed.append(1) or invert(members))
    rng = np.random.default_rng(0)
    x = np.ones((200, 1)) + 1e-3 * rng.normal(size=(200, 30))  # nearly parallel rows
    picks = swap_chain(badge.Dense(x), 15, rng, 1500)
    assert len(set(picks.tolist())) == 15
    assert max(errors) < 1e-4
    assert len(refreshed) > 1


def test_a_good_inverse_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed: list[int] = []
    monkeypatch.setattr(chain, "invert", lambda members: refreshed.append(1) or invert(members))
    rng = np.random.default_rng(0)
    swap_chain(badge.Dense(rng.normal(size=(200, 30))), 15, rng, 500)
    assert len(refreshed) == 1  # at the start only


def test_norms_over_many_decades() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 8)) * 10.0 ** rng.uniform(-6, 6, size=(60, 1))
    for method in ("mcmc", "exact"):
        picks = kdpp(badge.Dense(x), 3, rng, method=method)  # type: ignore[arg-type]
        assert len(set(picks.tolist())) == 3


# --- rank --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mcmc", "exact"])
def test_k_above_the_rank_bound(method: Any) -> None:
    """The rows of a sum to 0: (C−1)·(D+bias) at most."""
    out = outputs(50, 3, 4)
    for bias, bound in ((False, 8), (True, 10)):
        g = badge.gradient_embedding(out, bias=bias)
        with pytest.raises(
            RankError, match=f"asked for {bound + 1} points of a kernel of rank at most {bound}.*kmeanspp"
        ):
            kdpp(g, bound + 1, np.random.default_rng(0), method=method)
        assert len(set(kdpp(g, bound, np.random.default_rng(0), method=method).tolist())) == bound


@pytest.mark.parametrize("method", ["mcmc", "exact"])
def test_rank_found_on_the_way(method: Any) -> None:
    """Columns that are there but add nothing: the Cholesky stops, and the error names both numbers."""
    rng = np.random.default_rng(3)
    x = badge.Dense(rng.normal(size=(40, 4)) @ rng.normal(size=(4, 10)))
    with pytest.raises(RankError, match=r"asked for 5 points of a kernel of rank 4"):
        kdpp(x, 5, rng, method=method)
    assert len(kdpp(x, 4, rng, method=method)) == 4


@pytest.mark.parametrize("method", ["mcmc", "exact"])
@pytest.mark.parametrize("k", [1, 2])
def test_all_zero_gradients(method: Any, k: int) -> None:
    with pytest.raises(RankError, match=f"asked for {k} points? of a kernel of rank 0"):
        kdpp(badge.Dense(np.zeros((5, 3))), k, np.random.default_rng(0), method=method)


def test_duplicates_are_never_together() -> None:
    x = np.repeat(np.random.default_rng(0).normal(size=(6, 6)), 5, axis=0)
    for method in ("mcmc", "exact"):
        for seed in range(10):
            picks = kdpp(badge.Dense(x), 6, np.random.default_rng(seed), method=method)  # type: ignore[arg-type]
            assert len({int(i) // 5 for i in picks}) == 6


def test_long_copies_do_not_hide_short_rows() -> None:
    """Many copies of one very long row: rounding of their residual must not pass for rank, nor crowd out the others."""
    rng = np.random.default_rng(0)
    long = rng.uniform(1e9, 2e9, size=(300, 1)) * ([[0.3, 0.4, 0.1]] + 1e-8 * rng.normal(size=(300, 3)))
    x = np.concatenate([long, 1e-1 * np.eye(3)])
    assert len(kdpp(badge.Dense(x), 3, rng)) == 3


def test_arguments() -> None:
    g = badge.Dense(np.eye(4))
    with pytest.raises(InputError, match="method must be 'mcmc' or 'exact', not 'gibbs'"):
        kdpp(g, 2, np.random.default_rng(0), method="gibbs")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="start must be 'uniform' or 'cholesky', not 'greedy'"):
        kdpp(g, 2, np.random.default_rng(0), start="greedy")  # type: ignore[arg-type]
    for method, steps in (("exact", 10), ("mcmc", 0)):
        with pytest.raises(InputError, match=f"steps={steps} with method='{method}'"):
            kdpp(g, 2, np.random.default_rng(0), method=method, steps=steps)  # type: ignore[arg-type]
