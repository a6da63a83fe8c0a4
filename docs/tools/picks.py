"""Pictures of picks: a pool in the plane and what each strategy of the catalog picks from it, round by round.

`python docs/tools/picks.py` writes docs/images/picks-*.svg, the moving picture of the first page and docs/strategies.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from strategies_page import page

import badge
from badge.core.catalog import CATALOG, spec

__all__ = ["moving", "picture", "rounds"]

DOCS = Path(__file__).parents[1]
ASKED, ROUNDS, SEED = 5, 3, 3
FEWER = {"kdpp": 3}  #: its batch is at most (C − 1)·D examples, and two classes are known at first
#: Fitted to its end, so that every version of scikit-learn draws the same.
LINEAR = {"C": 30.0, "fit_intercept": False, "max_iter": 1000, "solver": "newton-cg", "tol": 1e-7}
MEMBERS = 10  #: of the committee that bald asks
SIDE, GAP = 250, 12
SIZE = 20  #: of letters; on a phone three panels are shown at half of their size
INK, PICK, GREY = "#1f2933", "#d9480f", "#52606d"
POINT = ("#7aa6d1", "#8fbf8a", "#b79ad0")  #: a pool example, by its true class
REGION = ("#e3eef9", "#e6f4e4", "#f1e9f8")  #: where the model predicts a class

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    labelled: list[int]  #: before this round's picks
    weights: Points | None  #: of the model that picked, a row (x, y, 1) per class; None: before any label
    picks: list[int]
    accuracy: float | None  #: of that model on the whole pool


def pool() -> tuple[Points, NDArray[np.int64]]:
    """300 examples of three classes: two large clusters that touch, and a rare class of 15."""
    rng = np.random.default_rng(7)
    parts = [(165, (-0.6, 0.45), 0.27, 0), (120, (0.5, 0.5), 0.27, 1), (15, (-0.1, -0.8), 0.13, 2)]
    x = np.concatenate([rng.normal(centre, width, (n, 2)) for n, centre, width, _ in parts])
    y = np.concatenate([np.full(n, label) for n, _, _, label in parts])
    return np.clip(x, -1.4, 1.4).round(3), y


@cache
def rounds(strategy: str, count: int = ROUNDS) -> tuple[Round, ...]:
    """What a learner with this strategy asks for; a cold start picks the first round too, the others draw it uniformly."""
    if spec(strategy).passes:
        return committee_rounds(strategy, count)
    x, y = pool()
    z = np.column_stack([x, np.ones(len(x))])
    cold = {"first": strategy, "embeddings": z} if spec(strategy).cold else {}
    model = LogisticRegression(**LINEAR)
    found: list[Round] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = badge.ActiveLearner(z, model, classes=3, strategy=strategy, seed=SEED, **cold)
        while len(found) < count:
            before = list(learner.labels)
            picks = learner.ask(FEWER.get(strategy, ASKED) if before else ASKED).tolist()
            learner.tell(picks, y[picks].tolist())
            if before or cold:
                found.append(_round(z, y, before, picks, model if before else None))
        learner.close()
    return tuple(found)


def committee_rounds(strategy: str, count: int) -> tuple[Round, ...]:
    """What is picked where a committee disagrees: each member weighs the labels at random. The first labels are rand's."""
    x, y = pool()
    z = np.column_stack([x, np.ones(len(x))])
    before, found = list(rounds("rand")[0].labelled), []
    for number in range(count):
        rng = np.random.default_rng(number)
        weights = rng.exponential(size=(MEMBERS, len(before)))
        members = [LogisticRegression(**LINEAR).fit(z[before], y[before], sample_weight=w) for w in weights]
        picks = badge.select(members, z, ASKED, strategy=strategy, seed=SEED + number, exclude=before).tolist()
        found.append(_round(z, y, list(before), picks, LogisticRegression(**LINEAR)))
        before += picks
    return tuple(found)


def _round(
    z: Points, y: NDArray[np.int64], before: list[int], picks: list[int], model: LogisticRegression | None
) -> Round:
    if model is None:
        return Round(before, None, picks, None)
    model.fit(z[before], y[before])
    weights = np.full((3, 3), -1e3) * [0, 0, 1]
    for row, label in zip(_rows(model), model.classes_, strict=True):
        weights[label] = row
    return Round(before, weights, picks, float(model.score(z, y)))


def _rows(model: LogisticRegression) -> Points:
    """A row of weights per class: with two classes scikit-learn keeps one."""
    return np.vstack([np.zeros(3), model.coef_]) if len(model.coef_) == 1 else model.coef_


# -- drawing -----------------------------------------------------------------------------------------------------------


def _at(point: Points) -> tuple[float, float]:
    """The plane, [-1.5, 1.5] in both directions, onto a panel."""
    return round(float((point[0] + 1.5) / 3 * SIDE), 1), round(float((1.5 - point[1]) / 3 * SIDE), 1)


def _region(weights: Points, label: int) -> list[Points]:
    """The part of the plane where this class has the largest score: a square, cut by a line per other class."""
    corners = [np.array(p) for p in ((-1.5, -1.5), (1.5, -1.5), (1.5, 1.5), (-1.5, 1.5))]
    for other in range(len(weights)):
        line = weights[label] - weights[other]
        kept: list[Points] = []
        for start, end in zip(corners, [*corners[1:], *corners[:1]], strict=True):
            a, b = (float(line[:2] @ p + line[2]) for p in (start, end))
            kept += [start] if a >= 0 else []
            kept += [start + (end - start) * a / (a - b)] if a * b < 0 else []
        corners = kept
    return corners


def _top(lines: int) -> float:
    """The height of a title."""
    return SIZE * 1.25 * lines + 8


def _panel(one: Round, left: float, *title: str, css: str = "") -> Iterator[str]:
    """One round: the model's regions, the pool, labels as dark dots, this round's picks as rings; above it its title."""
    x, y = pool()
    yield f'<g transform="translate({left:g} {_top(len(title)):g})"{css}>'
    yield f'<rect width="{SIDE}" height="{SIDE}" fill="#f7f9fb"/>'
    for label in range(3 if one.weights is not None else 0):
        corners = " ".join("{:g},{:g}".format(*_at(p)) for p in _region(one.weights, label))
        yield f'<polygon points="{corners}" fill="{REGION[label]}"/>'
    yield f'<use href="#pool"/><rect width="{SIDE}" height="{SIDE}" fill="none" stroke="#9aa5b1"/>'
    yield from ('<circle cx="{:g}" cy="{:g}" r="3" fill="{}"/>'.format(*_at(x[i]), INK) for i in one.labelled)
    for i in one.picks:
        yield '<circle cx="{:g}" cy="{:g}" r="5.5" fill="{}" stroke="{}" stroke-width="2.5"/>'.format(
            *_at(x[i]), POINT[y[i]], PICK
        )
    for number, line in enumerate(reversed(title)):
        yield f'<text x="{SIDE / 2:g}" y="{-9 - number * SIZE * 1.25:g}" text-anchor="middle">{line}</text>'
    yield "</g>"


def _open(width: float, height: float, name: str, style: str = "") -> list[str]:
    x, y = pool()
    dots = "".join(
        '<circle cx="{:g}" cy="{:g}" r="2.2" fill="{}"/>'.format(*_at(p), POINT[c]) for p, c in zip(x, y, strict=True)
    )
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="{SIZE}" fill="{INK}"><title>{name}</title>{style}',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/><defs><g id="pool">{dots}</g></defs>',
    ]


def picture(strategy: str) -> str:
    """Three rounds of a strategy, from left to right."""
    parts = _open(ROUNDS * (SIDE + GAP) + GAP, SIDE + _top(1) + GAP, f"What {strategy} picks in three rounds")
    for number, one in enumerate(rounds(strategy)):
        title = f"{len(one.labelled)} labels" if one.labelled else "no label yet"
        parts += _panel(one, GAP + number * (SIDE + GAP), title)
    return "\n".join([*parts, "</svg>"]) + "\n"


def moving(strategies: tuple[str, str] = ("rand", "badge"), count: int = 5, seconds: float = 2.0) -> str:
    """Two strategies side by side, a round every few seconds. Without movement where the reader asked for none."""
    share = 100 / count
    frames = "".join(f".r{i}{{animation-delay:{i * seconds:g}s}}" for i in range(count))
    style = (
        f"<style>.r{{opacity:0;animation:show {count * seconds:g}s infinite}}{frames}"
        f"@keyframes show{{0%,{share - 0.1:g}%{{opacity:1}}{share:g}%,100%{{opacity:0}}}}"
        f"@media (prefers-reduced-motion:reduce){{.r{{animation:none}}.r{count - 1}{{opacity:1}}}}</style>"
    )
    parts = _open(
        2 * (SIDE + GAP) + GAP, SIDE + _top(2) + GAP, "Picks at random beside picks of badge, round by round", style
    )
    for column, strategy in enumerate(strategies):
        for number, one in enumerate(rounds(strategy, count)):
            name = "at random" if strategy == "rand" else strategy
            title = (name, f"{len(one.labelled)} labels, {one.accuracy:.0%} right")
            parts += _panel(one, GAP + column * (SIDE + GAP), *title, css=f' class="r r{number}"')
    return "\n".join([*parts, "</svg>"]) + "\n"


def files() -> dict[Path, str]:
    """Everything that this script makes."""
    pictures = {DOCS / "images" / f"picks-{one.name}.svg": picture(one.name) for one in CATALOG}
    return {**pictures, DOCS / "images" / "picks-moving.svg": moving(), DOCS / "strategies.md": page()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
