"""Several people, one example: how far their labels agree."""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from badge.journal.events import Id


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


@dataclass(frozen=True)
class Agreement:
    """What `learner.agreement()` gives."""

    items: dict[Id, float]  #: of each example that two or more have labelled: the share of pairs of people who agree
    kappa: dict[tuple[str, str], float]  #: Cohen's κ of each pair of people, over what both have labelled
    counts: dict[tuple[str, str], int]  #: how many examples that are
    ties: list[Id]  #: examples whose votes are even, in need of one more

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
    items: dict[Id, float] = {}
    both: dict[tuple[str, str], tuple[list[Hashable], list[Hashable]]] = {}
    for id, given in several.items():
        pairs = list(combinations(sorted(given), 2))
        items[id] = sum(given[a] == given[b] for a, b in pairs) / len(pairs)
        for a, b in pairs:
            ones, others = both.setdefault((a, b), ([], []))
            ones.append(given[a])
            others.append(given[b])
    kappa = {pair: cohen_kappa(*both[pair]) for pair in sorted(both)}
    counts = {pair: len(both[pair][0]) for pair in kappa}
    ties = [id for id, given in several.items() if id in pending and len(given) >= pending[id]]
    return Agreement(items, kappa, counts, ties)
