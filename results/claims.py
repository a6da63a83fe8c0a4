"""Each claim of the paper in its words, a test of what is quoted, our number, and a verdict by the rules in `verdicts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import PAPER_STRATEGIES, REFERENCE
from badge.stats import (
    NormalizedErrors,
    Penalty,
    Results,
    Setting,
    beats,
    label_budgets,
    learning_curve,
    normalized_errors,
    penalty_matrix,
)
from results.claims_of_samplers import cost, dependent_batches, diversity, largest_norms, same_accuracy
from results.verdicts import FEWEST, Claim, Verdict, all_of, by_draws, by_signs, interval, over_data, verdict

__all__ = ["claims"]

#: A column average is competitive if it exceeds the lowest by at most this share of the group's settings.
CLOSE = 0.05
LARGEST = 10_000
OUT_OF_MEMORY = Claim(
    "The comparisons for batch size 10000 are not shown here as the implementation of k-DPP sampling runs out of memory",
    "appendix G",
    "ours at k = 10,000",
    "badge does not run out of memory: 100 of the 460,517 steps, on 20,000 rows, took 1.9 GB with their inputs "
    "([bars](benchmarks.md#the-bars)). With the paper's MLP on images the Gram matrix has rank (10 − 1)·256 = 2,304 at most. "
    "So a k-DPP of 10,000 does not exist, and badge raises an error that says this",
    "cannot be told",
)
NOTHING = "no setting has two seeds of all seven strategies"


def claims(results: Results, times: Results | None = None) -> list[Claim]:
    """All claims, in the order of the paper; `times`: runs on an idle machine, for the cost of selection.

    >>> from badge.stats import example
    >>> {claim.verdict for claim in claims(example())}
    {'cannot be told'}
    """
    paired = results.paired(PAPER_STRATEGIES)
    penalty = None if paired is None else penalty_matrix(paired, list(PAPER_STRATEGIES))
    errors = None if paired is None else normalized_errors(paired, list(PAPER_STRATEGIES))
    return [
        as_good_as_the_best(results),
        same_accuracy(results),
        cost(times or results),
        OUT_OF_MEMORY,
        *diversity(results),
        *dependent_batches(results),
        largest_norms(results),
        early_and_late(results),
        coreset_without_convolutions(results),
        lowest_column(penalty),
        similar_trend(penalty),
        *competitive(penalty),
        lowest_errors(errors),
        *margin_and_badge(errors),
        large_batches(results),
        *elsewhere(errors),
    ]


def wins(results: Results, one: str, other: str, at: Mapping[Setting, int]) -> dict[Setting, int]:
    """1 where `one` wins, −1 where `other` wins, 0 for neither, in the settings in which the two can be compared."""
    found = {
        setting: beats(*(learning_curve(results, setting, name).at(labels) for name in (one, other)))
        for setting, labels in at.items()
    }
    return {setting: outcome for setting, outcome in found.items() if outcome is not None}


def label_counts(results: Results, place: int) -> dict[Setting, int]:
    """The label count of every setting's round number `place` (−1: the last) of rand."""
    found = {}
    for setting in results.settings:
        labels = learning_curve(results, setting, REFERENCE).labels
        if len(labels) > abs(place):
            found[setting] = int(labels[place])
    return found


def as_good_as_the_best(results: Results) -> Claim:
    """At most label budgets no baseline beats BADGE: the baseline with the lowest mean error is the one to compare with."""
    beaten: list[bool] = []
    data: list[str] = []
    worst = (1.0, "")
    for setting in results.settings:
        curves = {name: learning_curve(results, setting, name) for name in PAPER_STRATEGIES}
        for labels in label_budgets(results, setting).values:
            at = {name: curve.at(labels) for name, curve in curves.items()}
            if not all(len(found) > 1 for found in at.values()):
                continue
            errors = {name: 1 - float(np.mean(list(found.values()))) for name, found in at.items()}
            best = min((name for name in errors if name != "badge"), key=lambda name: errors[name])
            beaten.append(beats(at[best], at["badge"]) == 1)
            data.append(setting.data)
            worst = max(
                worst, (errors["badge"] / max(errors[best], 1e-12), f"{best} on {setting} at {labels:,} labels")
            )
    losses = np.array(beaten, dtype=bool)
    share, found = by_draws(lambda rows: bool(losses[rows].mean() < 0.5), data, "as good as the best")
    largest = f"; the largest error is {worst[0]:.2f} times the best baseline's, {worst[1]}" if worst[1] else ""
    return Claim(
        "generally performing as well as or better than the best baseline across our experiments",
        "section 1",
        "in most pairs of setting and label budget, the baseline with the lowest mean error does not beat badge",
        f"badge is beaten in {int(losses.sum())} of {len(losses)} pairs{largest}{_often(share)}",
        found,
    )


def early_and_late(results: Results) -> Claim:
    """Diversity wins early and uncertainty late: coreset against conf after the first batch and at the end."""
    early = wins(results, "coreset", "conf", label_counts(results, 1))
    late = wins(results, "conf", "coreset", label_counts(results, -1))
    parts = [
        f"after the first batch {_won(early, 'coreset', 'conf')}",
        f"at the end {_won(late, 'conf', 'coreset')}",
    ]
    return Claim(
        "Often, we see that in early rounds of training, it is better to do diversity sampling, and later in "
        "training, it is better to do uncertainty sampling",
        "section 4, figure 3",
        "coreset against conf after the first batch and at the end",
        "; ".join(parts),
        all_of([by_signs(*over_data(early)[:2]), by_signs(*over_data(late)[:2])]),
    )


def coreset_without_convolutions(results: Results) -> Claim:
    """Coreset is often worse than rand where the network has no convolutions."""
    mlp = {setting: labels for setting, labels in label_counts(results, -1).items() if setting.model == "mlp"}
    found = wins(results, REFERENCE, "coreset", mlp)
    return Claim(
        "Coreset often performs worse than random on sufficiently complex data when not using a convolutional network",
        "section 4, figure 3",
        "rand against coreset at the end, with an MLP",
        _won(found, REFERENCE, "coreset"),
        by_signs(*over_data(found)[:2]),
    )


def lowest_column(penalty: Penalty | None) -> Claim:
    """BADGE has the lowest column of the penalty matrix over all settings; a tie is not the lowest."""
    quote, where = "showing that BADGE generally outperforms baselines", "section 4, figure 4"
    test = "badge has the lowest column average of the penalty matrix"
    if penalty is None or not penalty.values.any():
        return Claim(quote, where, test, NOTHING if penalty is None else "no strategy beats another", "cannot be told")
    every = np.arange(len(penalty.settings))
    share, found = _lowest(penalty, every, "lowest column")
    return Claim(quote, where, test, f"{_columns(penalty, every)}{_often(share)}", found)


def _lowest(penalty: Penalty, here: NDArray[np.int64], name: str) -> tuple[float, Verdict]:
    """Whether BADGE's column is below all others in these settings; a tie is not below."""
    ours = penalty.strategies.index("badge")

    def lowest(rows: NDArray[np.int64]) -> bool:
        columns = penalty.values[here[rows]].sum(axis=(0, 1))
        return bool((np.delete(columns, ours) > columns[ours] + 1e-9).all())

    return by_draws(lowest, [penalty.settings[i].data for i in here], name)


def similar_trend(penalty: Penalty | None) -> Claim:
    """BADGE's column is the lowest in the groups of settings too, as far as these have data sets enough."""
    claim = Claim(
        "Matrices grouped by batch size and architecture in Appendix [D] show a similar trend",
        "section 4, figures 20 and 21",
        f"badge has the lowest column average in each group of {FEWEST} data sets or more",
        NOTHING,
        "cannot be told",
    )
    if penalty is None:
        return claim
    parts, verdicts = [], []
    for _, title, here in _groups(penalty):
        share, found = _lowest(penalty, here, f"similar trend {title}")
        if math.isfinite(share):
            parts.append(f"{title} in {100 * share:.0f} % of the draws")
            verdicts.append(found)
    return claim._replace(measured="; ".join(parts) or "no such group", verdict=all_of(verdicts))


def _groups(penalty: Penalty) -> list[tuple[str, str, NDArray[np.int64]]]:
    """The settings of each batch size and of each network: (kind, title, rows)."""
    groups = [("batch_size", size, f"B = {size:,}") for size in sorted({s.batch_size for s in penalty.settings})]
    groups += [("model", name, f"with {name}") for name in sorted({s.model for s in penalty.settings})]  # type: ignore[misc]
    rows = [np.array([i for i, s in enumerate(penalty.settings) if getattr(s, by) == one]) for by, one, _ in groups]
    return [(by, title, here) for (by, _, title), here in zip(groups, rows, strict=True)]


def competitive(penalty: Penalty | None) -> list[Claim]:
    """BADGE's column is close to the lowest in every group of settings."""
    quote = "BADGE's performance is competitive across all batch sizes and neural network models"
    test = f"badge's column average is within {CLOSE:.0%} of the settings of the lowest".replace("%", " %")
    if penalty is None:
        return [Claim(quote, "appendix D, figures 20 and 21", test, NOTHING, "cannot be told")]
    ours = penalty.strategies.index("badge")
    rows = []
    for by, title, here in _groups(penalty):

        def close(rows: NDArray[np.int64], here: NDArray[np.int64] = here) -> bool:
            columns = penalty.values[here[rows]].sum(axis=0).mean(axis=0)
            return bool(columns[ours] <= columns.min() + CLOSE * len(rows))

        share, found = by_draws(close, [penalty.settings[i].data for i in here], title)
        where = f"appendix D, figure {20 if by == 'batch_size' else 21}: {title}"
        rows.append(Claim(quote, where, test, f"{_columns(penalty, here)}{_often(share)}", found))
    return rows


def _columns(penalty: Penalty, rows: NDArray[np.int64]) -> str:
    averages = dict(zip(penalty.strategies, penalty.values[rows].sum(axis=0).mean(axis=0).tolist(), strict=True))
    shown = ", ".join(f"{name} {averages[name]:.2f}" for name in sorted(averages, key=lambda name: averages[name]))
    sets = len({penalty.settings[i].data for i in rows})
    return f"{_count(len(rows), 'setting')} of {_count(sets, 'data set')}: {shown}"


def typical_errors(errors: NormalizedErrors, keep: Callable[[Setting], bool]) -> tuple[NDArray[np.float64], list[str]]:
    """The mean log of the normalised errors of each setting [settings, strategies], and the data set of each."""
    settings = [setting for setting in sorted(set(errors.settings)) if keep(setting)]
    logs = np.log(np.maximum(errors.values, 1e-12))
    means = [logs[[i for i, s in enumerate(errors.settings) if s == setting]].mean(axis=0) for setting in settings]
    return np.array(means).reshape(len(settings), len(errors.strategies)), [setting.data for setting in settings]


def ranked(
    errors: NormalizedErrors | None, claim: Claim, best: Sequence[str], keep: Callable[[Setting], bool] = lambda s: True
) -> Claim:
    """The claim that `best` have the lowest normalised errors: each of them below each of the others."""
    if errors is None:
        return claim._replace(measured=NOTHING)
    means, data = typical_errors(errors, keep)
    if not len(means):
        return claim._replace(measured="no such setting has label budgets")
    inside = np.array([name in best for name in errors.strategies])

    def lowest(rows: NDArray[np.int64]) -> bool:
        mean = means[rows].mean(axis=0)
        return bool(mean[inside].max() < mean[~inside].min())

    share, found = by_draws(lowest, data, f"{claim.where} {claim.test}")
    typical = dict(zip(errors.strategies, np.exp(means.mean(axis=0)).tolist(), strict=True))
    shown = ", ".join(f"{name} {typical[name]:.3f}" for name in sorted(typical, key=lambda name: typical[name]))
    count = f"{_count(len(means), 'setting')} of {_count(len(set(data)), 'data set')}"
    return claim._replace(measured=f"{count}: {shown}{_often(share)}", verdict=found)


def lowest_errors(errors: NormalizedErrors | None) -> Claim:
    """BADGE has the best distribution of normalised errors: the lowest mean of their logarithms."""
    test = "badge has the lowest geometric mean of error ÷ rand's"
    claim = Claim("BADGE has the best overall performance", "section 4, figure 5", test, "", "cannot be told")
    return ranked(errors, claim, ["badge"])


def margin_and_badge(errors: NormalizedErrors | None) -> list[Claim]:
    """marg and badge are the two best at small batch sizes, and with an MLP."""
    quote = "when batch size is small (100 or 1000) or when an MLP is used, both BADGE and Marg perform best"
    test = "badge and marg have the two lowest geometric means of error ÷ rand's"
    groups: list[tuple[str, Callable[[Setting], bool]]] = [
        ("B = 100", lambda setting: setting.batch_size == 100),
        ("B = 1,000", lambda setting: setting.batch_size == 1000),
        ("with an MLP", lambda setting: setting.model == "mlp"),
    ]
    return [
        ranked(errors, Claim(quote, f"section 4: {title}", test, "", "cannot be told"), ["badge", "marg"], keep)
        for title, keep in groups
    ]


def large_batches(results: Results) -> Claim:
    """At B = 10,000 badge, albl and coreset are better than marg."""
    parts, verdicts = [], []
    for setting in results.settings:
        for name in ("badge", "albl", "coreset") if setting.batch_size == LARGEST else ():
            at = label_counts(results, 1).get(setting, 0)
            one, other = (learning_curve(results, setting, who).at(at) for who in (name, "marg"))
            shared = sorted(one.keys() & other.keys())
            if len(shared) > 1:
                mean, low, high = interval(np.array([one[seed] - other[seed] for seed in shared]))
                verdicts.append(verdict(low > 0, high < 0))
                edges = f"({100 * low:+.2f} to {100 * high:+.2f})"
                parts.append(f"{name} {100 * mean:+.2f} points {edges} on {setting.data}, {len(shared)} seeds")
    return Claim(
        "in the regime when the batch size is large (10000), Marg's performance degrades, while BADGE, ALBL and "
        "Coreset are the best performing approaches",
        "section 4",
        "accuracy after the first batch of 10,000: badge, albl and coreset − marg",
        "; ".join(parts) or "no runs with B = 10,000",
        all_of(verdicts),
    )


def elsewhere(errors: NormalizedErrors | None) -> list[Claim]:
    """Where marg and coreset are not good: badge and rand have lower errors there."""
    return [
        worse(
            errors,
            "uncertainty-based methods (e.g. Marg) perform well only in small batch size regimes (100) or when using "
            "MLP models",
            "marg",
            "without an MLP and with B > 100",
            lambda s: s.model != "mlp" and s.batch_size > 100,
        ),
        worse(
            errors,
            "representative sampling based methods (e.g. Coreset) only perform well in large batch size regimes "
            "(10000) or when using ResNet or VGG models",
            "coreset",
            "with an MLP and B < 10,000",
            lambda s: s.model == "mlp" and s.batch_size < LARGEST,
        ),
    ]


def worse(errors: NormalizedErrors | None, quote: str, name: str, where: str, keep: Callable[[Setting], bool]) -> Claim:
    """`name` has higher errors than badge and than rand in the settings that are kept."""
    test = f"{where}, {name} has a higher geometric mean of error ÷ rand's than badge and than rand"
    claim = Claim(quote, "appendix D", test, "", "cannot be told")
    if errors is None:
        return claim._replace(measured=NOTHING)
    means, data = typical_errors(errors, keep)
    if not len(means):
        return claim._replace(measured="no such setting has label budgets")
    three = [errors.strategies.index(one) for one in ("badge", REFERENCE, name)]

    def worst(rows: NDArray[np.int64]) -> bool:
        badge, rand, other = means[rows].mean(axis=0)[three]
        return bool(other > badge and other > rand)

    share, found = by_draws(worst, data, test)
    badge, rand, other = np.exp(means.mean(axis=0)[three]).tolist()
    count = f"{_count(len(means), 'setting')} of {_count(len(set(data)), 'data set')}"
    shown = f"badge {badge:.3f}, rand {rand:.3f}, {name} {other:.3f}"
    return claim._replace(measured=f"{count}: {shown}{_often(share)}", verdict=found)


def _won(outcomes: Mapping[Setting, int], one: str, other: str) -> str:
    found = list(outcomes.values())
    ours, against, sets = over_data(outcomes)
    settings = f"{one} wins in {found.count(1)} and {other} in {found.count(-1)} of {_count(len(found), 'setting')}"
    return f"{settings}: {ours} and {against} of {_count(sets, 'data set')}"


def _often(share: float) -> str:
    return "" if math.isnan(share) else f"; true in {share:.0%} of the draws".replace("%", " %")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
