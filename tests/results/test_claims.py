"""Verdicts on the paper's claims: each comes out where made-up results ask for it."""

from __future__ import annotations

import doctest
import importlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge.core.catalog import PAPER_STRATEGIES
from badge.stats import REQUIRED, Penalty, Results, Setting, example
from results.claims import claims, competitive, lowest_column, similar_trend
from results.claims_of_samplers import larger
from results.verdicts import Claim, all_of, by_draws, by_signs, interval, over_data

#: made-up accuracies: (data number, strategy, batch size, round) -> accuracy
World = Callable[[int, str, int, int], float]


def made(
    world: World,
    *,
    data: int = 6,
    seeds: int = 4,
    strategies: tuple[str, ...] = PAPER_STRATEGIES,
    sizes: tuple[int, ...] = (100,),
    more: Callable[[str, np.random.Generator], Mapping[str, float]] | None = None,
) -> Results:
    """Results of a world, with a little noise that is the seed's and the run's own."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {}
    for d in range(data):
        for size in sizes:
            for strategy in strategies:
                for seed in range(seeds):
                    for r, labels in enumerate(range(100, 100 + 16 * 100 + 1, size)):
                        row = {"data": f"d{d}", "model": "mlp", "strategy": strategy, "batch_size": size, "seed": seed}
                        accuracy = world(d, strategy, size, r) + 0.002 * rng.normal()
                        extra = more(strategy, rng) if more else {}
                        for name, value in {**row, "labels": labels, "test_accuracy": accuracy, **extra}.items():
                            rows.setdefault(name, []).append(value)
    return Results.of(rows)


def curve(r: int, start: float = 0.3, gain: float = 0.6) -> float:
    """Still rising at the end, so that there are budgets."""
    return start + gain * r / 20


#: the results that were asked about last, and what is claimed of them
JUDGED: list[Any] = [None, []]


def found(results: Results, words: str, where: str = "") -> Claim:
    if results is not JUDGED[0]:
        JUDGED[:] = [results, claims(results)]
    matching = [claim for claim in JUDGED[1] if words in claim.quote and where in claim.where]
    assert len(matching) == 1, words
    return matching[0]


def test_signs_draws_and_intervals() -> None:
    assert by_signs(0, 0) == "cannot be told" and by_signs(9, 1) == "holds" and by_signs(8, 2) == "cannot be told"
    assert by_signs(0, 5) == "does not hold"
    five = list("abcde")
    assert by_draws(lambda rows: True, five, "x") == (1.0, "holds")
    assert by_draws(lambda rows: False, five, "x") == (0.0, "does not hold")
    assert by_draws(lambda rows: bool(rows[0] < 3), [*five, "f"], "x")[1] == "cannot be told"
    assert by_draws(lambda rows: True, five[:4], "x")[1] == "cannot be told"
    mean, low, high = interval(np.array([0.1, 0.2, 0.3, 0.2, 0.2]))
    assert mean == pytest.approx(0.2) and high - mean == pytest.approx(2.776 * 0.0707 / 5**0.5, rel=1e-3)
    assert interval(np.array([0.1]))[1:] == (-np.inf, np.inf)
    assert all_of([]) == "cannot be told" and all_of(["holds", "does not hold"]) == "does not hold"
    assert all_of(["holds", "cannot be told"]) == "cannot be told" and all_of(["holds"]) == "holds"
    assert low < mean


def test_settings_of_one_data_set_count_once() -> None:
    """Ten settings of two data sets are two pieces of evidence, not ten."""
    many = {Setting(data, "mlp", size): 1 for data in "ab" for size in range(1, 6)}
    assert over_data(many) == (2, 0, 2) and by_signs(*over_data(many)[:2]) == "cannot be told"
    assert by_draws(lambda rows: True, ["a"] * 5 + ["b"] * 5, "x")[1] == "cannot be told"
    rows: list[int] = []
    by_draws(lambda drawn: rows.append(len(drawn)) or True, ["a", "b", "c", "d", "e", "e"], "x")  # type: ignore[func-returns-value]
    assert min(rows) == 5 < max(rows)  # data set e comes with both of its settings


@pytest.mark.parametrize(("best", "verdict"), [("badge", "holds"), ("marg", "does not hold"), (None, "cannot be told")])
def test_the_lowest_column_and_errors(best: str | None, verdict: str) -> None:
    """The best strategy in all seven data sets; none: each is best in one of them."""

    def world(d: int, strategy: str, size: int, r: int) -> float:
        winner = PAPER_STRATEGIES[d % 7] if best is None else best
        return curve(r) + 0.05 * (strategy == winner)

    results = made(world, data=7)
    assert found(results, "generally outperforms baselines").verdict == verdict
    assert found(results, "best overall performance").verdict == verdict
    assert found(results, "show a similar trend").verdict == verdict
    for where in ("B = 100", "with mlp") if best else ():
        assert found(results, "competitive", where).verdict == verdict


def test_a_tie_is_not_the_lowest() -> None:
    """badge and marg win against rand in every setting and never against each other; then marg loses once to badge."""
    settings = tuple(Setting(f"d{i}", "mlp", 100) for i in range(6))
    values = np.zeros((6, 3, 3))
    values[:, :2, 2] = 1.0
    tied = Penalty(("badge", "marg", "rand"), settings, values, ())
    claim = lowest_column(tied)
    assert claim.verdict == "does not hold" and "badge 0.00, marg 0.00" in claim.measured
    assert competitive(tied)[0].verdict == "holds" and similar_trend(tied).verdict == "does not hold"
    values = values.copy()
    values[:, 0, 1] = 0.5
    ahead = tied._replace(values=values)
    assert lowest_column(ahead).verdict == similar_trend(ahead).verdict == "holds"
    assert similar_trend(ahead).measured == "B = 100 in 100 % of the draws; with mlp in 100 % of the draws"
    few = Penalty(tied.strategies, settings[:4], values[:4], ())
    assert similar_trend(few)[3:] == ("no such group", "cannot be told")


@pytest.mark.parametrize(
    ("ahead", "verdict"),
    [(("badge", "marg"), "holds"), (("badge", "conf"), "does not hold"), (("badge",), "cannot be told")],
)
def test_the_two_best(ahead: tuple[str, ...], verdict: str) -> None:
    results = made(lambda d, s, size, r: curve(r) + 0.05 * (s in ahead), data=6, sizes=(100,))
    assert found(results, "both BADGE and Marg perform best", "B = 100").verdict == verdict
    assert found(results, "both BADGE and Marg perform best", "with an MLP").verdict == verdict
    assert (
        found(results, "both BADGE and Marg perform best", "B = 1,000").measured == "no such setting has label budgets"
    )


@pytest.mark.parametrize(("gain", "verdict"), [(-0.05, "holds"), (0.05, "does not hold")])
def test_where_marg_and_coreset_are_not_good(gain: float, verdict: str) -> None:
    results = made(lambda d, s, size, r: curve(r) + gain * (s in ("marg", "coreset")), data=6)
    assert found(results, "representative sampling based").verdict == verdict
    claim = found(results, "uncertainty-based methods")
    assert claim.verdict == "cannot be told" and claim.measured == "no such setting has label budgets"
    table = {name: getattr(results, name) for name in REQUIRED} | dict(results.optional)
    deep = Results.of(table | {"model": ["resnet18"] * len(results), "batch_size": [200] * len(results)})
    assert found(deep, "uncertainty-based methods").verdict == verdict


def test_few_data_sets_decide_nothing_over_data_sets() -> None:
    results = made(lambda d, strategy, size, r: curve(r) + 0.05 * (strategy == "badge"), data=4)
    assert found(results, "generally outperforms").verdict == "cannot be told"
    assert "4 settings of 4 data sets: badge 0.00" in found(results, "generally outperforms").measured
    assert found(results, "as well as or better").verdict == "cannot be told"


@pytest.mark.parametrize(("behind", "verdict"), [(0.0, "holds"), (0.2, "does not hold")])
def test_as_good_as_the_best(behind: float, verdict: str) -> None:
    def world(d: int, strategy: str, size: int, r: int) -> float:
        return curve(r) - behind * (strategy == "badge" and r > 0)

    claim = found(made(world), "as well as or better")
    assert claim.verdict == verdict, claim.measured
    if behind:
        assert "B = 100 at " in claim.measured and "times the best baseline's" in claim.measured


@pytest.mark.parametrize(
    ("early", "late", "verdict"),
    [(0.05, -0.05, "holds"), (-0.05, -0.05, "does not hold"), (0.0, -0.05, "cannot be told")],
)
def test_diversity_early_and_uncertainty_late(early: float, late: float, verdict: str) -> None:
    def world(d: int, strategy: str, size: int, r: int) -> float:
        return curve(r) + (strategy == "coreset") * (early if r < 4 else late)

    assert found(made(world), "diversity sampling").verdict == verdict


@pytest.mark.parametrize(("gap", "verdict"), [(-0.05, "holds"), (0.05, "does not hold"), (0.0, "cannot be told")])
def test_coreset_against_rand(gap: float, verdict: str) -> None:
    results = made(lambda d, strategy, size, r: curve(r) + gap * (strategy == "coreset"))
    assert found(results, "worse than random").verdict == verdict
    elsewhere = found(
        made(lambda d, s, size, r: curve(r) + gap * (s == "coreset") + 0.02 * (s == "badge")), "only perform"
    )
    assert elsewhere.verdict == verdict or gap == 0.0


@pytest.mark.parametrize(("loss", "verdict"), [(0.05, "holds"), (-0.05, "does not hold"), (0.0, "cannot be told")])
def test_margin_in_the_largest_batches(loss: float, verdict: str) -> None:
    columns = made(lambda d, s, size, r: 0.3 + 0.2 * (r > 0) - loss * (s == "marg" and r > 0), data=1, sizes=(1600,))
    table = {name: getattr(columns, name) for name in ("data", "model", "strategy", "seed", "test_accuracy")}
    large = Results.of(table | {"batch_size": [10000] * len(columns), "labels": columns.labels})
    claim = found(large, "Marg's performance degrades")
    assert claim.verdict == verdict and "4 seeds" in claim.measured
    assert found(columns, "Marg's performance degrades").measured == "no runs with B = 10,000"


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.0, "holds"), (0.03, "does not hold"), (-0.03, "does not hold"), (0.01, "cannot be told")]
)
def test_two_samplers_learn_equally_well(gap: float, verdict: str) -> None:
    results = made(lambda d, s, size, r: curve(r) + gap * (s == "kdpp"), data=2, strategies=("badge", "kdpp", "rand"))
    assert found(results, "statistical performance").verdict == verdict


@pytest.mark.parametrize(("shift", "verdict"), [(-9.0, "holds"), (9.0, "does not hold"), (0.0, "cannot be told")])
def test_diversity(shift: float, verdict: str) -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        number = 50 + shift * (strategy in ("kdpp", "kcenter-grad", "coreset")) + rng.normal()
        return {"log_det": number, "mean_norm": number}

    names = ("badge", "kdpp", "kcenter-grad", "coreset", "rand")
    for data in (2, 6):  # all settings of few data sets, the sign test over many
        results = made(lambda d, s, size, r: curve(r), data=data, strategies=names, more=more)
        rows = [claim for claim in claims(results) if "figures 2 and 24" in claim.where]
        assert len(rows) == 6 and {claim.verdict for claim in rows} == {verdict}


@pytest.mark.parametrize(("ratio", "verdict"), [(30.0, "holds"), (5.0, "does not hold"), (10.0, "cannot be told")])
def test_large_batches_must_take_much_longer(ratio: float, verdict: str) -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        return {"select_seconds": (ratio if strategy == "kdpp" else 1.0) * rng.uniform(0.9, 1.1)}

    for size, expected in ((1000, verdict), (100, "cannot be told")):  # the paper speaks of large batches
        results = made(
            lambda d, s, size, r: curve(r), data=1, sizes=(size,), strategies=("badge", "kdpp", "rand"), more=more
        )
        assert found(results, "running times").verdict == expected


def test_dependent_batches_are_counted() -> None:
    """Most batches at −∞ and the rest larger than badge's: without those the other would be the more diverse."""

    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        dependent = strategy == "kcenter-grad" and rng.random() < 0.8
        return {"log_det": -np.inf if dependent else 5 + rng.normal() + (strategy != "badge"), "mean_norm": 1.0}

    results = made(lambda d, s, size, r: curve(r), data=1, strategies=("badge", "kcenter-grad", "rand"), more=more)
    claim = next(c for c in claims(results) if "on gradients" in c.where)
    assert "rounds of kcenter-grad at −∞" in claim.measured and claim.verdict == "holds", claim.measured
    assert "mean difference -" in claim.measured
    assert (larger(results, results.settings[0], "badge", "kcenter-grad", "log_det") > 0.5).all()
    assert (larger(results, results.settings[0], "badge", "kcenter-grad", "mean_norm") == 0.5).all()  # all ties


@pytest.mark.parametrize(("share", "verdict"), [(0.3, "holds"), (0.0, "does not hold")])
def test_confs_batches_on_letter(share: float, verdict: str) -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        dependent = strategy == "conf" and rng.random() < share
        return {"log_det": -np.inf if dependent else 5.0, "mean_norm": 2.0 * (strategy == "conf") + rng.normal(1, 0.01)}

    names = ("badge", "conf", "kdpp", "kcenter-grad", "rand")
    columns = made(lambda d, s, size, r: curve(r), data=1, strategies=names, more=more)
    table = {name: getattr(columns, name) for name in REQUIRED} | dict(columns.optional)
    letter = Results.of(table | {"data": ["letter"] * len(columns)})
    assert found(letter, "log Gram determinant being").verdict == verdict
    house_numbers: dict[str, Any] = {"data": ["svhn"] * len(columns), "model": ["resnet18"] * len(columns)}
    house_numbers["batch_size"] = [1000] * len(columns)
    assert found(Results.of(table | house_numbers), "interations of SVHN").verdict == verdict
    assert found(letter, "interations of SVHN").measured == "no such runs"
    assert found(letter, "largest average norm").verdict == "holds"
    assert found(columns, "largest average norm").verdict == "cannot be told"  # another data set


def test_one_seed_decides_nothing() -> None:
    assert {claim.verdict for claim in claims(made(lambda d, s, size, r: curve(r), seeds=1))} == {"cannot be told"}
    assert {claim.verdict for claim in claims(example())} == {"cannot be told"}


def test_every_quote_is_the_papers(tmp_path: Path) -> None:
    """Where the paper is at hand: every quotation is in it, but for its markup."""
    source = os.environ.get("BADGE_PAPER")
    if not source:
        pytest.skip("BADGE_PAPER names no file")
    text = Path(source).read_text(encoding="utf-8")
    names = {
        "ouralg": "BADGE",
        "kmeansp": "k-means++",
        "coreset": "Coreset",
        "conf": "Conf",
        "marg": "Marg",
        "albl": "ALBL",
    }
    for macro, name in names.items():
        text = re.sub(rf"\\{macro}\b(\\|\{{\}})?", name, text)
    plain = " ".join(re.sub(r"[\\${}~]", "", text.replace("\\infty", "∞")).replace("-∞", "−∞").split())
    for claim in claims(example()):
        quotes = re.findall(r'"(.*?)"', claim.quote) or re.split(r" \[.*?\] ", claim.quote)
        for quote in quotes:
            assert quote in plain, quote


@pytest.mark.parametrize("name", ["claims", "claims_of_samplers", "collect", "page", "verdicts"])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"results.{name}")).failed == 0
