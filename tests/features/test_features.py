"""Gradient embeddings: against autograd, against their matrix, against proposition 1; and never N × C·D numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import badge
from badge.errors import InputError
from badge.features import Dense, Exact, Rows
from badge.testing.laws import as_sets, chi_square, kmeanspp_law, sq_dists, tally
from forks import printed
from laws import ACCEPTED

F = torch.nn.functional


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bias", [False, True])
def test_against_autograd(seed: int, bias: bool) -> None:
    """Equation 1: the gradient of the cross-entropy at the argmax label with respect to the last layer, elementwise."""
    torch.manual_seed(seed)
    classes, width = 2 + seed, 3 + seed
    body = nn.Sequential(nn.Linear(5, width), nn.ReLU() if seed % 2 else nn.Tanh()).double()
    head = nn.Linear(width, classes).double()
    x = torch.randn(7, 5, dtype=torch.float64)
    with torch.no_grad():
        out = badge.Outputs.from_logits(head(body(x)), body(x))
    matrix = badge.gradient_embedding(out, bias=bias).as_matrix()
    for i in range(len(x)):
        head.zero_grad()
        logits = head(body(x[i : i + 1]))
        F.cross_entropy(logits, logits.argmax(dim=1)).backward()
        assert head.weight.grad is not None and head.bias.grad is not None
        expected = torch.cat([head.weight.grad, head.bias.grad[:, None]], dim=1) if bias else head.weight.grad
        torch.testing.assert_close(matrix[i], expected.flatten(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_binary_against_autograd(bias: bool) -> None:
    """Appendix B: the logistic loss at ŷ = 1 where p > 1/2, else 0, with respect to one weight vector."""
    torch.manual_seed(0)
    head = nn.Linear(4, 1).double()
    x = torch.randn(9, 4, dtype=torch.float64)
    with torch.no_grad():
        out = badge.Outputs.from_logits(head(x), x)
    matrix = badge.gradient_embedding(out, bias=bias).as_matrix()
    for i in range(len(x)):
        head.zero_grad()
        score = head(x[i])
        F.binary_cross_entropy_with_logits(score, (score > 0).double()).backward()
        assert head.weight.grad is not None and head.bias.grad is not None
        expected = torch.cat([head.weight.grad[0], head.bias.grad]) if bias else head.weight.grad[0]
        torch.testing.assert_close(matrix[i], expected, rtol=1e-10, atol=1e-12)


def test_the_label_is_not_forgotten() -> None:
    """small-text 1.4.1 has a = −p: there a sure model has the longest gradient. Here it has the shortest."""
    g = badge.gradient_embedding(badge.Outputs([[0.99, 0.01], [0.5, 0.5]], [[1.0, 1.0], [1.0, 1.0]]))
    assert g.sq_norms[0] < 1e-3 < 0.9 < g.sq_norms[1]


positive = st.floats(1e-3, 1.0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    weights=st.lists(positive, min_size=2, max_size=6),
    h=st.lists(st.floats(-10, 10), min_size=1, max_size=4).filter(
        lambda h: not 0 < max(map(abs, h)) < 1e-100
    ),  # refused
)
def test_proposition_1(weights: list[float], h: list[float]) -> None:
    """‖g^y‖² = (Σ p² + 1 − 2 p_y) ‖h‖², so that ‖g^ŷ‖ ≤ ‖g^y‖ for every y."""
    p, z = np.array(weights) / sum(weights), np.array(h)
    shortest = float(badge.gradient_embedding(badge.Outputs(p[None], z[None])).sq_norms[0])
    for y in range(len(p)):
        gradient = np.outer(p - np.eye(len(p))[y], z)
        assert (gradient**2).sum() == pytest.approx(((p**2).sum() + 1 - 2 * p[y]) * (z @ z), abs=1e-9)
        assert shortest <= (gradient**2).sum() * (1 + 1e-9) + 1e-12
    assert shortest == pytest.approx(((p**2).sum() + 1 - 2 * p.max()) * (z @ z), abs=1e-9)


def example(n: int = 12, c: int = 4, d: int = 5, dtype: Any = np.float64) -> badge.Outputs:
    rng = np.random.default_rng(n)
    out = badge.Outputs.from_logits(rng.normal(size=(n, c)), rng.normal(size=(n, d)))
    return badge.Outputs.trusted(
        *(torch.from_numpy(x.numpy().astype(dtype)) for x in (out.probabilities, out.embeddings))
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bias", [False, True])
def test_implicit_and_explicit_agree(dtype: Any, bias: bool) -> None:
    """Norms, distances and inner products of the factors are those of the matrix, written out by the definition."""
    g = badge.gradient_embedding(example(dtype=dtype), bias=bias)
    x = g.as_matrix().double().numpy()
    assert x.shape == (12, 4 * (5 + bias))
    close: Any = {"rtol": 1e-9 if dtype is np.float64 else 1e-4, "atol": 1e-5 if dtype is not np.float64 else 1e-12}
    some = g[[2, 5, 7]]
    dense = badge.Dense(g.as_matrix())
    np.testing.assert_allclose(g.sq_norms, (x**2).sum(axis=1), **close)
    np.testing.assert_allclose(g.gram(), x @ x.T, **close)
    np.testing.assert_allclose(g.gram(some), x @ x[[2, 5, 7]].T, **close)
    np.testing.assert_allclose(g.sq_dists(some), sq_dists(x, x[[2, 5, 7]]), **close)
    np.testing.assert_allclose(dense.sq_dists(dense[[2, 5, 7]]), sq_dists(x, x[[2, 5, 7]]), **close)
    assert (g.sq_dists(g) >= 0).all()
    assert g.dtype == (torch.float64 if dtype is np.float64 else torch.float32)


def test_rows_of_a_sum_to_zero() -> None:
    """So the rank is at most min(N, (C−1)·(D+bias)), and generic data reach it."""
    out = example(40, 3, 4)
    for bias, bound in ((False, 8), (True, 10)):
        g = badge.gradient_embedding(out, bias=bias)
        assert g.rank_bound == bound == np.linalg.matrix_rank(g.as_matrix().numpy(), tol=1e-6)
        assert g[:5].rank_bound == 5
    assert torch.allclose(badge.gradient_embedding(out).a.sum(dim=1), torch.zeros(40, dtype=torch.float64))
    assert badge.Dense(np.eye(3, 7)).rank_bound == 3


def test_rows_by_position_mask_and_slice() -> None:
    g = badge.gradient_embedding(example())
    mask = np.zeros(12, dtype=bool)
    mask[[3, 8]] = True
    for features in (g, badge.Dense(g.as_matrix())):
        for ids in ([3, 8], np.array([3, 8]), torch.tensor([3, 8]), mask, slice(3, 9, 5)):
            assert torch.equal(features[ids].as_matrix(), g.as_matrix()[[3, 8]])


def test_binary_columns_have_one_law() -> None:
    """One column p = P(+1) and the two columns (1 − p, p) give the same draws: all distances differ by one factor.

    small-text 1.4.1 skips the label where K = 2.
    """
    rng = np.random.default_rng(0)
    p, h = np.array([0.9, 0.5, 0.3, 0.55, 0.02]), rng.normal(size=(5, 2))
    one, two = badge.Outputs(p[:, None], h), badge.Outputs(np.column_stack([1 - p, p]), h)
    x, y = (badge.gradient_embedding(o).as_matrix().numpy() for o in (one, two))
    law = kmeanspp_law(x, 2)
    assert law == pytest.approx(kmeanspp_law(y, 2))
    np.testing.assert_allclose(x, (p - (p > 0.5))[:, None] * h)
    for out in (one, two):
        counts = tally(lambda rng, out=out: badge.strategies.get("badge")(out, 2, rng), 500, 1)
        assert chi_square(counts, law) > ACCEPTED
        assert sum(as_sets(counts).values()) == 500
    for name in ("conf", "marg", "entropy"):
        picks = [badge.select_from(out, 4, name).tolist() for out in (one, two)]
        assert picks[0] == picks[1]


def test_from_logits() -> None:
    rng = np.random.default_rng(0)
    logits, h = rng.normal(size=(6, 3)) * 5, rng.normal(size=(6, 2))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(badge.Outputs.from_logits(logits, h).probabilities, p, rtol=1e-12)
    one = badge.Outputs.from_logits(logits[:, 0], h)
    assert one.probabilities.shape == (6, 1)
    np.testing.assert_allclose(one.probabilities[:, 0], 1 / (1 + np.exp(-logits[:, 0])), rtol=1e-12)
    half = badge.Outputs.from_logits(np.float16(logits * 1000), h)  # softmax in float32: nothing overflows
    assert half.probabilities.dtype == torch.float32
    masked = badge.Outputs.from_logits([[0.0, -np.inf, 0.0]], [[1.0]])  # a class that is ruled out
    assert masked.probabilities.tolist() == [[0.5, 0.0, 0.5]]


def test_outputs_share_the_memory_that_they_are_given() -> None:
    p, h = np.full((4, 2), 0.5, dtype=np.float16), np.ones((4, 3), dtype=np.float32)
    h.setflags(write=False)
    out = badge.Outputs(p, h)
    assert out.probabilities.data_ptr() == p.ctypes.data and out.embeddings.data_ptr() == h.ctypes.data
    assert len(out) == 4 and len(out[[1, 2]]) == 2 and len(out[1:]) == 3 and len(out[np.array([1, 0, 0, 1], bool)]) == 2
    badge.gradient_embedding(out).as_matrix()
    assert (p == 0.5).all(), "the pool's probabilities must not be written to"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_that_was_given_is_written(dtype: Any) -> None:
    """In-place arithmetic on shared float64 arrays once bent the law of k-means++."""
    out = example(60, 3, 4, dtype=dtype)
    p, h = out.probabilities.clone(), out.embeddings.clone()
    g = badge.gradient_embedding(out)
    norms = g.sq_norms.clone()
    for sampler in (badge.samplers.kmeanspp, badge.samplers.kcenter, badge.samplers.kdpp):
        sampler(g, 5, np.random.default_rng(0))
        sampler(badge.Dense.trusted(out.embeddings), 3, np.random.default_rng(0))
    badge.explain(out, [1, 2, 3])
    for before, after in ((p, out.probabilities), (h, out.embeddings), (norms, g.sq_norms)):
        assert torch.equal(before, after)


LARGE = """
import json, resource, numpy as np, torch, badge
torch.set_num_threads(1)
n, c, d = 6000, 1000, 1024  # N · C · D float32 numbers: 24.6 GB
rng = np.random.default_rng(0)
p = rng.random((n, c), dtype=np.float32)
p /= p.sum(axis=1, keepdims=True)
out = badge.Outputs(p, rng.normal(size=(n, d)).astype(np.float32))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
g = badge.gradient_embedding(out)
ids = badge.select_from(out, 10, "badge", exclude=[0, 1])
assert len(set(ids.tolist())) == 10
badge.select_from(out, 5, "kcenter-grad"); badge.select_from(out, 5, "kdpp"); badge.explain(out, ids)
print(json.dumps({"MB": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}))
"""


def test_nothing_holds_the_matrix(tmp_path: Path) -> None:
    """scikit-activeml 1.0.1 materialises N × C·D; here the extra memory is of the order of N × (C + D)."""
    (tmp_path / "large.py").write_text(LARGE)
    inputs = 6000 * 2024 * 4 / 2**20
    assert printed(tmp_path / "large.py")["MB"] < 1.3 * inputs + 200  # the bar of the benchmark


def test_features_that_do_not_fit_together() -> None:
    g, rng = badge.gradient_embedding(example()), np.random.default_rng(0)
    x = badge.Dense(np.ones((6, 3)))
    for sampler in (badge.samplers.kmeanspp, badge.samplers.kcenter):
        with pytest.raises(InputError, match=r"columns \[3\] against \[1\]"):
            sampler(x, 2, rng, given=badge.Dense(np.ones((2, 1))))  # must not broadcast
        with pytest.raises(InputError, match=r"columns \[4, 5\] against \[20\]"):
            sampler(g, 2, rng, given=badge.Dense(g.as_matrix()))
    with pytest.raises(InputError, match=r"columns \[4, 5\] against \[4, 6\]"):
        g.sq_dists(badge.gradient_embedding(example(), bias=True))


def some_rows(width: int, factored: bool, dtype: torch.dtype, offset: float = 0.0) -> Rows:
    rng = np.random.default_rng(width)
    factors = [rng.normal(size=(50, 4))] * factored + [rng.normal(size=(50, width)) + offset]
    return Rows(tuple(torch.from_numpy(f).to(dtype) for f in factors))


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("width", [1, 3, 8, 31, 64, 257, 3000])
def test_what_decides_does_not_depend_on_the_blocking(width: int, dtype: torch.dtype, factored: bool) -> None:
    """The same pair gives the same bits in any company, on one and two threads; so do norms. Equal rows are at 0."""
    x = some_rows(width, factored, dtype)
    every, turned = torch.arange(50), torch.arange(50).roll(7)
    exact, before = Exact.of(x), torch.get_num_threads()
    together, sq_norms = exact.sq_dists(every, exact, turned), x.sq_norms()
    assert (exact.sq_dists(every, exact, every) == 0).all()
    assert torch.equal(exact.sq_dists(turned, exact, every), together)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for size in (1, 2, 7, 50):
                parts = [torch.arange(s, min(s + size, 50)) for s in range(0, 50, size)]
                alone = [Exact.of(x[p]).sq_dists(torch.arange(len(p)), exact, turned[p]) for p in parts]
                assert torch.equal(torch.cat(alone), together)
                assert torch.equal(torch.cat([x[p].sq_norms() for p in parts]), sq_norms)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e8])
def test_a_common_offset_costs_no_precision(offset: float, factored: bool) -> None:
    """The distances that decide, against the definition in extended precision."""
    x = some_rows(6, factored, torch.float64, offset)
    if factored:
        x = Rows(
            (x.factors[0][:1].expand(50, 4).contiguous(), x.factors[1])
        )  # equal in a: only the differences are left
    i, j = torch.triu_indices(50, 50, 1)
    matrix = x.factors[0].numpy().astype(np.longdouble)
    if factored:
        matrix = np.einsum("nc,nd->ncd", matrix, x.factors[1].numpy().astype(np.longdouble)).reshape(50, -1)
    expected = ((matrix[i] - matrix[j]) ** 2).sum(axis=1).astype(float)
    np.testing.assert_allclose(Exact.of(x).sq_dists(i, Exact.of(x), j), expected, rtol=1e-9)


def test_rows_do_not_depend_on_how_the_pool_is_kept() -> None:
    """Column by column in memory, a slice of a wider array, half of the rows left out: the same rows, the same norms."""
    x = np.random.default_rng(0).normal(size=(40, 33)).astype(np.float32)
    wide = np.zeros((80, 70), dtype=np.float32)
    wide[::2, 5:38] = x
    norms = badge.Dense(x).sq_norms
    for kept in (np.asfortranarray(x), wide[::2, 5:38]):
        assert torch.equal(badge.Dense(kept).sq_norms, norms)
        assert badge.Dense(kept).rows(slice(3, 9)).factors[0].is_contiguous()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
def test_norms_found_by_the_check_of_outputs_are_the_same_bit_by_bit(layout: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    h = rng.normal(size=(9000, 2 * 77)).astype(dtype)
    h = {"rows": h, "columns": np.asfortranarray(h), "every second": h[:, ::2]}[layout]
    p = rng.dirichlet(np.ones(7), size=9000).astype(dtype)
    known, unknown = badge.Outputs(p, h), badge.Outputs.trusted(torch.from_numpy(p), torch.from_numpy(h))
    assert known.norms is not None and unknown.norms is None

    def bits(out: badge.Outputs) -> list[torch.Tensor]:
        some = out[np.arange(5000, 8000)]
        return [
            x.sq_norms for x in (badge.gradient_embedding(out), badge.gradient_embedding(some), Dense.embeddings(out))
        ]

    for x, y in zip(bits(known), bits(unknown), strict=True):
        assert x.dtype == y.dtype and torch.equal(x, y)
    one_by_one = torch.cat([badge.Dense(h[i : i + 1]).sq_norms for i in range(0, 9000, 97)])
    assert torch.equal(bits(known)[2][::97], one_by_one)
    # a norm of rounded numbers differs, in bits alone: picks would hardly tell
    wrong = torch.linalg.vector_norm(torch.from_numpy(np.ascontiguousarray(h)).float(), dim=1).double().square()
    assert not torch.equal(wrong.to(bits(known)[2].dtype), bits(known)[2])
    assert badge.gradient_embedding(known, bias=True).norms is None


def test_embeddings_that_overflow_in_a_norm_are_checked_one_by_one() -> None:
    p = np.full((4, 2), 0.5)
    assert badge.Outputs(p, np.full((4, 2), 1e200)).norms is None
    with pytest.raises(InputError, match=r"NaN or inf in 1 row \(first: 2\)"):
        badge.Outputs(p, np.where(np.arange(8).reshape(4, 2) == 5, np.nan, 1.0))
