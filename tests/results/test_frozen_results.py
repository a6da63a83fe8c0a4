"""The tables of strategies on frozen encoders: differences from `rand` of the same first batch, data set and seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from badge.stats import Results, load
from results import FROZEN
from results.frozen import (
    BUDGETS,
    ENCODED,
    RULE,
    above_reference,
    after_firsts,
    batch_sizes,
    by_budget,
    curves,
    half_interval,
    native,
    published,
    ranked,
    rule_lines,
    tables,
    verdict,
)

GAINS = {"rand": 0.0, "badge": 0.02, "marg": -0.01, "uherding": 0.05}


def made(
    gains: Mapping[str, float] = GAINS,
    sets: tuple[str, ...] = ("a", "b"),
    firsts: tuple[str, ...] = ("typiclust",),
    seeds: int = 2,
) -> Results:
    """Curves that rise from 0.5 by 0.01 a round, plus the gain of the strategy from the second round on."""
    rows = [
        (
            data,
            f"linear+{first}",
            strategy,
            seed,
            10 * (i + 1),
            0.5 + 0.01 * i + gain * (i > 0) + 0.03 * (first == "typiclust"),
        )
        for data in sets
        for first in firsts
        for strategy, gain in gains.items()
        for seed in range(seeds)
        for i in range(20)
    ]
    data, model, strategy, seed, labels, accuracy = zip(*rows, strict=True)
    columns = {"data": data, "model": model, "strategy": strategy, "batch_size": [10] * len(rows), "seed": seed}
    return Results.of({**columns, "labels": labels, "test_accuracy": accuracy})


def test_points_above_rand_and_the_best_first() -> None:
    found = curves(made())
    gains = above_reference(found, "typiclust", (1, 3))
    assert np.allclose(list(gains["badge"].values()), 2.0) and np.allclose(list(gains["marg"].values()), -1.0)
    lines = by_budget(found)
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == ["uherding", "badge", "marg"]
    assert lines[-2].startswith("| `badge` | +2.0 (4) | +2.0 (4)")  # of two sets no interval
    assert above_reference(found, "rand", (1, 3)) == {}  # another first batch


def test_the_first_look_says_how_many_labels_do_the_work_of_all_random_ones() -> None:
    """`rand` ends 0.19 above its start with 200 labels; with 0.05 and 0.02 more from the second batch on 150 and 180 do."""
    shown = cells(tables(made())["readme"])
    assert [shown[name][-1] for name in ("uherding", "badge", "marg")] == ["0.75", "0.90", "not reached"]
    assert shown["uherding"][:3] == ["+5.0"] * 3


def test_a_strategy_that_lacks_a_data_set_has_a_table_beside_the_ranking() -> None:
    whole = made()
    lacking = (whole.strategy == "marg") & (whole.data == "b")
    names = ("data", "model", "strategy", "batch_size", "seed", "labels", "test_accuracy")
    lines = by_budget(curves(Results.of({n: getattr(whole, n)[~lacking] for n in names})))
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == ["uherding", "badge", "marg"]
    above = above_reference(curves(whole), "typiclust", (1, 3))["uherding"]
    assert lines[-1].startswith(f"| `marg` | a | -1.0 ({np.mean([above['a', 0], above['a', 1]]):+.1f})")


def test_a_strategy_that_lacks_a_data_set_is_not_ranked() -> None:
    whole = made()
    lacking = (whole.strategy == "uherding") & (whole.data == "b")
    names = ("data", "model", "strategy", "batch_size", "seed", "labels", "test_accuracy")
    gains = above_reference(curves(Results.of({n: getattr(whole, n)[~lacking] for n in names})), "typiclust", (4, 10))
    assert ranked(gains)[0] == ["badge", "marg"] and len(gains["uherding"]) == 2
    less = (whole.strategy == "uherding") & (whole.data == "b") & (whole.seed == 1)
    gains = above_reference(curves(Results.of({n: getattr(whole, n)[~less] for n in names})), "typiclust", (4, 10))
    assert ranked(gains)[0] == ["badge", "marg"]  # one seed of b: the others would lose theirs


@pytest.mark.parametrize(("other", "holds"), [({"uherding": 0.05}, True), ({"uherding": 0.0, "badge": 0.02}, False)])
def test_the_rule_fixed_in_advance_is_tested_on_other_sets(other: dict[str, float], holds: bool) -> None:
    one = made(sets=("trec-minilm", "cifar10-efficientnet"), firsts=("rand", "typiclust"))
    two = made({**GAINS, **other}, sets=("letter",), firsts=("rand", "typiclust"))
    found = verdict(native({**curves(one), **curves(two)}))
    below = pytest.approx(dict.fromkeys(BUDGETS, 0.0 if holds else 2.0))
    assert found is not None and found.holds is holds and found.searched == RULE
    assert found.below_best == below and found.by_set == {"letter": below} and len(found.rules) == 8
    misled = made({**GAINS, "badge": 0.2}, sets=("trec-minilm", "cifar10-efficientnet"), firsts=("rand", "typiclust"))
    found = verdict(native({**curves(misled), **curves(two)}))
    assert found is not None and found.searched[1] == "badge" and found.holds is holds and (found.off > 1) is holds


@pytest.mark.parametrize("count", [3, 5, 6])
def test_intervals_over_seeds_and_data_sets_cover_as_they_say(count: int) -> None:
    """So many seeds or data sets, drawn from a normal and from a uniform law; one with the normal quantile is too narrow."""
    rng = np.random.default_rng(count)
    for draws in (rng.normal(size=(2000, count)), rng.uniform(-1, 1, size=(2000, count))):
        inside = [abs(float(values.mean())) <= half_interval(values.tolist()) for values in draws]
        assert 0.91 <= np.mean(inside) <= 0.97
        narrow = 1.96 * draws.std(axis=1, ddof=1) / count**0.5
        assert np.mean(np.abs(draws.mean(axis=1)) <= narrow) < 0.93


def test_every_table_has_a_line_even_with_few_runs() -> None:
    assert all(lines for lines in tables(made({"rand": 0.0, "badge": 0.01}, sets=("a",))).values())
    assert tables(made(firsts=("rand", "typiclust")))["cold"][2] == "| a | 50.0 % (2) | – | – | +3.0 (2) |"


def test_a_set_of_its_own_can_have_a_better_pair_than_the_mean_over_sets() -> None:
    both = ("rand", "typiclust")
    one = made(sets=("trec-minilm", "cifar10-efficientnet"), firsts=both)
    two = made(GAINS, sets=("letter",), firsts=both)
    three = made({**GAINS, "badge": 0.06}, sets=("mnist",), firsts=both)
    found = native({**curves(one), **curves(two), **curves(three)})
    said = verdict(found)
    assert said is not None and max(said.below_best.values()) == pytest.approx(0.0)
    assert said.by_set == {
        data: pytest.approx(dict.fromkeys(BUDGETS, far)) for data, far in (("letter", 0), ("mnist", 1))
    }
    lines = rule_lines(found)
    assert "| mnist | 1.0 | 1.0 | 1.0 |" in lines and "among them after `rand`" in " ".join(lines)
    assert "8 pairs of first batch and strategy have two seeds" in " ".join(lines)
    assert "after every first batch" not in " ".join(lines)


@pytest.mark.parametrize(("gain", "said"), [(0.085, "0.5, 0.5, 0.5 points"), (0.1, "2.0, 2.0, 2.0 points")])
def test_first_batches_that_some_sets_lack_have_a_verdict_of_their_own(gain: float, said: str) -> None:
    """On letter the rule's strategy is better after maxherding; mnist has the rule alone."""
    sets = ("trec-minilm", "cifar10-efficientnet", "letter")
    found = curves(made(sets=sets, firsts=("rand", "kmeanspp", "typiclust")))
    found |= curves(made({"rand": 0.0, "uherding": gain}, sets=sets, firsts=("maxherding",)))
    found |= curves(made(sets=("mnist",)))
    words = " ".join(rule_lines(native(found)))
    assert "In the mean over these sets the rule is itself the best pair at each budget." in words
    assert "On letter `uherding` was run after every first batch. Of the 14 pairs there" in words
    assert f"the rule is {said} below the best at low, middle and high budgets: " in words
    assert ("**not** within one point." in words) == (gain == 0.1)
    assert "first `maxherding`, then `uherding`, which is `uherding` by itself." in words


def test_what_another_first_batch_is_worth_when_the_rule_goes_on() -> None:
    found = curves(made(sets=("a",), firsts=("rand", "typiclust")))
    assert after_firsts(found)[2:] == [f"| a, {budget} | – | – | +3.0 (2) |" for budget in ("low", "middle", "high")]
    assert after_firsts(curves(made())) == ["Not run yet."]  # nothing to subtract


def test_batches_of_other_sizes_show_what_was_not_run() -> None:
    whole = made(sets=("a",))
    rows = (whole.labels <= 100) & ((whole.strategy != "uherding") | (whole.seed == 0))
    names = ("data", "model", "strategy", "seed", "labels", "test_accuracy")
    small = {n: getattr(whole, n)[rows] for n in names}
    lines = batch_sizes(curves(Results.of({**small, "batch_size": np.full(rows.sum(), 100)})))
    found = cells(lines)
    assert found["strategy"] == ["a, B = 100"] and found["seeds"] == ["2"]
    assert (found["badge"], found["marg"]) == (["+2.0"], ["-1.0"]) and "uherding" not in found  # it has one seed


def test_batches_of_other_sizes_are_compared_over_the_seeds_that_all_have() -> None:
    """A third seed of some, in which they are better, does not count beside those with two."""
    whole = made(sets=("a",), seeds=3)
    rows = (whole.labels <= 100) & ((whole.strategy != "uherding") | (whole.seed < 2))
    luck = 0.1 * ((whole.strategy == "badge") & (whole.seed == 2) & (whole.labels > 10))
    columns = {n: getattr(whole, n)[rows] for n in ("data", "model", "strategy", "seed", "labels")}
    columns |= {"test_accuracy": (whole.test_accuracy + luck)[rows], "batch_size": np.full(rows.sum(), 100)}
    found = cells(batch_sizes(curves(Results.of(columns))))
    assert found["seeds"] == ["2"] and found["badge"] == ["+2.0"] and found["uherding"] == ["+5.0"]


def test_first_batches_are_compared_over_the_seeds_that_all_have() -> None:
    whole = made(sets=("a",), firsts=("rand", "kmeanspp", "typiclust"), seeds=3)
    rows = (whole.model != "linear+kmeanspp") | (whole.seed < 2)
    names = ("data", "model", "strategy", "batch_size", "seed", "labels", "test_accuracy")
    lines = after_firsts(curves(Results.of({n: getattr(whole, n)[rows] for n in names})))
    assert lines[2:] == [f"| a, {budget} | +0.0 (2) | – | +3.0 (2) |" for budget in ("low", "middle", "high")]


def test_published_numbers_stand_beside_ours_above_badge() -> None:
    lines = cells(published(curves(made())))
    assert lines["margin"] == ["marg` (2 sets, 4 pairs)", "-0.3 · -3.0", "-0.3 · -3.0", "-0.1 · -3.0"]
    assert lines["random"][1] == "-3.1 · -2.0" and lines["DropQuery"][1] == "+3.2 · –"
    assert lines["BAIT, binary"][1] == "+3.6 · –"


def cells(lines: list[str]) -> dict[str, list[str]]:
    """The rows of a table by their first cell."""
    rows = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {first: rest for first, *rest in rows}


def first_number(cell: str) -> float:
    return float(cell.split()[0].strip("*"))


def numbers(lines: list[str]) -> dict[str, list[float]]:
    """The rows of three numbers each, by strategy."""
    rows = {name: row for name, row in cells(lines).items() if len(row) == 3 and name not in ("strategy", "---")}
    return {name: [first_number(cell) for cell in row] for name, row in rows.items()}


def ahead_of_badge(name: str, rows: dict[str, list[str]]) -> set[str]:
    """The data sets on which a strategy's mean is above that of badge."""
    pairs = zip(rows["strategy"], rows[name], rows["badge"], strict=True)
    return {data for data, ours, theirs in pairs if first_number(ours) > first_number(theirs)}


def test_the_words_of_which_strategy_are_those_of_its_tables() -> None:
    """Whoever adds runs and makes the tables again reads here which sentences no longer hold."""
    words = " ".join(Path("docs/which-strategy.md").read_text(encoding="utf-8").split())
    shown = tables(load(FROZEN))
    budgets = numbers(shown["budgets"])
    order = [sorted(budgets, key=lambda name, i=i: -budgets[name][i]) for i in range(3)]
    assert "`maxherding`, which needs no model, is second at low and middle budgets" in words
    assert [names[1] == "maxherding" for names in order[:2]] == [True, True]
    assert "`bald` is among the last three at every budget" in words
    assert all("bald" in names[-3:] for names in order)
    assert "`uherding` is first at low, middle and high budgets, and its lead over `rand` shrinks" in words
    assert [names[0] for names in order] == ["uherding"] * 3
    assert budgets["uherding"] == sorted(budgets["uherding"], reverse=True)
    assert "With few labels `uherding` from the first batch on is a little better in the mean." in words
    assert "| low (1–3) | first `maxherding`, then `uherding` |" in "\n".join(shown["rule"])
    assert "so it is within one point at each budget." in " ".join(shown["rule"])
    assert "`power-marg`: ahead of `marg` in the mean at each budget" in words
    assert all(ours > theirs for ours, theirs in zip(budgets["power-marg"], budgets["marg"], strict=True))
    ahead, binary, sets = [], [], set()
    assert "On `trec` nothing is significantly ahead of uniform picks" in words
    for lines in "\n".join(shown["data"]).split(" budgets:")[1:]:
        by_set = cells(lines.split("\n"))
        trec = [row[-1].split(" ± ") for name, row in by_set.items() if "±" in row[-1]]
        assert len(trec) == 14 and not any(float(mean.strip("*")) > float(half.strip("*")) for mean, half in trec)
        sets |= set(by_set["strategy"])
        ahead.append(ahead_of_badge("uherding", by_set))
        binary.append(ahead_of_badge("bait-binary", by_set))
    said = "ahead of it on five of six data sets at each budget"
    assert said in words
    said = "from 10 to 77 classes: `uherding` is ahead of `badge` on each of these sets; on `trec`, with 6, it is not"
    assert said in words
    assert ahead == [sets - {"trec-minilm"}] * 3 and len(sets) == 6
    said = (
        "`bait-binary` is ahead of `badge` on banking77, cifar10 and svhn. On trec it is below `badge` at each budget"
    )
    assert said in words
    assert all(found >= {name for name in ENCODED if name != "trec-minilm"} for found in binary[:2])
    assert not any("trec-minilm" in found for found in binary)
    assert "the only two whose recall is significantly above that of `rand` on both sets" in words
    sure = []
    for lines in "\n".join(shown["rare"]).split("rounds 4 to 19")[1:]:
        recall = {name: row[2].split(" ± ") for name, row in cells(lines.split("\n")).items() if "±" in row[-1]}
        sure.append({name for name, (mean, half) in recall.items() if float(mean) > float(half)})
    assert len(sure) == 2 and set.intersection(*sure) == {"conf", "entropy"}
    firsts = cells(shown["cold"])
    header = firsts.pop("data set")
    assert "`kmeanspp` is not significantly better than `rand` on any set" in words
    plain = [row[header.index("kmeanspp")].split() for name, row in firsts.items() if name != "---"]
    better = [float(cell[0]) > float(cell[2]) for cell in plain if "±" in cell]
    assert len(better) == 6 and not any(better)
    assert "`uherding` after `maxherding` is ahead of `uherding` after `typiclust`, or level, at each budget" in words
    later = cells(shown["firsts"])
    header = later["data set, budget"]
    for budget in ("low", "middle", "high"):
        rows = [row for name, row in later.items() if name.endswith(budget) and "–" not in row]
        after = {first: np.mean([first_number(row[header.index(first)]) for row in rows]) for first in header}
        assert after["maxherding"] > after["typiclust"] - 0.2
    batches = cells(shown["batches"])
    assert "of nine strategies that were run, `uherding` is the best or within half a point of the best" in words
    assert "from 100 labels on, in batches of 10 or 100, `marg` is ahead" in words
    assert "With batches of 100 and more and many classes, `wkmeans`" in words
    for i, name in enumerate(batches["strategy"]):
        column = {of: first_number(row[i]) for of, row in batches.items() if row[i][1:2].isdigit()}
        if name.endswith(("B = 100", "B = 500")):
            assert column["uherding"] > max(column.values()) - 0.5 and len(column) == 9
        if name.endswith(("B = 10", "B = 100")):
            assert column["marg"] > column["power-marg"]
        if name.startswith("banking77"):
            assert max(column.keys() - {"uherding"}, key=lambda of: column[of]) == "wkmeans"


def test_the_advice_on_the_page_of_strategies_is_that_of_the_tables() -> None:
    shown = tables(load(FROZEN))
    budgets = numbers(shown["budgets"])
    above = {(a, b): [x > y for x, y in zip(budgets[a], budgets[b], strict=True)] for a in budgets for b in budgets}
    assert max(budgets["coreset"]) < 0 > max(budgets["bald"]) and all(above["maxherding", "probcover"])
    assert all(above["badge-origin", "badge"][1:]) and all(above["uherding", "badge"])
    assert all(above["uherding", name].count(True) >= 2 for name in budgets if name not in ("uherding", "typiclust"))
    fewer = [cells(shown[table])["bait"] for table in ("budgets", "encoders")]
    assert [of[0] for of in fewer] == ["letter, trec-minilm", "trec-minilm"]
    behind, level = ([[float(x.strip(")")) for x in cell.split(" (")] for cell in of[1:]] for of in fewer)
    assert all(ours < best for ours, best in behind) and all(best < ours < best + 2 for ours, best in level)
    for budget, lines in enumerate("\n".join(shown["data"]).split(" budgets:")[1:]):
        ahead = ahead_of_badge("bait-binary", cells(lines.split("\n"))) & set(ENCODED)
        assert "trec-minilm" not in ahead and (len(ahead) == 3 or budget == 2)
    assert budgets["bait-binary"][2] < budgets["badge"][2]
