"""What must hold for any results: an oracle for the t-test, and invariances of the matrix and the distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from badge import stats
from badge.stats import Results

accuracies = st.integers(0, 1000).map(lambda n: n / 1000)


@given(st.lists(st.tuples(accuracies, accuracies), min_size=2, max_size=8))
def test_the_t_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    one, other = np.array(pairs).T
    differences = np.round(one - other, 12)
    result = stats.beats(dict(enumerate(one)), dict(enumerate(other)))
    if (differences == differences[0]).all():
        assert result == np.sign(differences[0])
        return
    t, p = ttest_rel(one, other)
    assert stats.t_score(one - other) == pytest.approx(t, rel=1e-6, abs=1e-9)
    if abs(p - 0.05) > 1e-9:
        assert result == (int(np.sign(t)) if p < 0.05 else 0)


@st.composite
def grids(draw: st.DrawFn) -> Results:
    """A few settings with three strategies and two to four seeds each; some runs missing, some cut short."""
    rows = []
    rounds = draw(st.integers(4, 12))
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.sampled_from([10, 100]))
        for name, seed in itertools.product(("badge", "conf", "rand"), range(draw(st.integers(2, 4)))):
            if name != "rand" and draw(st.integers(0, 9)) == 0:
                continue
            length = rounds if draw(st.integers(0, 9)) else draw(st.integers(1, rounds))
            steps = draw(st.lists(st.integers(-3, 12), min_size=length, max_size=length))
            values = np.clip(np.cumsum(steps) / (10 * rounds), 0, 1)
            rows += [(f"d{number}", "mlp", name, size, seed, 10 + size * i, v) for i, v in enumerate(values.tolist())]
    return Results.of(dict(zip(stats.REQUIRED, zip(*rows, strict=True), strict=True)))


@settings(max_examples=60, deadline=None)
@given(grids())
def test_entries_are_bounded_by_the_number_of_settings(results: Results) -> None:
    penalty = stats.penalty_matrix(results)
    matrix = penalty.overall
    assert (matrix.values >= 0).all()
    assert (matrix.values + matrix.values.T <= matrix.settings + 1e-9).all()
    assert (np.diag(matrix.values) == 0).all()
    counted = [setting for setting in results.settings if stats.label_budgets(results, setting).values]
    assert list(penalty.settings) == counted
    groups = stats.group_by(penalty, "batch_size").values()
    np.testing.assert_allclose(sum((group.values for group in groups), np.zeros_like(matrix.values)), matrix.values)
    assert sum(group.settings for group in groups) == matrix.settings


@settings(max_examples=40, deadline=None)
@given(grids(), st.permutations(["zeta", "mine", "other"]))
def test_renaming_strategies_permutes_the_matrix(results: Results, names: list[str]) -> None:
    there = [name for name in results.strategies if name != "rand"]
    renamed_to = dict(zip(there, names, strict=False)) | {"rand": "rand"}
    columns = {name: getattr(results, name) for name in stats.REQUIRED}
    columns["strategy"] = np.array([renamed_to[name] for name in results.strategy])
    renamed = Results.of(columns)
    order = [*there, "rand"]
    before = stats.penalty_matrix(results, order).overall
    after = stats.penalty_matrix(renamed, [renamed_to[name] for name in order]).overall
    np.testing.assert_array_equal(before.values, after.values)
    back = stats.penalty_matrix(results, order[::-1]).overall
    np.testing.assert_array_equal(back.values, before.values[::-1, ::-1])


@settings(max_examples=40, deadline=None)
@given(grids())
def test_distribution_functions_rise_to_one(results: Results) -> None:
    errors = stats.normalized_errors(results)
    for name in errors.strategies:
        cdf = stats.error_cdf(errors, name)
        if len(cdf.errors):
            assert cdf.weights.sum() == pytest.approx(1)
            assert (np.diff(cdf.errors) > 0).all() and (np.diff(cdf.share) > 0).all()
            assert cdf.share[-1] == 1
    if len(errors.labels):
        assert stats.error_cdf(errors, "rand").errors.tolist() == [1.0]


@settings(max_examples=40, deadline=None)
@given(grids())
def test_labels_saved_lie_in_the_range_of_the_curves(results: Results) -> None:
    saved = stats.saved_labels(results)
    for saving in saved.savings:
        assert saving.ratio > 0
        assert np.isnan(saving.low) or saving.low <= saving.high
        if np.isfinite(saving.labels):
            assert results.labels.min() <= saving.labels <= results.labels.max()


def test_the_sign_convention_can_be_told_apart() -> None:
    """With the paper's letter (t on e_i − e_j, i wins where t > critical) the worst strategy would win everywhere."""
    results = stats.example()
    matrix = stats.penalty_matrix(results, ["badge", "rand"]).overall.values
    assert matrix[0, 1] > 0 == matrix[1, 0]
