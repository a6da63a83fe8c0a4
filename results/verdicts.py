"""Verdicts on a claim of the paper, by rules that are stated and the same for all.

Within a setting, the paper's paired t-test over the seeds (level 0.05) says who wins. Over settings:

- a claim about *who wins* holds where a one-sided sign test at level 0.05 over the settings in which one of the two wins
  is for it, and does not hold where it is against it (five settings of five are the least that decide);
- a claim about *the lowest column* holds where the column is lowest in at least 95 % of 2,000 bootstrap draws of the
  settings, and does not hold where it is in at most 5 %; under five settings decide nothing;
- a claim about *a difference* holds, setting by setting, where the 95 % interval of the mean difference over the seeds
  lies on its side of 0 (for "the same": within one point of accuracy), and does not hold where one lies on the other; over
  five settings or more the sign test decides, as for who wins;
- a claim about *seconds* holds where it does with every seed in every setting (much longer: more than ten times), and does
  not hold where it fails with every seed of one.

Everything else cannot be told from these runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.rng import derive
from badge.stats import critical_value

__all__ = ["FEWEST", "Claim", "Verdict", "all_of", "by_draws", "by_signs", "interval", "over_settings", "verdict"]

Verdict = Literal["holds", "does not hold", "cannot be told"]
LEVEL = 0.05
DRAWS = 2000
#: Settings below which a comparison over settings decides nothing: a sign test needs five of five.
FEWEST = 5


class Claim(NamedTuple):
    """What the paper says, where, what these results say, and whether they agree."""

    said: str
    where: str
    measured: str
    verdict: Verdict


def by_signs(ours: int, against: int) -> Verdict:
    """One-sided sign tests in both directions over the settings that decide.

    >>> by_signs(5, 0), by_signs(4, 0), by_signs(1, 9)
    ('holds', 'cannot be told', 'does not hold')
    """
    n = ours + against

    def tail(wins: int) -> float:
        return float(sum(math.comb(n, i) for i in range(wins, n + 1)) / 2**n)

    return "holds" if tail(ours) < LEVEL else "does not hold" if tail(against) < LEVEL else "cannot be told"


def by_draws(lowest: Callable[[NDArray[np.int64]], bool], settings: int, name: str) -> tuple[float, Verdict]:
    """How often something is lowest over draws of the settings with replacement."""
    if settings < FEWEST:
        return math.nan, "cannot be told"
    picks = derive(0, "claims", name).integers(settings, size=(DRAWS, settings))
    share = sum(lowest(row) for row in picks) / DRAWS
    return share, "holds" if share >= 1 - LEVEL else "does not hold" if share <= LEVEL else "cannot be told"


def interval(differences: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95 % interval of paired differences, one per seed; infinite for one."""
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


def over_settings(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a difference from those on single settings: all of few, the sign test over many.

    >>> over_settings(["holds"] * 3 + ["does not hold"]), over_settings(["holds"] * 10 + ["does not hold"])
    ('does not hold', 'holds')
    """
    if len(verdicts) < FEWEST:
        return all_of(verdicts)
    return by_signs(verdicts.count("holds"), verdicts.count("does not hold"))


def verdict(ours: bool, against: bool) -> Verdict:
    return "holds" if ours else "does not hold" if against else "cannot be told"
