"""The paper's formulas on results made up by hand, and what happens where results are missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from badge import stats
from badge.errors import InputError
from badge.stats import Results
from fake_grid import fake_grid
from made_results import RISING, A, B, repeats, table

# --- label budgets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saturated", "expected"),
    [
        (100, ()),  # saturated from the start
        (199, ()),  # (n₀ − M)/B < 1: the logarithm is negative
        (200, ()),  # ⌊log₂ 1⌋ = 0
        (299, ()),
        (300, (200,)),  # ⌊log₂ 2⌋ = 1
        (499, (200,)),  # ⌊log₂ 3.99⌋ = 1
        (500, (200, 300)),
        (900, (200, 300, 500)),
        (6500, (200, 300, 500, 900, 1700, 3300)),
    ],
)
def test_budgets_double_up_to_half_of_the_way(saturated: int, expected: tuple[int, ...]) -> None:
    assert stats.budget_values(100, saturated, 100) == expected


def test_budgets_agree_with_the_formula_in_floating_point() -> None:
    for size in (1, 7, 100):
        for gap in range(1, 2000, 3):
            top = math.floor(math.log2(gap / size)) if gap >= size else 0
            expected = tuple(50 + 2 ** (m - 1) * size for m in range(1, top + 1))
            assert stats.budget_values(50, 50 + gap, size) == expected


def test_n0_on_a_curve_that_dips_is_the_first_crossing() -> None:
    results = table({(A, "rand"): repeats([0.5, 0.6, 0.7, 0.795, 0.6, 0.65, 0.8])})
    entry = stats.label_budgets(results, A)
    assert (entry.smallest, entry.saturated, entry.values) == (100, 400, (200,))


def test_n0_counts_a_mean_of_exactly_99_per_cent() -> None:
    results = table({(A, "rand"): {s: [0.1, 0.3, 0.594, 0.6] for s in range(5)}})
    assert stats.label_budgets(results, A).saturated == 300


def test_m_is_the_settings_smallest_number_of_labels() -> None:
    early = Results.of(
        {"data": ["a"], "model": ["mlp"], "strategy": ["badge"], "batch_size": [100], "seed": [0], "labels": [40]}
        | {"test_accuracy": [0.1]}
    )
    rand = table({(A, "rand"): repeats(RISING)})
    both = Results.of({name: [*getattr(early, name), *getattr(rand, name)] for name in stats.REQUIRED})
    assert stats.label_budgets(both, A).smallest == 40


def test_a_setting_without_budgets_says_why() -> None:
    flat = stats.label_budgets(table({(A, "rand"): repeats([0.9, 0.9, 0.9])}), A)
    assert flat.values == () and "fewer than two batches" in str(flat.why_empty)
    orphan = stats.label_budgets(table({(A, "badge"): repeats(RISING)}), A)
    assert orphan.saturated is None and "no rand" in str(orphan.why_empty)


def test_n0_rests_on_the_repeats_of_rand_that_ran_longest() -> None:
    results = table({(A, "rand"): {0: RISING, 1: RISING, 2: [0.9, 0.9]}})  # seed 2 stopped early
    entry = stats.label_budgets(results, A)
    assert entry.saturated == 900
    texts = [note.text for note in stats.budget_notes(results, [entry])]
    assert texts == ["a · mlp · B = 100: n₀ is from the 2 of 3 rand repeats that ran longest"]


# --- penalty matrix --------------------------------------------------------------------------------------------------


def two_settings() -> Results:
    """A: budgets 200, 300, 500; badge wins the first two and ties at 500. B: budget 200 only; rand wins there."""
    ahead = [0.1, 0.4, 0.5, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    return table(
        {
            (A, "badge"): repeats(ahead, (0.01, 0.0, -0.01)),  # seeds opposed to rand's, so that no σ̂ is 0
            (A, "rand"): repeats(RISING),
            (B, "badge"): repeats([0.1, 0.2, 0.8], (0.005, 0.0, -0.005)),
            (B, "rand"): repeats([0.1, 0.6, 0.8]),
        }
    )


def test_penalty_matrix_by_hand() -> None:
    penalty = stats.penalty_matrix(two_settings(), ["badge", "rand"])
    assert [stats.label_budgets(two_settings(), s).values for s in (A, B)] == [(200, 300, 500), (200,)]
    assert penalty.settings == (A, B)
    np.testing.assert_allclose(penalty.values[0], [[0, 2 / 3], [0, 0]])
    np.testing.assert_allclose(penalty.values[1], [[0, 0], [1, 0]])
    np.testing.assert_allclose(penalty.overall.values, [[0, 2 / 3], [1, 0]])
    np.testing.assert_allclose(penalty.overall.averages, [1 / 2, 1 / 3])
    groups = stats.group_by(penalty, "model")
    assert {model: matrix.settings for model, matrix in groups.items()} == {"mlp": 1, "vgg11": 1}
    np.testing.assert_allclose(groups["vgg11"].values, [[0, 0], [1, 0]])


def test_column_averages_are_over_all_strategies() -> None:
    """The authors' script: `matPlot.mean(axis=0)`, the diagonal included."""
    matrix = stats.Matrix(("a", "b", "c"), 9, np.array([[0.0, 4, 1], [2, 0, 2], [4, 2, 0]]))
    assert matrix.averages.tolist() == [2.0, 2.0, 1.0]


def test_the_lower_error_wins() -> None:
    better, worse = {s: 0.9 + s / 1000 for s in range(5)}, {s: 0.5 - s / 1000 for s in range(5)}
    assert stats.beats(better, worse) == 1
    assert stats.beats(worse, better) == -1


def test_no_spread() -> None:
    assert stats.beats({0: 0.8, 1: 0.8, 2: 0.8}, {0: 0.7, 1: 0.7, 2: 0.7}) == 1  # σ̂ = 0, μ̂ ≠ 0
    assert stats.beats({0: 0.1, 1: 0.8}, {0: 0.2, 1: 0.9}) == -1
    assert stats.beats({0: 0.8, 1: 0.7, 2: 0.6}, {0: 0.8, 1: 0.7, 2: 0.6}) == 0  # both 0: a tie
    assert stats.beats({0: 0.3, 1: 0.3}, {0: 0.1 + 0.2, 1: 0.1 + 0.2}) == 0  # rounding is no win
    assert stats.beats({0: 0.3, 1: 0.5}, {0: 0.1 + 0.2, 1: 0.5}) == 0


def test_critical_values_of_the_tables() -> None:
    for count, value in ((2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776), (10, 2.262)):
        assert stats.critical_value(count) == pytest.approx(value, abs=5e-4)


def test_pairs_are_matched_by_seed_and_one_pair_is_no_test() -> None:
    # unpaired, the large spread between seeds would hide the steady difference
    one = {0: 0.10, 1: 0.50, 2: 0.90, 7: 0.0}
    other = {0: 0.08, 1: 0.479, 2: 0.881, 9: 1.0}
    assert stats.beats(one, other) == 1
    assert stats.beats({0: 0.9}, {0: 0.1}) is None
    assert stats.beats({0: 0.9, 1: 0.9}, {2: 0.1, 3: 0.1}) is None


def test_pairs_without_two_shared_seeds_are_noted() -> None:
    results = table({(A, "badge"): {0: RISING}, (A, "rand"): repeats(RISING)})
    penalty = stats.penalty_matrix(results)
    assert penalty.overall.values.sum() == 0 and penalty.overall.settings == 1
    assert [note.topic for note in penalty.notes] == ["pairs not compared"]
    assert "200, 300, 500 labels" in penalty.notes[0].text


def test_a_run_that_lacks_a_budget_is_no_repeat_there_and_is_noted() -> None:
    without_300: list[float | None] = [0.1, 0.2, None, *RISING[3:]]
    badge: Any = {0: RISING, 1: RISING, 2: without_300}
    results = table({(A, "badge"): badge, (A, "rand"): repeats(RISING)})
    notes = stats.penalty_matrix(results).notes
    assert [note.topic for note in notes] == ["label budgets that a run lacks"]
    assert "badge with seed 2 has no model with exactly 300 labels" in notes[0].text


def test_unknown_or_doubled_strategies() -> None:
    with pytest.raises(InputError, match="named twice"):
        stats.penalty_matrix(two_settings(), ["badge", "badge"])
    absent = stats.penalty_matrix(two_settings(), ["badge", "nobody"])  # no results: never compared
    assert absent.overall.values.tolist() == [[0, 0], [0, 0]]


# --- distribution functions ------------------------------------------------------------------------------------------


def test_cdf_weights_by_hand() -> None:
    errors = stats.normalized_errors(two_settings(), ["badge", "rand"])
    assert errors.labels == (200, 300, 500, 200)
    np.testing.assert_allclose(errors.weights, [1 / 3, 1 / 3, 1 / 3, 1])
    np.testing.assert_allclose(errors.values[:, 0], [0.6 / 0.8, 0.5 / 0.7, 1.0, 0.8 / 0.4])
    assert (errors.values[:, 1] == 1).all()
    cdf = stats.error_cdf(errors, "badge")
    np.testing.assert_allclose(cdf.errors, [5 / 7, 0.75, 1.0, 2.0])
    np.testing.assert_allclose(cdf.weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])  # every setting weighs the same
    np.testing.assert_allclose(cdf.share, [1 / 6, 1 / 3, 1 / 2, 1])
    rand = stats.error_cdf(errors, "rand")
    assert (rand.errors.tolist(), rand.share.tolist()) == ([1.0], [1.0])
    only = stats.error_cdf(errors.where(model="vgg11"), "badge")
    assert (only.errors.round(9).tolist(), only.weights.tolist()) == ([2.0], [1.0])


def test_an_error_of_zero_of_rand_is_listed_and_skipped() -> None:
    # a mean of 1 at a budget would have been n₀; so: n₀ from the longest repeat, which lacks the budget 300
    long: list[float | None] = [0.1, 0.2, None, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    results = table({(A, "rand"): {0: long, 1: [0.1, 0.2, 1.0]}, (A, "badge"): repeats([0.1] * 9)})
    assert stats.label_budgets(results, A).values == (200, 300, 500)
    errors = stats.normalized_errors(results, ["badge", "rand"])
    assert errors.labels == (200, 500)
    assert [note.text for note in errors.notes] == ["a · mlp · B = 100 at 300 labels: rand's error is 0"]
    cdf = stats.error_cdf(errors, "badge")
    np.testing.assert_allclose(cdf.weights, [0.5, 0.5])  # in proportion to 1/3 and 1/3, and summing to 1


def test_a_strategy_without_a_result_at_a_budget() -> None:
    short = {s: [0.1, 0.4, 0.5] for s in range(3)}
    results = table({(A, "rand"): repeats(RISING), (A, "badge"): short})
    errors = stats.normalized_errors(results, ["badge", "rand"])
    assert np.isnan(errors.values[2, 0])
    assert [note.text for note in errors.notes] == [
        "badge: no result at 1 of 3 (setting, budget) pairs; its CDF is over the others"
    ]
    np.testing.assert_allclose(stats.error_cdf(errors, "badge").weights, [0.5, 0.5])


# --- learning curves, diversity, time --------------------------------------------------------------------------------


def test_standard_error() -> None:
    mean = stats.mean_curve(stats.learning_curve(table({(A, "rand"): {0: [0.5], 1: [0.7], 2: [0.6]}}), A, "rand"))
    assert mean.mean.tolist() == pytest.approx([0.6])
    assert mean.error.tolist() == pytest.approx([0.1 / math.sqrt(3)])


def test_one_batch_without_volume_makes_a_gap() -> None:
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["conf"], seeds=3, rounds=4)
    columns["log_det"] = [1.0, 2.0, 3.0, math.nan, 1.0, -math.inf, 3.0, math.nan, 1.0, 2.0, 6.0, math.nan]
    results = Results.of(columns)
    log_det = stats.batch_diversity(results, results.settings[0], "conf").log_det
    assert log_det.labels.tolist() == [100, 200, 300]  # the last model chooses no batch: that is no gap
    assert log_det.mean.tolist() == [1.0, -math.inf, 4.0]
    assert log_det.error.tolist() == pytest.approx([0.0, math.nan, 1.0], nan_ok=True)


def test_times_by_part() -> None:
    results = Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["badge"], rounds=3))
    times = stats.round_times(results, results.settings[0], "badge")
    assert (len(times.select.labels), len(times.predict.labels), len(times.train.labels)) == (2, 0, 3)


# --- labels saved ----------------------------------------------------------------------------------------------------


def test_labels_saved_by_hand() -> None:
    fast = [0.1, 0.5, 0.85, 0.95, 0.95, 0.95, 0.95, 0.95, 0.95]
    results = table({(A, "badge"): repeats(fast, (0, 0, 0)), (A, "rand"): repeats(RISING, (0, 0, 0))})
    saving = stats.saved_labels(results, ["badge", "rand"]).savings
    assert len(saving) == 1  # rand is not compared with itself
    assert saving[0].labels == pytest.approx(350)  # half-way between 0.85 at 300 and 0.95 at 400
    assert saving[0].reference_labels == pytest.approx(900)
    assert saving[0].ratio == pytest.approx(350 / 900)
    assert (saving[0].low, saving[0].high) == pytest.approx((350 / 900, 350 / 900))  # repeats do not differ


def test_the_interval_is_paired_and_seeded() -> None:
    # rand's seeds end far apart, and badge's are always twice as fast: paired, the ratio hardly moves
    levels = (0.5, 0.7, 0.9)
    rand = {s: [level * i / 8 for i in range(9)] for s, level in enumerate(levels)}
    badge = {s: [level * min(i / 4, 1.0) for i in range(9)] for s, level in enumerate(levels)}
    results = table({(A, "badge"): badge, (A, "rand"): rand}, initial=0)
    saving = stats.saved_labels(results).savings[0]
    assert (saving.ratio, saving.low, saving.high) == pytest.approx((0.5, 0.5, 0.5))
    noisy = Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], rounds=30))
    assert stats.saved_labels(noisy, seed=1) == stats.saved_labels(noisy, seed=1)
    wide = stats.saved_labels(noisy).savings[0]
    assert wide.low < wide.ratio < wide.high


def test_what_is_never_reached() -> None:
    results = table({(A, "badge"): repeats([0.1] * 9), (A, "rand"): repeats(RISING)})
    saved = stats.saved_labels(results)
    assert saved.savings[0].ratio == math.inf == saved.medians[0].ratio
    assert [note.topic for note in saved.notes] == ["final accuracy of rand not reached"]
    alone = stats.saved_labels(table({(A, "badge"): repeats(RISING)}))
    assert alone.savings == () and "no rand" in alone.notes[0].text
    strangers = stats.saved_labels(table({(A, "badge"): {5: RISING}, (A, "rand"): {6: RISING}}))
    assert strangers.savings == () and "share no seed" in strangers.notes[0].text


def test_one_repeat_has_no_interval() -> None:
    """Nor has the median over settings: draws of one seed are all the same, which is not certainty."""
    saved = stats.saved_labels(table({(A, "badge"): {0: RISING}, (A, "rand"): {0: RISING}}))
    for saving in (saved.savings[0], saved.medians[0]):
        assert saving.ratio == 1 and math.isnan(saving.low) and math.isnan(saving.high)


def test_the_median_over_settings() -> None:
    slow, fast = [0.1, 0.1, *RISING[:7]], [0.1, 0.9, *([0.9] * 7)]
    runs = {(setting, "rand"): repeats(RISING) for setting in (A, B, B._replace(data="c"))}
    runs |= {(A, "badge"): repeats(slow), (B, "badge"): repeats(fast), (B._replace(data="c"), "badge"): repeats(RISING)}
    saved = stats.saved_labels(table(runs))
    assert sorted(s.ratio for s in saved.savings) == pytest.approx([200 / 900, 1.0, math.inf])
    assert saved.medians[0].ratio == pytest.approx(1.0)


# --- what is missing -------------------------------------------------------------------------------------------------


def test_missing_repeats_rounds_strategies_and_baseline_are_said() -> None:
    results = table(
        {
            (A, "badge"): {0: RISING, 1: RISING[:4]},
            (A, "rand"): repeats(RISING),
            (B, "badge"): repeats(RISING),
        }
    )
    notes = {(note.topic, note.text) for note in stats.coverage_notes(results, ["badge", "marg", "rand"])}
    a, b = "a · mlp · B = 100", "b · vgg11 · B = 100"
    assert notes == {
        ("missing strategies", f"{a}: no marg"),
        ("missing strategies", f"{b}: no marg"),
        ("missing repeats", f"{a}: badge lacks seed 2; it is paired on the 2 it has"),
        ("unequal numbers of rounds", f"{a}: badge stops before 900 labels: seed 1 at 400"),
        ("missing baseline", f"{b}: no rand, so no label budgets, normalised errors or labels saved"),
    }
    hole = stats.coverage_notes(table({(A, "rand"): {0: RISING, 1: [0.1, None, 0.3, *RISING[3:]]}}), ["rand"])
    assert [note.topic for note in hole] == ["unequal numbers of rounds"]


def test_complete_results_have_no_notes() -> None:
    results = Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], rounds=20))
    assert stats.coverage_notes(results, results.strategies) == []
    assert results.notes == ()
