"""How far labellings agree: people with people, and each model with the one before, which says when to stop.

Both are measured by Cohen's κ. More labels are worth it while predictions still change.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from badge.core.rng import derive
from badge.journal.events import Id, Stop
from badge.learner.classes import Code
from badge.learner.history import History
from badge.learner.ids import Ids


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """κ = (p_o − p_e) / (1 − p_e): agreement of two labellings beyond what chance gives (Cohen 1960); NaN for 0 / 0.

    >>> cohen_kappa([0, 0, 1, 1], [0, 0, 1, 0])
    0.5
    """
    n = len(first)
    if not n:
        return math.nan
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    ones, others = Counter(first), Counter(second)
    expected = sum(count * others[label] for label, count in ones.items()) / n**2
    return (observed - expected) / (1 - expected) if expected < 1 else math.nan


def said_of_both(votes: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[tuple[Any, Any]]]:
    """What each pair of people said about the examples that both have labelled, sorted by name.

    >>> said_of_both([{"ben": 0, "ann": 1}])
    {('ann', 'ben'): [(1, 0)]}
    """
    both: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for given in votes:
        for one, other in combinations(sorted(given), 2):
            both.setdefault((one, other), []).append((given[one], given[other]))
    return dict(sorted(both.items()))


@dataclass(frozen=True)
class Agreement:
    """What `learner.agreement()` gives."""

    items: dict[Id, float]  #: example that two or more have labelled -> share of pairs of people who agree
    kappa: dict[tuple[str, str], float]  #: Cohen's κ of each pair of people, over what both have labelled
    counts: dict[tuple[str, str], int]  #: how many examples that are
    ties: list[Id]  #: examples with even votes, in need of one more

    def __str__(self) -> str:
        lines = [f"{len(self.items)} examples with several labels, {len(self.ties)} of them tied"]
        for pair, kappa in self.kappa.items():
            value = "undefined: both gave one label only" if math.isnan(kappa) else f"{kappa:.2f}"
            lines.append(f"{pair[0]} and {pair[1]}: κ = {value} over {self.counts[pair]} examples")
        return "\n".join(lines)


def agreement(votes: Mapping[Id, Mapping[str, Hashable]], pending: Mapping[Id, int]) -> Agreement:
    """Agreement per example and Cohen's κ per pair of people.

    >>> a = agreement({1: {"ann": 0, "ben": 0}, 2: {"ann": 1, "ben": 0}, 3: {"ann": 1, "ben": 1}}, {2: 2})
    >>> a.items, round(a.kappa["ann", "ben"], 2), a.ties
    ({1: 1.0, 2: 0.0, 3: 1.0}, 0.4, [2])
    """
    several = {id: given for id, given in votes.items() if len(given) > 1}
    pairs = {id: list(combinations(given.values(), 2)) for id, given in several.items()}
    items = {id: sum(a == b for a, b in said) / len(said) for id, said in pairs.items()}
    both = said_of_both(votes.values())
    kappa = {pair: cohen_kappa(*zip(*said, strict=True)) for pair, said in both.items()}
    counts = {pair: len(said) for pair, said in both.items()}
    ties = [id for id, given in several.items() if id in pending and len(given) >= pending[id]]
    return Agreement(items, kappa, counts, ties)


#: Bloodgood & Vijay-Shanker 2009: 2,000 examples; stop when κ, averaged over 3 pairs of models, is at least 0.99
STOP_SET, PAIRS, THRESHOLD = 2000, 3, 0.99
#: the prequential accuracy is over this many of the last predictions: older ones are of older models
WINDOW = 200
#: quantile of the standard normal law, for an interval of 95 %
Z = 1.959964


@dataclass(frozen=True)
class Advice:
    """What `learner.advice()` gives. `print` it for the sentences."""

    labels: int
    stop: bool  #: whether the predictions have stabilised
    changed: float | None  #: share of the stop set that the last two models predict differently
    kappa: float | None  #: Cohen's κ of two models in a row, averaged over the last three pairs
    pairs: int  #: number of these pairs
    accuracy: float | None  #: prequential: share of right predictions among the last labels that models had picked
    interval: tuple[float, float] | None  #: Wilson's, 95 %
    predictions: int  #: number of these labels
    text: str

    def __str__(self) -> str:
        return self.text


def stop_set(ids: Ids, seed: int) -> list[Id]:
    """The examples on which models are compared: drawn once and then kept."""
    picks = derive(seed, "stop").choice(ids.order, size=min(STOP_SET, ids.length), replace=False)
    return ids.at(np.sort(picks))


def compare(before: dict[Id, Code], now: dict[Id, Code], revision: int, labels: int) -> Stop:
    """For the journal: what of the stop set's predictions is new, and how far two models agree."""
    new = {id: code for id, code in now.items() if before.get(id) != code}
    codes = [list(code) if isinstance(code, tuple) else code for code in new.values()]
    kappa, changed = None, None
    if before:  # the same predictions agree, also where all are of one class
        kappa, changed = cohen_kappa([before[id] for id in now], list(now.values())) if new else 1.0, len(new)
        kappa = None if math.isnan(kappa) else kappa
    same = {"revision": revision, "labels": labels, "examples": len(now)}
    return Stop(ids=list(new), codes=codes, changed=changed, kappa=kappa, **same)


def wilson(right: int, n: int) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %.

    >>> tuple(round(bound, 3) for bound in wilson(90, 100))
    (0.826, 0.945)
    """
    share, z2 = right / n, Z**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def advice(stability: Sequence[Stop], given: History, labels: int, one_class: str | None = None) -> Advice:
    """Stabilising predictions (Bloodgood & Vijay-Shanker 2009), prequential accuracy, and what they say.

    `one_class`: the sentence that all labels are of one class, where they are.
    """
    last = list(stability[-PAIRS:])
    kappas = [pair.kappa for pair in last if pair.kappa is not None]
    kappa = sum(kappas) / len(kappas) if kappas else None
    changed = last[-1].changed / last[-1].examples if last and last[-1].changed is not None else None
    stop = len(kappas) == PAIRS and kappa is not None and kappa >= THRESHOLD
    right = [row.correct for row in given if row.correct is not None][-WINDOW:]
    accuracy = sum(right) / len(right) if right else None
    interval = wilson(sum(right), len(right)) if right else None
    text = f"{_stability(changed, kappa, len(kappas), stop, last)} {_accuracy(accuracy, interval, len(right))}"
    if one_class:
        text = (
            f"{one_class[0].upper()}{one_class[1:]}: a model needs two classes, so nothing can be learned yet. If the "
            "others are rare, search the pool for a few of their examples by hand and label those."
        )
    return Advice(labels, stop, changed, kappa, len(kappas), accuracy, interval, len(right), text)


def _stability(changed: float | None, kappa: float | None, pairs: int, stop: bool, last: list[Stop]) -> str:
    if changed is None or kappa is None:
        return "Two models in a row are needed to see whether predictions still change: label one more batch."
    said = (
        f"The last two models disagree on {changed:.1%} of {last[-1].examples:,} examples; "
        f"κ over {pairs} pair{'s' * (pairs > 1)} of models is {kappa:.3f}."
    )
    if stop:
        return f"{said} The predictions have stabilised (κ ≥ {THRESHOLD}): more labels of this kind change little."
    if pairs < PAIRS:
        return f"{said} {PAIRS} pairs are needed before it can be said that they have stabilised."
    return f"{said} They still change (κ < {THRESHOLD}): go on."


def _accuracy(accuracy: float | None, interval: tuple[float, float] | None, n: int) -> str:
    if accuracy is None or interval is None:
        return "No example that a model picked has a label yet, so nothing is known about its accuracy."
    return (
        f"Of the last {n} examples that models picked, they were right about {accuracy:.1%} before they saw the label "
        f"(95 % interval {interval[0]:.1%} to {interval[1]:.1%}); picks are harder than the pool, so the accuracy on the "
        "pool is usually higher."
    )
