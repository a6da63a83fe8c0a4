"""The paper's claims about samplers on gradient embeddings (section 3, appendices F and G)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from badge.stats import Results, Setting, learning_curve
from results.verdicts import FEWEST, Claim, Verdict, all_of, by_signs, interval, over_data, verdict

__all__ = ["by_seed", "cost", "dependent_batches", "diversity", "largest_norms", "same_accuracy"]

#: Accuracies within this of each other count as the same.
SAME = 0.01
#: A batch is large from this number of examples on; much higher means more than this many times the seconds.
LARGE, MUCH_LONGER = 1000, 10
#: Settings that are listed one by one; more are counted.
MOST_LISTED = 4
#: The two settings of figure 24, and the strategies that it compares.
FIGURE_24 = (Setting("letter", "mlp", 100), Setting("svhn", "resnet18", 1000))


def by_seed(results: Results, setting: Setting, strategy: str, column: str) -> dict[int, float]:
    """The mean of a column over the rounds of each seed; rounds without a finite number are left out."""
    curve = learning_curve(results, setting, strategy, column)
    finite = [(seed, values[np.isfinite(values)]) for seed, values in zip(curve.seeds, curve.values, strict=True)]
    return {seed: float(values.mean()) for seed, values in finite if len(values)}


def compared(results: Results, one: str, other: str, column: str) -> dict[Setting, NDArray[np.float64]]:
    """one − other by seed, in every setting in which both have a seed in common."""
    found = {}
    for setting in results.settings:
        a, b = by_seed(results, setting, one, column), by_seed(results, setting, other, column)
        if shared := sorted(a.keys() & b.keys()):
            found[setting] = np.array([a[seed] - b[seed] for seed in shared])
    return found


def larger(results: Results, setting: Setting, one: str, other: str, column: str) -> NDArray[np.float64]:
    """For each shared seed the share of rounds in which `one` is larger; −∞ is smaller than all, two of them are a tie."""
    curves = [learning_curve(results, setting, name, column) for name in (one, other)]
    labels = np.intersect1d(curves[0].labels, curves[1].labels)
    shares = []
    for seed in sorted(set(curves[0].seeds) & set(curves[1].seeds)):
        a, b = (c.values[c.seeds.index(seed), np.searchsorted(c.labels, labels)] for c in curves)
        there = ~np.isnan(a) & ~np.isnan(b)
        if there.any():
            shares.append(float(np.mean((a > b)[there] + 0.5 * (a == b)[there])))
    return np.array(shares)


def same_accuracy(results: Results) -> Claim:
    """k-means++ and k-DPP lead to the same accuracies."""
    parts, verdicts = [], []
    for setting, differences in compared(results, "badge", "kdpp", "test_accuracy").items():
        mean, low, high = interval(differences)
        inside, outside = low >= -SAME and high <= SAME, low > SAME or high < -SAME
        verdicts.append(verdict(inside, outside))
        parts.append(f"{setting}: {100 * mean:+.2f} points {_interval(low, high, 100)}, {_seeds(differences)}")
    return Claim(
        "switching between the two samplers does not affect the active learner's statistical performance",
        "section 3, figures 1 and 25 to 31",
        "badge − kdpp, mean accuracy over the rounds, is within one point",
        _listed(parts),
        all_of(verdicts),
    )


def cost(results: Results) -> Claim:
    """The k-DPP takes much longer than k-means++ for large batches: with every seed, in every setting."""
    parts, verdicts = [], []
    for setting in results.settings:
        ours, theirs = (by_seed(results, setting, name, "select_seconds") for name in ("badge", "kdpp"))
        ratios = np.array([theirs[seed] / ours[seed] for seed in ours.keys() & theirs.keys()])
        if not len(ratios):
            continue
        parts.append(f"{setting}: {np.median(ratios):.1f} times as long, {_seeds(ratios)}")
        if setting.batch_size >= LARGE:
            right, wrong = bool((ratios > MUCH_LONGER).all()), bool((ratios < MUCH_LONGER).all())
            verdicts.append(verdict(len(ratios) > 1 and right, len(ratios) > 1 and wrong))
    return Claim(
        "when large batch sizes are required (e.g. k = 1000), the running times of k-DPP sampling are generally "
        "much higher than those of k-means++",
        "appendix G",
        f"from B = {LARGE:,} on, kdpp takes more than {MUCH_LONGER} times as long as badge with every seed; our numbers are "
        "medians over the seeds",
        _listed(parts),
        all_of(verdicts),
    )


def diversity(results: Results) -> list[Claim]:
    """Log-determinants and norms of the batches of k-means++ and of the others."""
    first = 'furthest-first "finds points that are not as diverse or high-magnitude as other samplers"'
    second = 'k-means++ "tends to actually select samples that are both more diverse and higher-magnitude than a k-DPP"'
    rows = []
    for said, other, where in (
        (first, "kcenter-grad", "figures 2 and 24, on gradients, as the caption says"),
        (first, "coreset", "figures 2 and 24, read as on penultimate embeddings"),
        (second, "kdpp", "figures 2 and 24"),
    ):
        for column, noun in (("log_det", "log-determinant"), ("mean_norm", "mean norm")):
            outcomes, parts = _outcomes(results, other, column)
            few = len({setting.data for setting in outcomes}) < FEWEST
            found = all_of(outcomes.values()) if few else _over_data(outcomes)
            measured = _listed(parts) if len(parts) <= MOST_LISTED else _counted(outcomes)
            test = f"share of rounds in which badge's batch has a larger {noun} than {other}'s"
            rows.append(Claim(said, where, test, measured, found))
    return rows


def _outcomes(results: Results, other: str, column: str) -> tuple[dict[Setting, Verdict], list[str]]:
    outcomes: dict[Setting, Verdict] = {}
    parts = []
    for setting in results.settings:
        shares = larger(results, setting, "badge", other, column)
        if not len(shares):
            continue
        mean, low, high = interval(shares)
        outcomes[setting] = verdict(low > 0.5, high < 0.5)
        difference = compared(results, "badge", other, column).get(setting, np.zeros(0))
        size = f", mean difference {difference.mean():+.1f}" if len(difference) else ""
        gaps = "".join(_gaps(results, setting, name, column) for name in ("badge", other))
        parts.append(f"{setting}: {_percent(mean)} ({_percent(low)} to {_percent(high)}), {_seeds(shares)}{size}{gaps}")
    return outcomes, parts


def dependent_batches(results: Results) -> list[Claim]:
    """conf's batches are linearly dependent in some rounds of both settings of figure 24."""
    quotes = (
        "in some iterations of OpenML #6, the batch diversity [of Conf] is relatively low, as evidenced by the "
        "corresponding log Gram determinant being −∞",
        "the first few interations of SVHN, some batches have a log Gram determinant of −∞",
    )
    rows = []
    for setting, quote in zip(FIGURE_24, quotes, strict=True):
        values = learning_curve(results, setting, "conf", "log_det").values
        rounds, gaps = int((~np.isnan(values)).sum()), int(np.isneginf(values).sum())
        seeds = int(np.isneginf(values).any(axis=1).sum()) if rounds else 0
        measured = f"{setting}: {gaps} of {rounds} rounds, in {seeds} of {len(values)} seeds"
        rows.append(
            Claim(
                quote,
                "appendix F, figure 24",
                "rounds of conf at −∞ in more than one seed",
                measured if rounds else "no such runs",
                verdict(seeds > 1, rounds > 0 and gaps == 0 and len(values) > 1),
            )
        )
    return rows


def largest_norms(results: Results) -> Claim:
    """conf's batches have the largest mean norm of the four samplers of figure 24."""
    parts, verdicts = [], []
    for setting in FIGURE_24:
        for other in ("badge", "kdpp", "kcenter-grad"):
            differences = compared(results, "conf", other, "mean_norm").get(setting)
            if differences is not None:
                mean, low, high = interval(differences)
                verdicts.append(verdict(low > 0, high < 0))
                parts.append(f"{setting} against {other}: {mean:+.2f} {_interval(low, high)}, {_seeds(differences)}")
    return Claim(
        "Among all algorithms, Conf has the largest average norm of gradient embeddings within a batch",
        "appendix F, figure 24",
        "mean norm over the rounds, conf − each of the others",
        _listed(parts),
        all_of(verdicts),
    )


def _gaps(results: Results, setting: Setting, strategy: str, column: str) -> str:
    """How many rounds of a strategy are at −∞: batches that were linearly dependent."""
    values = learning_curve(results, setting, strategy, column).values
    count = int(np.isneginf(values).sum())
    return f", {count} of {int((~np.isnan(values)).sum())} rounds of {strategy} at −∞" if count else ""


def _over_data(outcomes: dict[Setting, Verdict]) -> Verdict:
    signs = {"holds": 1, "does not hold": -1, "cannot be told": 0}
    return by_signs(*over_data({setting: signs[found] for setting, found in outcomes.items()})[:2])


def _counted(outcomes: dict[Setting, Verdict]) -> str:
    above, below = (sum(v == word for v in outcomes.values()) for word in ("holds", "does not hold"))
    n = len(outcomes)
    return f"above one half in {above}, below in {below}, undecided in {n - above - below} of {n} settings"


def _interval(low: float, high: float, scale: float = 1.0) -> str:
    return f"({scale * low:+.2f} to {scale * high:+.2f})" if math.isfinite(low) else "(one seed)"


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f} %"


def _seeds(values: NDArray[np.float64]) -> str:
    return f"{len(values)} seed{'s' * (len(values) != 1)}"


def _listed(parts: list[str]) -> str:
    return "; ".join(parts) if parts else "no setting has both"
