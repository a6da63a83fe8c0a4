"""Verdicts on a claim of the paper, by rules that are stated and the same for all.

Within a setting, the paper's paired t-test over the seeds (level 0.05) says which strategy wins. Settings share data and
seeds. So a test over settings counts or draws *data sets*, each with all its settings:

- A claim about *which strategy wins* is decided by a one-sided sign test at level 0.05 over the data sets. It holds if the
  test is for it, and does not hold if the test is against it. At least five data sets are needed to decide. A strategy
  wins a data set if it wins more of its settings.
- A claim about *the lowest of several* holds if it is true in at least 95 % of 2,000 bootstrap draws of the data sets. It
  does not hold if it is true in at most 5 %. At least five data sets are needed to decide. A tie is not the lowest. Only
  settings and seeds that all seven strategies have are compared.
- A claim about *a difference* is decided setting by setting, by the 95 % t interval over the seeds. It holds if all
  intervals lie on its side (for "the same": within one point of accuracy). It does not hold if one interval lies on the
  other side. With five data sets or more the sign test decides. Batches are compared round by round. A batch at −∞ is less
  diverse than any other; two such batches are a tie.
- A claim about *some rounds* holds if there are such rounds with more than one seed. It does not hold if there are two
  seeds or more and no such round.
- A claim about *seconds* holds if it is true with every seed in every setting ("much higher": more than ten times). It
  does not hold if it is false with every seed of one setting.

In all other cases these runs cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.rng import derive
from badge.stats import Setting, critical_value

__all__ = ["FEWEST", "Claim", "Verdict", "all_of", "by_draws", "by_signs", "interval", "over_data", "verdict"]

Verdict = Literal["holds", "does not hold", "cannot be told"]
LEVEL = 0.05
DRAWS = 2000
#: Data sets below which a comparison over data sets decides nothing: a sign test needs five of five.
FEWEST = 5


class Claim(NamedTuple):
    """What the paper says in its words, where, how that is tested, what these results say, and whether they agree."""

    quote: str
    where: str
    test: str
    measured: str
    verdict: Verdict


def by_signs(ours: int, against: int) -> Verdict:
    """One-sided sign tests in both directions over the data sets that decide.

    >>> by_signs(5, 0), by_signs(4, 0), by_signs(1, 9)
    ('holds', 'cannot be told', 'does not hold')
    """
    n = ours + against

    def tail(wins: int) -> float:
        return float(sum(math.comb(n, i) for i in range(wins, n + 1)) / 2**n)

    return "holds" if tail(ours) < LEVEL else "does not hold" if tail(against) < LEVEL else "cannot be told"


def over_data(outcomes: Mapping[Setting, float]) -> tuple[int, int, int]:
    """(data sets for, data sets against, data sets in all): the sign of the sum of a data set's outcomes.

    >>> over_data({Setting("a", "mlp", 100): 1, Setting("a", "mlp", 1000): 1, Setting("b", "mlp", 100): -1})
    (1, 1, 2)
    """
    sums: dict[str, float] = {}
    for setting, outcome in outcomes.items():
        sums[setting.data] = sums.get(setting.data, 0) + outcome
    signs = np.sign(list(sums.values()))
    return int((signs > 0).sum()), int((signs < 0).sum()), len(sums)


def by_draws(right: Callable[[NDArray[np.int64]], bool], data: Sequence[str], name: str) -> tuple[float, Verdict]:
    """How often `right(rows)` is true over draws of data sets with replacement; `data`: the data set of each row."""
    names = sorted(set(data))
    if len(names) < FEWEST:
        return math.nan, "cannot be told"
    rows = {name: np.flatnonzero(np.array(data) == name) for name in names}
    picks = derive(0, "claims", name).integers(len(names), size=(DRAWS, len(names)))
    share = sum(right(np.concatenate([rows[names[i]] for i in pick])) for pick in picks.tolist()) / DRAWS
    return share, "holds" if share >= 1 - LEVEL else "does not hold" if share <= LEVEL else "cannot be told"


def interval(differences: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95 % t interval of paired differences, one per seed; infinite for one."""
    mean = float(differences.mean())
    if len(differences) < 2:
        return mean, -math.inf, math.inf
    half = critical_value(len(differences)) * float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return mean, mean - half, mean + half


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on "everywhere": one that does not hold is enough against it."""
    found = list(verdicts)
    if "does not hold" in found:
        return "does not hold"
    return "holds" if found and all(verdict == "holds" for verdict in found) else "cannot be told"


def verdict(ours: bool, against: bool) -> Verdict:
    return "holds" if ours else "does not hold" if against else "cannot be told"
