"""Each claim of the paper against results: our number, and a verdict by the rules in `verdicts`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import PAPER_STRATEGIES, REFERENCE
from badge.stats import Results, Setting, beats, label_budgets, learning_curve, normalized_errors, penalty_matrix
from results.claims_of_samplers import cost, diversity, same_accuracy
from results.verdicts import FEWEST, Claim, all_of, by_draws, by_signs

__all__ = ["claims"]

#: A strategy is much worse if its error is more than this many times the best one's.
MUCH_WORSE = 1.1
LOWEST = "badge has the lowest column of the penalty matrix"


def claims(results: Results, times: Results | None = None) -> list[Claim]:
    """All claims, in the order of the paper's figures; `times`: runs on an idle machine, for the cost of selection.

    >>> from badge.stats import example
    >>> {claim.verdict for claim in claims(example())}
    {'cannot be told'}
    """
    return [
        same_accuracy(results),
        cost(times or results),
        *diversity(results),
        early_and_late(results),
        coreset_without_convolutions(results),
        *lowest_columns(results),
        lowest_errors(results),
        never_much_worse(results),
        margin_and_batch_size(results),
    ]


def wins(results: Results, one: str, other: str, at: Mapping[Setting, int]) -> tuple[int, int, int]:
    """(settings in which `one` wins, in which `other` wins, in which the two could be compared), at these label counts."""
    outcomes = []
    for setting, labels in at.items():
        found = beats(*(learning_curve(results, setting, name).at(labels) for name in (one, other)))
        outcomes += [] if found is None else [found]
    return outcomes.count(1), outcomes.count(-1), len(outcomes)


def label_counts(results: Results, place: int) -> dict[Setting, int]:
    """The label count of every setting's round number `place` (−1: the last) of rand."""
    found = {}
    for setting in results.settings:
        labels = learning_curve(results, setting, REFERENCE).labels
        if len(labels) > abs(place):
            found[setting] = int(labels[place])
    return found


def early_and_late(results: Results) -> Claim:
    """Diversity wins early and uncertainty late: coreset against conf after the first batch and at the end."""
    early = wins(results, "coreset", "conf", label_counts(results, 1))
    late = wins(results, "conf", "coreset", label_counts(results, -1))
    texts = [
        f"after the first batch coreset wins in {early[0]} and conf in {early[1]} of {early[2]} settings",
        f"at the end conf wins in {late[0]} and coreset in {late[1]} of {late[2]}",
    ]
    return Claim(
        "diversity (coreset) is better in early rounds, uncertainty (conf) in late ones",
        "section 4, figure 3",
        "; ".join(texts),
        all_of([by_signs(*early[:2]), by_signs(*late[:2])]),
    )


def coreset_without_convolutions(results: Results) -> Claim:
    """Coreset is often worse than rand where the network has no convolutions."""
    mlp = {setting: labels for setting, labels in label_counts(results, -1).items() if setting.model == "mlp"}
    better, worse, n = wins(results, REFERENCE, "coreset", mlp)
    return Claim(
        "coreset often does worse than rand without a convolutional network",
        "section 4, figure 3",
        f"at the end rand wins in {better} and coreset in {worse} of {n} settings with an MLP",
        by_signs(better, worse),
    )


def lowest_columns(results: Results) -> list[Claim]:
    """BADGE has the lowest column of the penalty matrix: overall, by batch size, by network."""
    paired = results.paired(PAPER_STRATEGIES)
    if paired is None:
        nothing = "no setting has two seeds of all seven strategies"
        return [Claim(f"{LOWEST} over all settings", "figure 4", nothing, "cannot be told")]
    names = list(PAPER_STRATEGIES)
    penalty = penalty_matrix(paired, names)
    groups: list[tuple[str, Callable[[Setting], bool]]] = [("over all settings", lambda s: True)]
    groups += [
        (f"at batch size {size:,}", lambda s, size=size: s.batch_size == size)  # type: ignore[misc]
        for size in sorted({s.batch_size for s in penalty.settings})
    ]
    groups += [
        (f"with {model}", lambda s, model=model: s.model == model)  # type: ignore[misc]
        for model in sorted({s.model for s in penalty.settings})
    ]
    rows = []
    for title, member in groups:
        here = [i for i, setting in enumerate(penalty.settings) if member(setting)]
        figure = "figure 4" if title.startswith("over") else "figure 20" if title.startswith("at") else "figure 21"
        rows.append(_lowest_column(names, penalty.values[here], title, figure))
    return rows


def _lowest_column(names: list[str], layers: NDArray[np.float64], title: str, where: str) -> Claim:
    said = f"{LOWEST} {title}"
    if not layers.any():
        return Claim(said, where, f"{_settings(len(layers))}: no strategy beats another", "cannot be told")
    ours = names.index("badge")

    def lowest(rows: NDArray[np.int64]) -> bool:
        columns = layers[rows].sum(axis=(0, 1))
        return bool(columns[ours] <= columns.min() + 1e-9)

    share, verdict = by_draws(lowest, len(layers), title)
    averages = dict(zip(names, layers.sum(axis=0).mean(axis=0).tolist(), strict=True))
    order = sorted(averages, key=lambda name: averages[name])
    shown = ", ".join(f"{name} {averages[name]:.2f}" for name in order[:3])
    rank = f"badge is number {order.index('badge') + 1} with {averages['badge']:.2f}"
    often = "" if math.isnan(share) else f"; lowest in {share:.0%} of the draws".replace("%", " %")
    return Claim(said, where, f"{_settings(len(layers))}: {shown}; {rank}{often}", verdict)


def lowest_errors(results: Results) -> Claim:
    """BADGE has the best distribution of normalised errors: the lowest mean of their logarithms."""
    said = "badge has the best distribution of normalised errors"
    names = list(PAPER_STRATEGIES)
    paired = results.paired(names)
    if paired is None:
        return Claim(said, "figure 5", "no setting has two seeds of all seven strategies", "cannot be told")
    table = normalized_errors(paired, names)
    settings = sorted(set(table.settings))
    rows = [[i for i, s in enumerate(table.settings) if s == setting] for setting in settings]
    logs = np.log(np.maximum(table.values, 1e-12))
    means = np.array([logs[at].mean(axis=0) for at in rows]).reshape(len(settings), len(names))
    means = means[~np.isnan(means).any(axis=1)]
    if not len(means):
        return Claim(said, "figure 5", "no setting has label budgets", "cannot be told")
    ours = names.index("badge")
    share, verdict = by_draws(lambda at: bool(means[at].mean(axis=0).argmin() == ours), len(means), "errors")
    typical = dict(zip(names, np.exp(means.mean(axis=0)).tolist(), strict=True))
    order = sorted(typical, key=lambda name: typical[name])
    shown = ", ".join(f"{name} {typical[name]:.3f}" for name in order[:3])
    often = "" if math.isnan(share) else f"; badge is lowest in {share:.0%} of the draws".replace("%", " %")
    what = f"error ÷ rand's, geometric mean of {_settings(len(means))}"
    return Claim(said, "figure 5", f"{what}: {shown}{often}", verdict)


def never_much_worse(results: Results) -> Claim:
    """At no label budget is BADGE's error significantly more than 10 % above that of the best strategy there."""
    worst, bad, doubtful, places = (1.0, "", ""), 0, 0, 0
    counted = set()
    for setting in results.settings:
        curves = {name: learning_curve(results, setting, name) for name in PAPER_STRATEGIES}
        for labels in label_budgets(results, setting).values:
            at = {name: curve.at(labels) for name, curve in curves.items()}
            if not all(len(found) > 1 for found in at.values()):
                continue
            places += 1
            counted.add(setting)
            errors = {name: 1 - float(np.mean(list(found.values()))) for name, found in at.items()}
            best = min(errors, key=lambda name: errors[name])
            ratio = errors["badge"] / max(errors[best], 1e-12)
            worst = max(worst, (ratio, f"{setting} at {labels:,} labels", best))
            if ratio > MUCH_WORSE:
                bad += beats(at[best], at["badge"]) == 1
                doubtful += beats(at[best], at["badge"]) != 1
    measured = (
        f"{bad + doubtful} of {places} (setting, budget) pairs are above {MUCH_WORSE}, {bad} of them significantly"
    )
    measured += f"; the worst is {worst[0]:.2f}, against {worst[2]} on {worst[1]}" if worst[1] else ""
    return Claim(
        "badge is never much worse than the best strategy",
        "section 4",
        f"error ÷ that of the best strategy: {measured}",
        "does not hold" if bad else "holds" if len(counted) >= FEWEST and not doubtful else "cannot be told",
    )


def margin_and_batch_size(results: Results) -> Claim:
    """marg loses by a large batch early on: its accuracy after the first batch of 1,000 against ten batches of 100."""
    counts: dict[str, list[Any]] = {"marg": [], "badge": []}
    for setting in results.settings:
        large = setting._replace(batch_size=1000)
        if setting.batch_size == 100 and large in results.settings:
            labels = learning_curve(results, large, REFERENCE).labels
            for name, found in counts.items():
                if len(labels) > 1:
                    at = int(labels[1])
                    found.append(beats(*(learning_curve(results, s, name).at(at) for s in (setting, large))))
    decided = {name: [value for value in found if value is not None] for name, found in counts.items()}
    texts = [
        f"{name} is worse in {found.count(1)} and better in {found.count(-1)} of {len(found)}"
        for name, found in decided.items()
    ]
    return Claim(
        "marg degrades early with large batches",
        "section 4, appendix E",
        f"after one batch of 1,000 against as many labels in batches of 100, data sets: {'; '.join(texts)}",
        by_signs(decided["marg"].count(1), decided["marg"].count(-1)),
    )


def _settings(count: int) -> str:
    return f"{count} setting{'s' * (count != 1)}"
