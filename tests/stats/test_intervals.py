"""The intervals of labels saved cover what they say, with three seeds and with five: simulated through `saved_labels`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from badge import stats
from badge.stats import Results, Setting, labels_to_reach
from badge.stats import labels_saved as module
from badge.stats.labels_saved import FEWEST_DATA_SETS, Saving, t_interval

LABELS = np.arange(100, 1600, 100)
TRIALS = 400


def curves(rng: np.random.Generator, speed: float, luck: np.ndarray, noise: float = 1.0) -> np.ndarray:
    """Accuracies [seeds, rounds]: each seed has its own start, its own level, and noise in every round."""
    way = 1 - (1 + (LABELS - 100) * speed / 900) ** -1.3
    level = rng.normal(0, 0.006 * noise, (len(luck), 1)) + rng.normal(0, 0.004 * noise, (len(luck), len(LABELS)))
    return 0.3 + 0.65 * way + luck[:, None] * (1 - way) + level


def results_of(ours: np.ndarray, rand: np.ndarray, data: str = "d") -> dict[str, list[object]]:
    rows = [
        (data, "mlp", name, 100, seed, int(n), float(a))
        for name, values in (("badge", ours), ("rand", rand))
        for seed, row in enumerate(values)
        for n, a in zip(LABELS, row, strict=True)
    ]
    return dict(zip(stats.REQUIRED, map(list, zip(*rows, strict=True)), strict=True))


def ratios(ours: np.ndarray, rand: np.ndarray) -> np.ndarray:
    target = rand[:, -1]
    return labels_to_reach(LABELS, ours, target) / labels_to_reach(LABELS, rand, target)


def percentile(ours: np.ndarray, rand: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The percentile bootstrap over seeds: too narrow for few of them."""
    picks = rng.integers(len(ours), size=(200, len(ours)))
    low, high = np.quantile(ratios(ours[picks].mean(1), rand[picks].mean(1)), [0.025, 0.975])
    return float(low), float(high)


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("speed", [1.3, 2.0])
def test_intervals_cover_as_they_say(seeds: int, speed: float) -> None:
    rng = np.random.default_rng(seeds)
    truth = ratios(*(curves(rng, s, np.zeros(1), noise=0.0) for s in (speed, 1.0)))[0]
    covered = {"ours": 0, "percentile": 0}
    for _ in range(TRIALS):
        luck = rng.normal(0, 0.015, seeds)
        ours, rand = curves(rng, speed, luck), curves(rng, 1.0, luck)
        saving = stats.saved_labels(Results.of(results_of(ours, rand)), ["badge"]).savings[0]
        covered["ours"] += saving.low <= truth <= saving.high
        low, high = percentile(ours, rand, rng)
        covered["percentile"] += low <= truth <= high
    assert 0.92 <= covered["ours"] / TRIALS <= 0.98
    assert covered["percentile"] / TRIALS < 0.9  # the test can tell


def test_what_is_not_reached_is_bounded_below() -> None:
    """A strategy as good as rand is at the edge: half of the time it does not get there, and the truth stays inside."""
    rng = np.random.default_rng(0)
    missed = inside = 0
    for _ in range(TRIALS):
        luck = rng.normal(0, 0.015, 5)
        saving = stats.saved_labels(Results.of(results_of(curves(rng, 1.0, luck), curves(rng, 1.0, luck)))).savings[0]
        missed += math.isinf(saving.ratio)
        assert math.isfinite(saving.low) and (math.isinf(saving.high) or math.isfinite(saving.ratio))
        inside += saving.low <= 1.0 <= saving.high
    assert 0.3 < missed / TRIALS < 0.7 and inside / TRIALS >= 0.93


def test_two_repeats_have_no_interval() -> None:
    assert all(math.isnan(edge) for edge in t_interval(np.log([0.5, 0.4, 0.6])))
    rng = np.random.default_rng(0)
    luck = np.zeros(2)
    saved = stats.saved_labels(Results.of(results_of(curves(rng, 1.5, luck), curves(rng, 1.0, luck))))
    assert math.isnan(saved.savings[0].low) and math.isfinite(saved.savings[0].ratio)


def test_the_median_is_ordinary_and_its_interval_goes_over_data_sets() -> None:
    """Two settings of each data set: a bootstrap over settings would be narrower than one over data sets."""
    rng = np.random.default_rng(0)
    luck = np.zeros(3)
    tables = []
    for i, speed in enumerate((1.1, 1.3, 1.6, 2.0, 2.6, 3.2)):
        for size in (100, 200):
            columns = results_of(curves(rng, speed, luck, 0.1), curves(rng, 1.0, luck, 0.1), f"d{i}")
            tables.append(Results.of(columns | {"batch_size": [size] * len(columns["data"])}))
    saved = stats.saved_labels(Results.joined(tables), ["badge"])
    ratios = [saving.ratio for saving in saved.savings]
    median = saved.medians[0]
    assert median.ratio == pytest.approx(np.median(ratios)) and median.low < median.ratio < median.high
    draws = [np.median(rng.choice(ratios, len(ratios))) for _ in range(2000)]
    assert median.high - median.low > 1.1 * (np.quantile(draws, 0.975) - np.quantile(draws, 0.025))
    few = Results.joined([t for t in tables if int(t.settings[0].data[1:]) < FEWEST_DATA_SETS - 1])
    assert math.isnan(stats.saved_labels(few, ["badge"]).medians[0].low)


@pytest.mark.parametrize(("sizes", "least"), [([3, 3, 3, 2, 2, 2, 2, 1, 1], 0.92), ([2] * 5, 0.84)])
def test_the_interval_of_the_median_covers(sizes: list[int], least: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many settings of each data set, whose ratios have a part in common. Five data sets are few."""
    monkeypatch.setattr(module, "DRAWS", 1000)
    rng, covered = np.random.default_rng(0), {"ours": 0, "percentile": 0}
    for trial in range(200):
        savings = [
            Saving(Setting(f"d{i}", "mlp", j), "badge", 5, 0, 0, 0, 0.8 * math.exp(level + rng.normal(0, 0.2)), 0, 0)
            for i, (size, level) in enumerate(zip(sizes, rng.normal(0, 0.2, len(sizes)), strict=True))
            for j in range(size)
        ]
        for name, edge in (("ours", module.expanded), ("percentile", lambda tail, count: tail)):
            with monkeypatch.context() as patch:
                patch.setattr(module, "expanded", edge)
                found = module._median(savings, np.random.default_rng(trial))
            covered[name] += found.low <= 0.8 <= found.high
    assert least <= covered["ours"] / 200 <= 0.98 and covered["percentile"] < covered["ours"] - 4
