"""The paper's formulas on results made up by hand, and what happens where results are missing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from badge import stats
from badge.errors import DataError, InputError, JournalError
from badge.stats import Results, Setting
from fake_grid import fake_grid, write_journals

A = Setting("a", "mlp", 100)
B = Setting("b", "vgg11", 100)
#: three repeats around a mean
SPREAD = (-0.01, 0.0, 0.01)


def table(
    runs: Mapping[tuple[Setting, str], Mapping[int, Sequence[float | None]]], initial: int = 100, **optional: object
) -> Results:
    """Results of {(setting, strategy): {seed: accuracies of the rounds}}; None: the round is missing."""
    rows = [
        (*setting[:2], strategy, setting.batch_size, seed, initial + setting.batch_size * i, accuracy)
        for (setting, strategy), repeats in runs.items()
        for seed, accuracies in repeats.items()
        for i, accuracy in enumerate(accuracies)
        if accuracy is not None
    ]
    return Results.of(dict(zip(stats.REQUIRED, zip(*rows, strict=True), strict=True)))


def repeats(means: Sequence[float], spread: Sequence[float] = SPREAD) -> dict[int, list[float | None]]:
    return {seed: [mean + offset for mean in means] for seed, offset in enumerate(spread)}


#: nine rounds of 100 labels from 100 on; reaches 99 % of 0.9 at 900 labels only
RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


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
    badge = {0: RISING, 1: RISING, 2: without_300}
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


# --- the table -------------------------------------------------------------------------------------------------------


def test_rows_in_any_order_make_the_same_table() -> None:
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], rounds=5)
    order = np.random.default_rng(0).permutation(len(columns["data"]))
    mixed = Results.of({name: np.array(values)[order] for name, values in columns.items()})
    same(mixed, Results.of(columns))


def same(one: Results, other: Results) -> None:
    for name in stats.REQUIRED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in stats.OPTIONAL:
        np.testing.assert_array_equal(one.column(name), other.column(name), err_msg=name)


def row(**changes: object) -> dict[str, list[object]]:
    base: dict[str, object] = dict(zip(stats.REQUIRED, ("a", "m", "rand", 10, 0, 10, 0.5), strict=True))
    return {name: [value] for name, value in (base | changes).items()}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"data": ["a"]}, "lack the columns model, strategy"),
        (row(test_accuracy=87.5), "divide percentages by 100"),
        (row(labels=10.5), "labels must be whole numbers; row 1 has 10.5"),
        (row(seed="first"), "the column seed must be numbers, not"),
        (row(batch_size=0), "batch_size must be ≥ 1; the smallest is 0"),
        (row(test_accuracy=math.nan), "no row has a test accuracy"),
        ({name: [] for name in stats.REQUIRED}, "0 rows"),
        (row() | {"labels": [1, 2]}, "differ in length"),
        ({name: value * 2 for name, value in row().items()} | {"test_accuracy": [0.5, 0.6]}, "different seeds"),
    ],
)
def test_tables_that_mean_nothing(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Results.of(columns)


def test_rows_left_out_are_noted() -> None:
    columns = {name: value * 3 for name, value in row().items()} | {"labels": [10, 10, 20]}
    results = Results.of(columns | {"test_accuracy": [0.5, 0.5, math.nan]})
    assert len(results) == 1
    assert [note.text for note in results.notes] == [
        "1 rows without a test accuracy",
        "1 rows that repeat another row exactly",
    ]


def test_completeness_is_repeated() -> None:
    results = Results.of(fake_grid(pairs=[("cifar10", "mlp"), ("letter", "mlp")], batch_sizes=[100], rounds=2, seeds=1))
    assert results.completeness == {"cifar10": "20,000 of 50,000", "letter": "20,000 of 20,000"}


# --- reading and writing ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Results:
    return Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["conf", "rand"], rounds=12))


def test_journals_and_csv_say_the_same(small: Results, tmp_path: Path) -> None:
    write_journals(small, tmp_path / "runs" / "deep")
    stats.write_csv(small, tmp_path / "all.csv")
    same(stats.load(tmp_path / "all.csv"), small)
    loaded = stats.load(tmp_path / "runs")
    same(loaded, small)
    assert np.isneginf(loaded.column("log_det")).any()  # null beside a norm stands for −inf
    assert loaded.notes == ()
    assert len(stats.load(next((tmp_path / "runs").rglob("*-conf-0.jsonl"))).runs) == 1


def test_csv_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(
        "\ufeffseed, labels ,test_accuracy,comment,data,model,strategy,batch_size,log_det,mean_norm\r\n"
        '0,100,0.5,"a, b",a,m,rand,100,,2.5\r\n\r\n0,200.0, 0.6 ,,a, m,rand,100,-inf,\r\n0,300,0.7,,a,m,rand,100,,\r\n',
        encoding="utf-8",
    )
    results = stats.load(path)
    assert results.labels.tolist() == [100, 200, 300]
    assert results.settings == (Setting("a", "m", 100),)
    assert results.column("log_det").tolist()[:2] == [-math.inf, -math.inf] and math.isnan(results.column("log_det")[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks the columns data, .*found: nothing"),
        ("data,model\n", "lacks the columns strategy"),
        (",".join(stats.REQUIRED) + "\n", "a header and no rows"),
        (",".join(stats.REQUIRED) + "\na,m,rand,10,0,10\n", "row 1 after the header has 6 cells, the header 7"),
        (",".join(stats.REQUIRED) + "\na,m,rand,10,0,10,good\n", "test_accuracy has 'good' in row 1"),
        (",".join((*stats.REQUIRED, "seed")) + "\na,m,rand,10,0,10,0.5,1\n", "the column seed 2 times"),
    ],
)
def test_csv_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        stats.load(path)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "picture.csv").write_bytes(b"\x93NUMPY\x00\xff")
    with pytest.raises(DataError, match="is not a CSV file in UTF-8"):
        stats.load(tmp_path / "picture.csv")
    (tmp_path / "picture.csv").unlink()
    with pytest.raises(DataError, match="does not exist"):
        stats.load(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no journals"):
        stats.load(tmp_path)
    (tmp_path / "all.csv").write_text("x")
    with pytest.raises(DataError, match=r"name the file itself, e\.g\. .*all\.csv"):
        stats.load(tmp_path)


def journal(path: Path, *events: object) -> None:
    path.write_text("\n".join(e if isinstance(e, str) else json.dumps(e) for e in events), encoding="utf-8")


def test_journals_with_different_options_are_noted(tmp_path: Path) -> None:
    for seed, width in enumerate((128, 256)):
        cell = {"data": "a", "model": "m", "strategy": "rand", "batch_size": 10, "seed": seed, "width": width}
        first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
        journal(tmp_path / f"{seed}.jsonl", {"event": "start", "cell": cell}, first, {"event": "end"})
    note = stats.load(tmp_path).notes
    assert note == (stats.Note("runs with different options", "a · m · B = 10: width is 128 and 256"),)


def test_failed_runs_are_counted_with_their_reasons(tmp_path: Path) -> None:
    """Not "stopped or still running": what the executor wrote down. A run that went on after it is none."""
    cell = {"data": "a", "model": "m", "strategy": "kdpp", "batch_size": 10, "seed": 0}
    first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
    failed = {"event": "failed", "error": "asked for 10 points of a kernel of rank 4"}
    for seed, events in enumerate(
        ([first, failed], [failed], [first, failed, first | {"round": 1, "labels": 20}], [first])
    ):
        journal(tmp_path / f"{seed}.jsonl", {"event": "start", "cell": {**cell, "seed": seed}}, *events)
    notes = [(note.topic, note.text) for note in stats.load(tmp_path).notes]
    assert notes == [
        ("failed runs", "2 of 4 journals; what they did before that counts, and the same command tries them again"),
        ("failed runs", "0.jsonl: failed at 10 labels: asked for 10 points of a kernel of rank 4"),
        ("failed runs", "1.jsonl: failed before its first round: asked for 10 points of a kernel of rank 4"),
        ("unfinished runs", "2.jsonl: stopped or still running, at 20 labels"),
        ("unfinished runs", "3.jsonl: stopped or still running, at 10 labels"),
    ]


def test_rounds_below_the_training_target_are_counted() -> None:
    n = 6
    table = {"data": ["a"] * n, "model": ["m"] * n, "strategy": ["rand"] * 3 + ["marg"] * 3, "batch_size": [10] * n}
    table |= {"seed": [0] * n, "labels": [10, 20, 30] * 2, "test_accuracy": [0.5] * n}
    accuracies = [0.999, 0.99, 0.98, 0.991, np.nan, 0.985]  # "exceeds 99 %": 0.99 does not
    notes = stats.capped_notes(Results.of({**table, "train_accuracy": accuracies}))
    assert [note.text for note in notes] == [
        "a · m · B = 10: 3 of 6 rounds, down to 0.9800 (marg 1, rand 2); they count as they are"
    ]
    assert stats.capped_notes(Results.of({**table, "train_accuracy": [0.995] * n})) == []


def test_compressed_tables(small: Results, tmp_path: Path) -> None:
    """The same rows, the same bytes: what is kept in a repository changes only where the results do."""
    for name in ("a.csv", "a.csv.gz", "b.csv.gz"):
        stats.write_csv(small, tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert (tmp_path / "a.csv.gz").stat().st_size < (tmp_path / "a.csv").stat().st_size / 2
    plain, packed = (stats.load(tmp_path / name) for name in ("a.csv", "a.csv.gz"))
    assert (plain.test_accuracy == packed.test_accuracy).all() and plain.runs == packed.runs
    (tmp_path / "a.csv.gz").write_bytes((tmp_path / "a.csv.gz").read_bytes()[:-20])
    with pytest.raises(DataError, match=r"a\.csv\.gz is damaged"):
        stats.load(tmp_path / "a.csv.gz")
    (tmp_path / "a.csv.gz").write_text("data,model")
    with pytest.raises(DataError, match=r"a\.csv\.gz is damaged"):
        stats.load(tmp_path / "a.csv.gz")


def test_journals_that_were_interrupted(tmp_path: Path) -> None:
    cell = {"data": "a", "model": "m", "strategy": "rand", "batch_size": 10, "seed": 0}
    start = {"event": "start", "format": 1, "cell": cell}
    first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
    again = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.6}
    second = {"event": "round", "round": 1, "labels": 20, "test_accuracy": 0.7}
    journal(tmp_path / "a.jsonl", start, first, start, again, second, '{"event": "rou')
    journal(tmp_path / "b.jsonl", {"event": "ask", "round": 0, "ids": [1]})
    journal(tmp_path / "c.jsonl", {**start, "cell": {**cell, "seed": 1}})
    results = stats.load(tmp_path)
    assert results.test_accuracy.tolist() == [0.6, 0.7]  # a resumed run wrote round 0 again
    assert {(note.topic, note.text) for note in results.notes} == {
        ("files left out", "a.jsonl: the torn last line was ignored"),
        ("unfinished runs", "a.jsonl: stopped or still running, at 20 labels"),
        ("files left out", "b.jsonl: not the journal of an experiment (no start event)"),
        ("files left out", "c.jsonl: no finished round yet"),
    }
    journal(tmp_path / "a.jsonl", start, '{"event": "rou', first)
    with pytest.raises(JournalError, match="line 2: not a JSON object"):
        stats.load(tmp_path)
    journal(tmp_path / "a.jsonl", start, {"event": "round", "round": 0, "labels": 10})
    with pytest.raises(JournalError, match="lacks the field 'test_accuracy'"):
        stats.load(tmp_path)
    journal(tmp_path / "a.jsonl", start, {**start, "cell": {**cell, "seed": 5}}, first)
    with pytest.raises(JournalError, match="two different runs"):
        stats.load(tmp_path)
    journal(tmp_path / "a.jsonl", {**start, "format": 3}, first)
    with pytest.raises(JournalError, match="has format 3"):
        stats.load(tmp_path)
    journal(tmp_path / "a.jsonl", start, {"event": "checkpoint"}, first)
    with pytest.raises(JournalError, match="line 2: an event of the unknown kind 'checkpoint'"):
        stats.load(tmp_path)
    journal(tmp_path / "a.jsonl", start)
    with pytest.raises(DataError, match="nothing to report yet"):
        stats.load(tmp_path)
