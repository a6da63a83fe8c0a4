"""Verdicts on the paper's claims: each comes out where made-up results ask for it."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from badge.core.catalog import PAPER_STRATEGIES
from badge.stats import Results, example
from results.claims import claims
from results.verdicts import Claim, all_of, by_draws, by_signs, interval

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


def found(results: Results, words: str) -> Claim:
    matching = [claim for claim in claims(results) if words in claim.said]
    assert len(matching) == 1, words
    return matching[0]


def test_signs_draws_and_intervals() -> None:
    assert by_signs(0, 0) == "cannot be told" and by_signs(9, 1) == "holds" and by_signs(8, 2) == "cannot be told"
    assert by_signs(0, 5) == "does not hold"
    assert by_draws(lambda rows: True, 5, "x") == (1.0, "holds")
    assert by_draws(lambda rows: False, 5, "x") == (0.0, "does not hold")
    assert by_draws(lambda rows: bool(rows[0] < 3), 6, "x")[1] == "cannot be told"
    assert by_draws(lambda rows: True, 4, "x")[1] == "cannot be told"
    mean, low, high = interval(np.array([0.1, 0.2, 0.3, 0.2, 0.2]))
    assert mean == pytest.approx(0.2) and high - mean == pytest.approx(2.776 * 0.0707 / 5**0.5, rel=1e-3)
    assert interval(np.array([0.1]))[1:] == (-np.inf, np.inf)
    assert all_of([]) == "cannot be told" and all_of(["holds", "does not hold"]) == "does not hold"
    assert all_of(["holds", "cannot be told"]) == "cannot be told" and all_of(["holds"]) == "holds"
    assert low < mean


@pytest.mark.parametrize(("best", "verdict"), [("badge", "holds"), ("marg", "does not hold"), (None, "cannot be told")])
def test_the_lowest_column_and_errors(best: str | None, verdict: str) -> None:
    """The best strategy in all six data sets; none: each is best in one of seven."""

    def world(d: int, strategy: str, size: int, r: int) -> float:
        winner = PAPER_STRATEGIES[d % 7] if best is None else best
        return curve(r) + 0.05 * (strategy == winner)

    results = made(world, data=7)
    for words in (
        "penalty matrix over all",
        "penalty matrix at batch size 100",
        "matrix with mlp",
        "normalised errors",
    ):
        assert found(results, words).verdict == verdict, words


def test_few_settings_decide_nothing_over_settings() -> None:
    results = made(lambda d, strategy, size, r: curve(r) + 0.05 * (strategy == "badge"), data=4)
    assert found(results, "penalty matrix over all").verdict == "cannot be told"
    assert "number 1 with 0.00" in found(results, "penalty matrix over all").measured
    assert found(results, "never much worse").verdict == "cannot be told"


@pytest.mark.parametrize(("behind", "verdict"), [(0.0, "holds"), (0.2, "does not hold")])
def test_never_much_worse(behind: float, verdict: str) -> None:
    def world(d: int, strategy: str, size: int, r: int) -> float:
        return curve(r) - behind * (strategy == "badge" and d == 2 and r == 2)

    claim = found(made(world), "never much worse")
    assert claim.verdict == verdict
    if behind:
        assert "d2 · mlp · B = 100 at 300 labels" in claim.measured and "1 of them significantly" in claim.measured


@pytest.mark.parametrize(
    ("early", "late", "verdict"),
    [(0.05, -0.05, "holds"), (-0.05, -0.05, "does not hold"), (0.0, -0.05, "cannot be told")],
)
def test_diversity_early_and_uncertainty_late(early: float, late: float, verdict: str) -> None:
    def world(d: int, strategy: str, size: int, r: int) -> float:
        return curve(r) + (strategy == "coreset") * (early if r < 4 else late)

    assert found(made(world), "diversity (coreset)").verdict == verdict


@pytest.mark.parametrize(("gap", "verdict"), [(-0.05, "holds"), (0.05, "does not hold"), (0.0, "cannot be told")])
def test_coreset_against_rand(gap: float, verdict: str) -> None:
    results = made(lambda d, strategy, size, r: curve(r) + gap * (strategy == "coreset"))
    assert found(results, "worse than rand without").verdict == verdict


@pytest.mark.parametrize(("loss", "verdict"), [(0.05, "holds"), (-0.05, "does not hold"), (0.0, "cannot be told")])
def test_margin_and_batch_size(loss: float, verdict: str) -> None:
    def world(d: int, strategy: str, size: int, r: int) -> float:
        labels = 100 + size * r
        return 0.3 + labels / 4000 - loss * (strategy == "marg" and size == 1000)

    claim = found(made(world, sizes=(100, 1000)), "marg degrades")
    assert claim.verdict == verdict, claim.measured


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.0, "holds"), (0.03, "does not hold"), (-0.03, "does not hold"), (0.01, "cannot be told")]
)
def test_two_samplers_learn_equally_well(gap: float, verdict: str) -> None:
    results = made(lambda d, s, size, r: curve(r) + gap * (s == "kdpp"), data=2, strategies=("badge", "kdpp", "rand"))
    assert found(results, "learn equally well").verdict == verdict


@pytest.mark.parametrize(
    ("ratio", "shift", "verdict"), [(5.0, -9.0, "holds"), (0.2, 9.0, "does not hold"), (1.0, 0.0, "cannot be told")]
)
def test_cost_and_diversity(ratio: float, shift: float, verdict: str) -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        other = strategy in ("kdpp", "kcenter-grad", "coreset")
        seconds = (ratio if other else 1.0) * rng.uniform(0.9, 1.1)
        number = 50 + shift * other + rng.normal()
        return {"select_seconds": seconds, "log_det": number, "mean_norm": number}

    names = ("badge", "kdpp", "kcenter-grad", "coreset", "rand")
    results = made(lambda d, s, size, r: curve(r), data=2, strategies=names, more=more)
    assert found(results, "takes longer").verdict == verdict
    rows = [claim for claim in claims(results) if " picks " in claim.said]
    assert len(rows) == 6 and {claim.verdict for claim in rows} == {verdict}


@pytest.mark.parametrize(("ratio", "verdict"), [(30.0, "holds"), (5.0, "does not hold"), (10.0, "cannot be told")])
def test_large_batches_must_take_much_longer(ratio: float, verdict: str) -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        return {"select_seconds": (ratio if strategy == "kdpp" else 1.0) * rng.uniform(0.9, 1.1)}

    results = made(
        lambda d, s, size, r: curve(r), data=1, sizes=(1000,), strategies=("badge", "kdpp", "rand"), more=more
    )
    assert found(results, "takes longer").verdict == verdict


def test_dependent_batches_are_counted() -> None:
    def more(strategy: str, rng: np.random.Generator) -> dict[str, float]:
        dependent = strategy == "kcenter-grad" and rng.random() < 0.5
        return {"log_det": -np.inf if dependent else 5 + rng.normal(), "mean_norm": 1.0}

    results = made(lambda d, s, size, r: curve(r), data=1, strategies=("badge", "kcenter-grad", "rand"), more=more)
    assert "rounds of kcenter-grad at −∞" in found(results, "furthest-first on gradients picks less").measured


def test_one_seed_decides_nothing() -> None:
    assert {claim.verdict for claim in claims(made(lambda d, s, size, r: curve(r), seeds=1))} == {"cannot be told"}
    assert {claim.verdict for claim in claims(example())} == {"cannot be told"}


@pytest.mark.parametrize("name", ["claims", "claims_of_samplers", "collect", "page", "verdicts"])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"results.{name}")).failed == 0
