"""Strategies on frozen encoders: what each gains over `rand` from the same first batch, data set and seed.

The tables of docs/which-strategy.md and the first half of docs/results.md come from results/frozen.csv.gz through these
functions. A table compares strategies over the data sets and seeds that all of its strategies have.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge import stats
from badge.core.catalog import REFERENCE, STRATEGIES
from badge.stats import Results
from badge.stats.penalty import critical_value

__all__ = ["BUDGETS", "Curves", "Key", "above_reference", "by_budget", "curves", "tables", "verdict"]

#: Rounds after the first batch: low, middle and high budgets.
BUDGETS = {"low (1–3)": (1, 3), "middle (4–10)": (4, 10), "high (11–19)": (11, 19)}
#: The first batch of the main tables, and the other ways to choose it.
FIRST, FIRSTS = "typiclust", ("rand", "kmeanspp", "maxherding", "typiclust")
#: The rule that was fixed before the runs: the first batch, and the strategy after it.
RULE = ("typiclust", "uherding")
#: The data sets that were looked at while the strategies were written: the rule is tested on the others.
LOOKED_AT = ("trec-minilm", "cifar10-efficientnet")
#: Sets with few examples of half of their classes.
RARE = ("cifar10-efficientnet-rare", "mnist-rare")
#: The sets whose rows are what a pretrained encoder says; the others stand for themselves.
ENCODED = ("banking77-minilm", "cifar10-efficientnet", "svhn-efficientnet", "trec-minilm")
#: Strategies whose seconds are not those of `badge`: grids/products.py keeps products of pairs between batches.
KEPT_PRODUCTS = ("uherding", "maxherding", "probcover")
#: Points of accuracy above BADGE at low, middle and high budgets: means of ten image sets with frozen encoders, from the
#: public result files of dal-toolbox's BoSS. None of ours is DropQuery.
PUBLISHED = {
    "bait-binary": ("BAIT, binary", (3.6, 0.9, 0.4)),
    "": ("DropQuery", (3.2, -0.3, -0.7)),
    "typiclust": ("TypiClust", (2.6, -0.8, -1.2)),
    "marg": ("margin", (-0.3, -0.3, -0.1)),
    "rand": ("random", (-3.1, -3.0, -1.8)),
}
#: A rule is good enough if it is at most this many points below the best.
TOLERANCE = 1.0


class Key(NamedTuple):
    """One run."""

    data: str
    first: str
    batch_size: int
    strategy: str
    seed: int


Curves = dict[Key, NDArray[np.float64]]
Gains = dict[str, dict[tuple[str, int], float]]


def curves(results: Results, column: str = "test_accuracy") -> Curves:
    """Each run's values of a column in percent, by round."""
    values = 100 * (results.test_accuracy if column == "test_accuracy" else results.column(column))
    found = {}
    for run in results.runs:
        first = run.setting.model.partition("+")[2] or REFERENCE
        found[Key(run.setting.data, first, run.setting.batch_size, run.strategy, run.seed)] = values[run.rows]
    return found


#: A strategy with fewer seeds than this on one of the data sets stands in no ranking: others would lose their seeds.
SEEDS = 2


def native(found: Curves) -> Curves:
    """The runs with batches of C examples: the smallest batch of each data set that has every cold start."""
    smallest: dict[str, int] = {}
    for key, values in found.items():
        if len(values) == 20:
            smallest[key.data] = min(smallest.get(key.data, key.batch_size), key.batch_size)
    return {key: values for key, values in found.items() if smallest.get(key.data) == key.batch_size}


def above_reference(found: Curves, first: str, rounds: tuple[int, int]) -> Gains:
    """Of each strategy and each (data set, seed): points above `rand` in these rounds, both from the same first batch."""
    means: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for key, values in found.items():
        if key.first == first and len(values) > rounds[1]:
            means[key.data, key.seed][key.strategy] = float(values[rounds[0] : rounds[1] + 1].mean())
    gains: Gains = defaultdict(dict)
    for pair, of in means.items():
        for strategy, mean in of.items() if REFERENCE in of else ():
            gains[strategy][pair] = mean - of[REFERENCE]
    return gains


def ranked(gains: Gains) -> tuple[list[str], list[tuple[str, int]]]:
    """The strategies that have two seeds of every data set that `badge` has, and the pairs of set and seed they share."""
    seeds = Counter(data for data, _ in gains.get("badge", {}))
    counts = {name: Counter(data for data, _ in of) for name, of in gains.items()}
    enough = {name for name, of in counts.items() if all(of[data] >= min(n, SEEDS) for data, n in seeds.items())}
    names = [name for name in STRATEGIES if name in enough]
    shared = set.intersection(*(set(gains[name]) for name in names)) if names else set()
    return [name for name in names if name != REFERENCE], sorted(shared)


def by_set(values: dict[tuple[str, int], float], pairs: Iterable[tuple[str, int]]) -> dict[str, list[float]]:
    """The values of each data set."""
    found: dict[str, list[float]] = defaultdict(list)
    for data, seed in pairs:
        found[data].append(values[data, seed])
    return found


def _over_sets(values: dict[tuple[str, int], float], pairs: Iterable[tuple[str, int]]) -> float:
    """The mean of the data sets' means."""
    return float(np.mean([np.mean(of) for of in by_set(values, pairs).values()]))


def half_interval(values: Sequence[float]) -> float:
    """Half of a 95 % t interval of the mean; NaN for one value or two: of two it says nothing."""
    if len(values) < 3:
        return math.nan
    return critical_value(len(values), 0.05) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def shown(values: Sequence[float]) -> str:
    """Mean ± half a 95 % t interval.

    >>> shown([1.0, 2.0, 3.0]), shown([1.0, 2.0])
    ('+2.0 ± 2.5', '+1.5')
    """
    half = half_interval(values)
    return f"{np.mean(values):+.1f}" + (f" ± {half:.1f}" if math.isfinite(half) else "")


def by_budget(found: Curves, first: str = FIRST) -> list[str]:
    """A row per strategy: points above `rand` at three budgets, over data sets, and the number of pairs it is ahead in."""
    columns = {name: above_reference(found, first, rounds) for name, rounds in BUDGETS.items()}
    names, pairs = ranked(columns["high (11–19)"])
    if not pairs:
        return ["No data set has runs of all these strategies yet."]
    rows = []
    for name in names:
        cells, total = [], 0.0
        for gains in columns.values():
            means = [float(np.mean(values)) for values in by_set(gains[name], pairs).values()]
            ahead = sum(gains[name][pair] > 0 for pair in pairs)
            cells.append(f"{shown(means)} ({ahead})")
            total += float(np.mean(means))
        rows.append((-total, [f"`{name}`", *cells]))
    sets = sorted({data for data, _ in pairs})
    return [
        f"First batch by `{first}`. {len(pairs)} pairs of data set and seed, from {len(sets)} data sets: {', '.join(sets)}.",
        "A cell has the points of test accuracy above `rand`: the mean over data sets ± the half-width of a 95 % t interval",
        f"over data sets. In brackets: in how many of the {len(pairs)} pairs the strategy is ahead of `rand`. Best first.",
        "",
        *table(["strategy", *columns], [row for _, row in sorted(rows)]),
        *_on_fewer_sets(columns, names),
    ]


def _on_fewer_sets(columns: dict[str, Gains], ranked_names: Sequence[str]) -> list[str]:
    """Strategies that some data set lacks, each beside the rule's strategy on the pairs of set and seed it has."""
    rows = []
    for name in STRATEGIES:
        seeds = Counter(data for data, _ in columns["high (11–19)"].get(name, {}))
        pairs = [(d, s) for d, s in columns["high (11–19)"].get(name, {}) if seeds[d] >= SEEDS]
        pairs = [pair for pair in pairs if pair in columns["high (11–19)"][RULE[1]]]
        if name not in (*ranked_names, REFERENCE) and pairs:
            cells = [
                f"{_over_sets(of[name], pairs):+.1f} ({_over_sets(of[RULE[1]], pairs):+.1f})" for of in columns.values()
            ]
            rows.append([f"`{name}`", ", ".join(sorted({data for data, _ in pairs})), *cells])
    words = f"These strategies were not run on all of these sets. In brackets: `{RULE[1]}` in the same runs."
    return ["", words, "", *table(["strategy", "data sets", *columns], rows)] if rows else []


def short(results: Results, found: Curves, first: str = FIRST) -> list[str]:
    """For a first look, best first: points above `rand` at three budgets, and labels for what `rand` ends with."""
    columns = {name.split()[0]: above_reference(found, first, rounds) for name, rounds in BUDGETS.items()}
    names, pairs = ranked(columns["high"])
    if len(pairs) < 2:
        return ["There are no two seeds yet."]
    means = {n: [_over_sets(gains[n], pairs) for gains in columns.values()] for n in names}
    needed = _needed(results, found, first)
    rows = [
        [f"`{n}`", *(f"{mean:+.1f}" for mean in means[n]), _ratio(median(needed[n].values()))]
        for n in sorted(names, key=lambda n: -sum(means[n]))
    ]
    return table(["strategy", *(f"{c} budget" for c in columns), "labels needed"], rows)


def _how_many(found: Curves, first: str = FIRST) -> list[str]:
    """The number of sets and seeds behind `short`."""
    _, pairs = ranked(above_reference(found, first, BUDGETS["high (11–19)"]))
    seeds = Counter(data for data, _ in pairs).values()
    range_of = f"{min(seeds)} to {max(seeds)}" if len(set(seeds)) > 1 else f"{max(seeds, default=0)}"
    return [f"Means over {len(seeds)} data sets, {range_of} seeds each; the first batch is by `{first}`."]


def by_data(found: Curves, first: str = FIRST) -> list[str]:
    """A table per budget, a column per data set: points above `rand`, paired over seeds."""
    columns = {name: above_reference(found, first, rounds) for name, rounds in BUDGETS.items()}
    names, pairs = ranked(columns["high (11–19)"])
    lines = []
    for budget, gains in columns.items():
        title = f"{budget.split()[0].capitalize()} budgets:"
        lines += ["", title, "", *_beside({name: by_set(gains[name], pairs) for name in names})]
    return lines[1:]


def _beside(values: dict[str, dict[str, list[float]]]) -> list[str]:
    """A row per strategy, a column per setting: mean and interval over seeds, the best of a setting in bold."""
    settings = sorted({setting for of in values.values() for setting in of})
    best = {s: max((n for n in values if values[n].get(s)), key=lambda n: np.mean(values[n][s])) for s in settings}
    seeds = ["seeds", *(str(max(len(of.get(s, ())) for of in values.values())) for s in settings)]
    rows = [
        [f"`{n}`", *((f"**{shown(of[s])}**" if best[s] == n else shown(of[s])) if of.get(s) else "–" for s in settings)]
        for n, of in values.items()
    ]
    return table(["strategy", *settings], [seeds, *rows])


def cold_starts(found: Curves) -> list[str]:
    """Accuracy after the first batch, by the way that it was chosen: points above a uniform first batch, and the seeds."""
    after: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for key, values in found.items():
        after[key.data, key.seed][key.first] = float(values[0])
    rows = []
    for data in sorted({data for data, _ in after}):
        pairs = [of for (d, _), of in after.items() if d == data and "rand" in of]
        cells = []
        for first in FIRSTS[1:]:
            gains = [of[first] - of["rand"] for of in pairs if first in of]
            cells.append(f"{shown(gains)} ({len(gains)})" if gains else "–")
        alone = f"{np.mean([of['rand'] for of in pairs]):.1f} % ({len(pairs)})" if pairs else "–"
        rows.append([data, alone, *cells])
    return table(["data set", *(f"`{first}`" for first in FIRSTS)], rows)


def after_firsts(found: Curves) -> list[str]:
    """What the first batch is still worth when RULE's strategy goes on: points above the same after a uniform first batch."""
    runs = {k: v for k, v in found.items() if k.strategy == RULE[1]}
    rows = []
    for data, (name, (low, high)) in product(sorted({key.data for key in runs}), BUDGETS.items()):
        means = {(k.first, k.seed): float(v[low : high + 1].mean()) for k, v in runs.items() if k.data == data}
        seeds = {first: {seed for f, seed in means if f == first and ("rand", seed) in means} for first in FIRSTS[1:]}
        compared = [first for first, of in seeds.items() if len(of) >= SEEDS]
        shared = sorted(set.intersection(*(seeds[first] for first in compared))) if compared else []
        gains = {
            first: [means[first, seed] - means["rand", seed] for seed in shared if first in compared]
            for first in FIRSTS[1:]
        }
        if any(gains.values()):
            cells = [f"{shown(of)} ({len(of)})" if of else "–" for of in gains.values()]
            rows.append([f"{data}, {name.split()[0]}", *cells])
    return table(["data set, budget", *(f"`{first}`" for first in FIRSTS[1:])], rows) if rows else ["Not run yet."]


def _needed(results: Results, found: Curves, first: str) -> dict[str, dict[str, float]]:
    """Of each ranked strategy and data set: labels for `rand`'s final accuracy, as a share of `rand`'s; inf: not reached."""
    names, pairs = ranked(above_reference(found, first, BUDGETS["high (11–19)"]))
    model = next(run.setting.model for run in results.runs if run.setting.model.endswith(f"+{first}"))
    sizes = {key.data: key.batch_size for key in found}
    keep = [run for run in results.runs if run.setting.model == model and (run.setting.data, run.seed) in pairs]
    keep = [run for run in keep if run.setting.batch_size == sizes[run.setting.data]]
    chosen = np.concatenate([np.arange(run.rows.start, run.rows.stop) for run in keep])
    some = Results.of({name: getattr(results, name)[chosen] for name in stats.REQUIRED})
    needed = {name: dict.fromkeys(sorted({data for data, _ in pairs}), math.inf) for name in names}
    for saving in stats.saved_labels(some, names).savings:
        if saving.setting and not math.isnan(saving.ratio):
            needed[saving.strategy][saving.setting.data] = saving.ratio
    return needed


def _ratio(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "not reached"


def labels_saved(results: Results, first: str = FIRST) -> list[str]:
    """The labels that reach `rand`'s final accuracy, as a share of `rand`'s."""
    found = native(curves(results))
    names, pairs = ranked(above_reference(found, first, BUDGETS["high (11–19)"]))
    if len(pairs) < 2:
        return ["There are no two seeds yet."]
    needed = _needed(results, found, first)
    rows = sorted((median(of.values()), [f"`{name}`", *map(_ratio, of.values())]) for name, of in needed.items())
    header = ["strategy", *needed[names[0]], "median"]
    return table(header, [[*row, _ratio(middle)] for middle, row in rows])


def rare_classes(results: Results, first: str = FIRST) -> list[str]:
    """Points above `rand` on each imbalanced set: accuracy, macro-F1 and the recall of the rare classes."""
    kinds = {"accuracy": "test_accuracy", "macro-F1": "macro_f1", "recall of rare classes": "rare_recall"}
    lines = []
    for data in RARE:
        gains = {
            kind: above_reference(
                {k: v for k, v in native(curves(results, c)).items() if k.data == data}, first, (4, 19)
            )
            for kind, c in kinds.items()
        }
        names, pairs = ranked(gains["accuracy"])
        cells = {n: [[of[n][pair] for pair in pairs] for of in gains.values()] for n in names}
        best = sorted(names, key=lambda name: -np.mean(cells[name][-1]))
        if pairs:
            lines += ["", f"{data}, rounds 4 to 19, {len(pairs)} seeds; the test set is balanced:", ""]
            lines += table(["strategy", *kinds], [[f"`{n}`", *map(shown, cells[n])] for n in best])
    return lines[1:] or ["No imbalanced set has runs yet."]


def batch_sizes(found: Curves) -> list[str]:
    """Points above `rand` over the whole curve, by batch size, at one budget; – where a strategy was not run."""
    sizes = sorted({(key.data, key.batch_size) for key, values in found.items() if len(values) != 20})
    gains: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for data, size in sizes:
        some = {k: v for k, v in found.items() if (k.data, k.batch_size) == (data, size) and k.first == FIRST}
        last = min((len(v) for v in some.values()), default=1) - 1
        above = above_reference(some, FIRST, (1, last)) if last else {}
        names, pairs = ranked(above)
        for name in names if len(pairs) >= SEEDS else ():
            gains[name][f"{data}, B = {size}"] = [above[name][pair] for pair in pairs]
    return _beside({n: gains[n] for n in STRATEGIES if n in gains}) if gains else ["Not run yet."]


def published(found: Curves, first: str = FIRST) -> list[str]:
    """Published points above BADGE beside ours, both on frozen encoders."""
    columns = [above_reference(found, first, rounds) for rounds in BUDGETS.values()]
    rows = []
    for name, (title, theirs) in PUBLISHED.items():
        pairs = sorted(set.intersection(*(set(of[n]) for of in columns for n in ("badge", name)))) if name else []
        sets = {data for data, _ in pairs}
        ours = [f"{_over_sets(of[name], pairs) - _over_sets(of['badge'], pairs):+.1f}" for of in columns if pairs]
        cells = [f"{value:+.1f} · {mine}" for value, mine in zip(theirs, ours or ["–"] * 3, strict=True)]
        rows.append([title, f"`{name}` ({len(sets)} sets, {len(pairs)} pairs)" if name else "–", *cells])
    return table(["published", "ours", *(f"{b.split()[0]}: published · ours" for b in BUDGETS)], rows)


class Verdict(NamedTuple):
    """How far the rule is from the best pair of first batch and strategy on the sets that were not looked at, by budget.

    `below_best` compares means over these sets; `by_set` takes the best pair of each set, which is another one each time.
    `searched` is the pair that is best on the sets that were looked at, and `off` is its largest distance on the others.
    """

    tested_on: list[str]
    below_best: dict[str, float]
    best: dict[str, tuple[str, str]]
    by_set: dict[str, dict[str, float]]
    holds: bool
    rules: list[tuple[str, str]]
    searched: tuple[str, str]
    off: float


def verdict(found: Curves) -> Verdict | None:
    """RULE against all pairs of first batch and strategy; None while there are no runs of it.

    Pairs are compared by mean accuracy over data sets, over the seeds that all of them have.
    """
    looked_at = {key: values for key, values in found.items() if key.data in LOOKED_AT}
    tested = {key: values for key, values in found.items() if key.data not in (*LOOKED_AT, *RARE)}
    rules = sorted(_repeated(looked_at) & _repeated(tested))
    if RULE not in rules:
        return None
    sets = sorted({key.data for key in tested})
    first, second = _means(looked_at, rules), _means(tested, rules)
    over_sets = {rule: {name: fmean(second[rule, name].values()) for name in BUDGETS} for rule in rules}
    searched = max(rules, key=lambda rule: fmean(fmean(first[rule, name].values()) for name in BUDGETS))
    best = {name: max(rules, key=lambda rule: over_sets[rule][name]) for name in BUDGETS}
    below, off = (
        {name: over_sets[best[name]][name] - over_sets[r][name] for name in BUDGETS} for r in (RULE, searched)
    )
    by_set = {
        data: {name: max(second[r, name][data] for r in rules) - second[RULE, name][data] for name in BUDGETS}
        for data in sets
    }
    return Verdict(sets, below, best, by_set, max(below.values()) <= TOLERANCE, rules, searched, max(off.values()))


def _repeated(found: Curves) -> set[tuple[str, str]]:
    """The pairs of first batch and strategy that have two seeds or more of every data set."""
    count: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for key in found:
        count[key.first, key.strategy][key.data] += 1
    sets = {key.data for key in found}
    return {rule for rule, of in count.items() if set(of) == sets and min(of.values()) > 1}


def _means(found: Curves, rules: Sequence[tuple[str, str]]) -> dict[tuple[tuple[str, str], str], dict[str, float]]:
    """Mean accuracy of each rule at each budget on each data set, from the seeds that all rules share."""
    runs: dict[tuple[str, str], dict[tuple[str, int], NDArray[np.float64]]] = {rule: {} for rule in rules}
    for key, values in found.items():
        if (key.first, key.strategy) in rules:
            runs[key.first, key.strategy][key.data, key.seed] = values
    pairs = sorted(set.intersection(*(set(of) for of in runs.values())))
    means = {}
    for rule, of in runs.items():
        by = {data: np.mean([of[pair] for pair in pairs if pair[0] == data], axis=0) for data, _ in pairs}
        for name, (a, b) in BUDGETS.items():
            means[rule, name] = {data: float(curve[a : b + 1].mean()) for data, curve in by.items()}
    return means


def rule_lines(found: Curves) -> list[str]:
    """The rule, where it was chosen, and whether it is within a point of the best elsewhere."""
    said = verdict(found)
    if said is None:
        return ["Not all sets have runs yet."]
    others = [f"`{first}`" for first in FIRSTS if (first, RULE[1]) in said.rules and first != RULE[0]]
    lines = [
        f"The rule: `{RULE[0]}` picks the first batch, then `{RULE[1]}`. It is tested on {', '.join(said.tested_on)}.",
        f"{' and '.join(LOOKED_AT)} are left out, because we looked at them before. The two sets with rare classes",
        "are left out too.",
        f"{len(said.rules)} pairs of first batch and strategy have two seeds on every set; `{RULE[1]}` after another",
        f"first batch is {'among them after ' + ', '.join(others) if others else 'not among them'}.",
        "In the mean over these sets the rule is itself the best pair at each budget."
        if set(said.best.values()) == {RULE}
        else f"In the mean over these sets it is at most {max(said.below_best.values()):.1f} points below the best pair, "
        f"so it is {'' if said.holds else '**not** '}within one point at each budget.",
    ]
    if said.searched != RULE:
        lines += [
            f"A search among the pairs on {' and '.join(LOOKED_AT)} would have chosen `{said.searched[0]}`,",
            f"then `{said.searched[1]}`, which is up to {said.off:.1f} points below the best on the others: two sets with",
            "few seeds are too little to tell so many pairs apart.",
        ]
    lines += _after_every_first(found, said)
    rows = [
        [name, f"first `{said.best[name][0]}`, then `{said.best[name][1]}`", f"{below:.1f}"]
        for name, below in said.below_best.items()
    ]
    single = [[data, *(f"{of[name]:.1f}" for name in BUDGETS)] for data, of in said.by_set.items()]
    return [
        *lines,
        "",
        *table(["budget", "best of all pairs, in the mean", "the rule is below it by (points)"], rows),
        "",
        "On a single data set another pair can be better by chance. A cell has the points by which the rule is below the",
        f"best of the {len(said.rules)} pairs on that set.",
        "",
        *table(["data set", *BUDGETS], single),
    ]


def _after_every_first(found: Curves, said: Verdict) -> list[str]:
    """The verdict on the sets where RULE's strategy followed every first batch, if these are not all."""
    seeds = Counter((key.data, key.first) for key in found if key.strategy == RULE[1])
    sets = {data for data, _ in seeds if all(seeds[data, first] >= SEEDS for first in FIRSTS)}
    fewer = verdict({key: values for key, values in found.items() if key.data in sets})
    if fewer is None or fewer.tested_on == said.tested_on:
        return []
    name = max(fewer.below_best, key=lambda name: fewer.below_best[name])
    below = ", ".join(f"{below:.1f}" for below in fewer.below_best.values())
    by_itself = f", which is `{RULE[1]}` by itself" if fewer.best[name] == ("maxherding", RULE[1]) else ""
    return [
        f"On {', '.join(fewer.tested_on)} `{RULE[1]}` was run after every first batch. Of the {len(fewer.rules)} pairs there",
        f"the rule is {below} points below the best at low, middle and high budgets: "
        f"{'' if fewer.holds else '**not** '}within one point.",
        f"The best at {name.split()[0]} budgets is first `{fewer.best[name][0]}`, then `{fewer.best[name][1]}`{by_itself}.",
    ]


def _seconds(value: float) -> str:
    """Two digits, and never an exponent.

    >>> _seconds(132.4), _seconds(0.00021)
    ('132', '0.00021')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def seconds(results: Results) -> list[str]:
    """The median seconds of a selection by data set, batches of C: beside other work, so only orders of magnitude."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key, values in native(curves(results, "select_seconds")).items():
        if key.strategy not in KEPT_PRODUCTS:
            taken[key.strategy, key.data] += (values[np.isfinite(values)] / 100).tolist()
    sets = sorted({data for _, data in taken})
    names = [name for name in STRATEGIES if any((name, data) in taken for data in sets)]
    rows = [[f"`{n}`", *(_seconds(median(taken[n, d])) if taken.get((n, d)) else "–" for d in sets)] for n in names]
    return table(["strategy", *sets], rows)


def tables(results: Results) -> dict[str, list[str]]:
    """Every table by name: a page has `<!-- frozen: NAME -->` where it stands."""
    found = native(curves(results))
    balanced = {key: values for key, values in found.items() if key.data not in RARE}
    return {
        "readme": [*_how_many(balanced), "", *short(results, balanced)],
        "budgets": by_budget(balanced),
        "encoders": by_budget({key: values for key, values in balanced.items() if key.data in ENCODED}),
        "published": published({key: values for key, values in balanced.items() if key.data in ENCODED}),
        "data": by_data(balanced),
        "cold": cold_starts(balanced),
        "firsts": after_firsts(balanced),
        "saved": labels_saved(results),
        "rare": rare_classes(results),
        "batches": batch_sizes(curves(results)),
        "rule": rule_lines(found),
        "seconds": seconds(results),
    }


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
