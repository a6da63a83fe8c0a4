"""The paper's claims about samplers on gradient embeddings (section 3, appendices F and G)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from badge.stats import Results, Setting, learning_curve
from results.verdicts import Claim, Verdict, all_of, interval, over_settings, verdict

__all__ = ["cost", "diversity", "same_accuracy"]

#: Accuracies within this of each other count as the same.
SAME = 0.01
#: A batch is large from this number of examples on; much longer means more than this many times the seconds.
LARGE, MUCH_LONGER = 1000, 10
#: Settings that are listed one by one; more are counted.
MOST_LISTED = 4


def by_seed(results: Results, setting: Setting, strategy: str, column: str) -> dict[int, float]:
    """The mean of a column over the rounds of each seed; rounds without a (finite) number are left out."""
    curve = learning_curve(results, setting, strategy, column)
    found = {}
    for seed, values in zip(curve.seeds, curve.values, strict=True):
        finite = values[np.isfinite(values)]
        if len(finite):
            found[seed] = float(finite.mean())
    return found


def compared(results: Results, one: str, other: str, column: str) -> dict[Setting, NDArray[np.float64]]:
    """one − other by seed, in every setting in which both have a seed in common."""
    found = {}
    for setting in results.settings:
        a, b = by_seed(results, setting, one, column), by_seed(results, setting, other, column)
        shared = sorted(a.keys() & b.keys())
        if shared:
            found[setting] = np.array([a[seed] - b[seed] for seed in shared])
    return found


def same_accuracy(results: Results) -> Claim:
    """k-means++ and k-DPP lead to the same accuracies."""
    parts, verdicts = [], []
    for setting, differences in compared(results, "badge", "kdpp", "test_accuracy").items():
        mean, low, high = interval(differences)
        inside, outside = low >= -SAME and high <= SAME, low > SAME or high < -SAME
        verdicts.append(verdict(inside, outside))
        parts.append(f"{setting}: {100 * mean:+.2f} points {_interval(low, high, 100)}")
    return Claim(
        "k-means++ and a k-DPP on gradient embeddings learn equally well",
        "figures 1, 25 to 31",
        _listed("badge − kdpp, mean over the rounds", parts),
        all_of(verdicts),
    )


def cost(results: Results) -> Claim:
    """The k-DPP takes longer than k-means++, and much longer for large batches: with every seed, in every setting."""
    parts, verdicts = [], []
    for setting in results.settings:
        ours, theirs = (by_seed(results, setting, name, "select_seconds") for name in ("badge", "kdpp"))
        ratios = np.array([theirs[seed] / ours[seed] for seed in ours.keys() & theirs.keys()])
        if not len(ratios):
            continue
        parts.append(f"{setting}: {np.median(ratios):.1f} times as long")
        several, least = len(ratios) > 1, MUCH_LONGER if setting.batch_size >= LARGE else 1
        verdicts.append(verdict(several and bool((ratios > least).all()), several and bool((ratios < least).all())))
    return Claim(
        "the k-DPP takes longer to select than k-means++, and much longer for large batches",
        "figures 1, 25 to 31",
        _listed("the k-DPP's selection against k-means++'s, median over the seeds", parts),
        all_of(verdicts),
    )


def diversity(results: Results) -> list[Claim]:
    """Log-determinants and norms of the batches; the last two are not the paper's, but show its pattern or do not."""
    rows = []
    for who, other, where in (
        ("furthest-first on gradients", "kcenter-grad", "figures 2 and 24"),
        ("the k-DPP", "kdpp", "figures 2 and 24"),
        ("coreset, furthest-first on penultimate embeddings,", "coreset", "not in the paper"),
    ):
        for column, noun, kind in (
            ("log_det", "log-determinant", "less diverse batches"),
            ("mean_norm", "norm", "batches of smaller gradients"),
        ):
            parts: list[str] = []
            verdicts: list[Verdict] = []
            for setting, differences in compared(results, "badge", other, column).items():
                mean, low, high = interval(differences)
                verdicts.append(verdict(low > 0, high < 0))
                parts.append(f"{setting}: {mean:+.1f} {_interval(low, high)}{_gaps(results, setting, other, column)}")
            what = f"badge − {other}, mean {noun} over the rounds"
            measured = _listed(what, parts) if len(parts) <= MOST_LISTED else f"{what}: {_counted(verdicts)}"
            rows.append(Claim(f"{who} picks {kind} than k-means++", where, measured, over_settings(verdicts)))
    return rows


def _gaps(results: Results, setting: Setting, strategy: str, column: str) -> str:
    """How many rounds have no finite number, and are left out of the mean: batches that were linearly dependent."""
    values = learning_curve(results, setting, strategy, column).values
    count = int(np.isneginf(values).sum())
    return f", without {count} of {int((~np.isnan(values)).sum())} rounds of {strategy} at −∞" if count else ""


def _interval(low: float, high: float, scale: float = 1.0) -> str:
    return f"({scale * low:+.2f} to {scale * high:+.2f})" if math.isfinite(low) else "(one seed)"


def _listed(what: str, parts: list[str]) -> str:
    return f"{what}: {'; '.join(parts)}" if parts else "no setting has both"


def _counted(verdicts: list[Verdict]) -> str:
    above, below = verdicts.count("holds"), verdicts.count("does not hold")
    return f"above 0 in {above}, below 0 in {below}, undecided in {len(verdicts) - above - below} of {len(verdicts)} settings"
