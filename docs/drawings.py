"""The drawings of docs/architecture.md: sequences, written as SVG by `python docs/drawings.py`.

Each drawing is a list of steps over named columns. A step is an arrow from one column to another, or a note at a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

__all__ = ["DRAWINGS", "svg"]

FOLDER = Path(__file__).parent / "images"
WIDTH, ROW, TOP, MARGIN = 960, 46, 58, 90
INK, LINE, PALE, DISK, BAD = "#1f2933", "#9aa5b1", "#eef2f6", "#fff3d6", "#fde3e1"


@dataclass(frozen=True)
class Arrow:
    start: str
    end: str
    text: str
    back: bool = False  #: an answer: dashed


@dataclass(frozen=True)
class Note:
    at: str
    text: str
    kind: Literal["work", "disk", "bad"] = "work"


Step = Arrow | Note

SELECT = (
    ("you", "badge.select", "model", "strategy", "sampler"),
    [
        Arrow("you", "badge.select", "model, pool, k"),
        Note("badge.select", "check k, strategy, exclude: nothing is computed yet"),
        Arrow("badge.select", "model", "the pool, batch by batch"),
        Note("model", "one pass, eval mode, no gradients"),
        Arrow("model", "badge.select", "Outputs: p [N, C], h [N, D]", back=True),
        Arrow("badge.select", "strategy", "Outputs of what may be picked, k, rng"),
        Arrow("strategy", "sampler", "features a ⊗ h"),
        Note("sampler", "never N × C·D numbers"),
        Arrow("sampler", "strategy", "k positions", back=True),
        Arrow("strategy", "badge.select", "k positions", back=True),
        Note("badge.select", "check the answer: k distinct positions"),
        Arrow("badge.select", "you", "ids, in pick order", back=True),
    ],
)

ASK_AND_TELL = (
    ("you", "learner", "trainer", "strategy", "journal on disk"),
    [
        Arrow("you", "learner", "ask(k)"),
        Arrow("learner", "trainer", "labels so far"),
        Arrow("trainer", "learner", "a model, from scratch", back=True),
        Arrow("learner", "strategy", "Outputs of what has no label"),
        Arrow("strategy", "learner", "k positions", back=True),
        Arrow("learner", "journal on disk", "ask: the ids"),
        Note("journal on disk", "synced: learner, ask", "disk"),
        Arrow("learner", "you", "ids", back=True),
        Note("you", "killed here: the ids are pending, nothing is asked twice", "bad"),
        Arrow("you", "learner", "tell(ids, labels)"),
        Note("learner", "check every id and label first"),
        Arrow("learner", "journal on disk", "tell: ids and labels"),
        Note("journal on disk", "synced: learner, ask, tell", "disk"),
        Arrow("learner", "you", "returns", back=True),
        Note("you", "killed here: the labels are kept", "bad"),
        Arrow("you", "learner", "open the journal again"),
        Arrow("journal on disk", "learner", "every event, in order: the same steps as when it happened", back=True),
        Arrow("learner", "you", "labels, pending ids, picks", back=True),
    ],
)

RUN_TO_REPORT = (
    ("badge run", "worker", "journal of a cell", "stats", "badge report"),
    [
        Arrow("badge run", "worker", "data, model, strategy, seed"),
        Arrow("worker", "journal of a cell", "start: cell, versions"),
        Note("worker", "each round: train, predict, select, test"),
        Arrow("worker", "journal of a cell", "round: accuracy, picks"),
        Note("worker", "killed here: this round is run again", "bad"),
        Arrow("badge run", "worker", "the same command, again"),
        Arrow("journal of a cell", "worker", "the rounds that are there", back=True),
        Arrow("worker", "journal of a cell", "round, …, end"),
        Note("journal of a cell", "runs/*.jsonl, one per cell", "disk"),
        Arrow("badge report", "stats", "load(runs/)"),
        Arrow("journal of a cell", "stats", "rounds of all cells", back=True),
        Note("stats", "curves, penalties, labels saved: no torch"),
        Arrow("stats", "badge report", "numbers", back=True),
        Note("badge report", "report.html, figures, tables", "disk"),
    ],
)

SHARD_DEATH = (
    ("driver", "shard 0", "shard 1", "its rows, on disk or in Ray"),
    [
        Note("driver", "draws events (row, mark) from one stream"),
        Arrow("driver", "shard 0", "its events, centres 41 to 57"),
        Arrow("driver", "shard 1", "its events, centres 41 to 57"),
        Arrow("shard 0", "driver", "survivors: rows that may become centres", back=True),
        Note("shard 1", "dies: no answer", "bad"),
        Arrow("driver", "shard 1", "start again, on a node that is left"),
        Arrow("its rows, on disk or in Ray", "shard 1", "rows", back=True),
        Arrow("driver", "shard 1", "the same events, centres 0 to 57"),
        Note("shard 1", "bounds are made again: they only save work"),
        Arrow("shard 1", "driver", "survivors: those it would have sent", back=True),
        Note("driver", "orders them by event, accepts: the same picks"),
    ],
)

DRAWINGS: dict[str, tuple[tuple[str, ...], list[Step]]] = {
    "architecture-select": SELECT,
    "architecture-ask-and-tell": ASK_AND_TELL,
    "architecture-run-to-report": RUN_TO_REPORT,
    "architecture-shard": SHARD_DEATH,
}


def svg(columns: tuple[str, ...], steps: list[Step]) -> str:
    """A sequence: columns from left to right, time from top to bottom."""
    gap = (WIDTH - 2 * MARGIN) / (len(columns) - 1)
    x = {name: round(MARGIN + i * gap) for i, name in enumerate(columns)}
    height = TOP + ROW * len(steps) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for name in columns:
        parts.append(f'<line x1="{x[name]}" y1="44" x2="{x[name]}" y2="{height - 12}" stroke="{LINE}"/>')
        half = max(40, 4 * len(name))
        parts.append(
            f'<rect x="{min(max(x[name] - half, 4), WIDTH - 4 - 2 * half)}" y="14" width="{2 * half}" height="30" rx="6" '
            f'fill="{PALE}" stroke="{LINE}"/>'
        )
        middle = min(max(x[name], 4 + half), WIDTH - 4 - half)
        parts.append(_text(middle, 34, name, bold=True))
    for number, step in enumerate(steps):
        y = TOP + ROW * number + 26
        parts += _arrow(step, x, y) if isinstance(step, Arrow) else _note(step, x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{INK}"{weight}>{escape(text)}</text>'


def _half(text: str) -> float:
    """Half of the width of a text and its margin."""
    return 3.3 * len(text) + 8


def _inside(x: float, half: float) -> float:
    """The middle nearest x of something that stays in the picture."""
    return min(max(x, half + 4), WIDTH - half - 4)


def _arrow(step: Arrow, x: dict[str, int], y: float) -> list[str]:
    start, end = x[step.start], x[step.end]
    tip = 8 if end > start else -8
    dashes = ' stroke-dasharray="5 4"' if step.back else ""
    middle = _inside((start + end) / 2, _half(step.text))
    return [
        f'<line x1="{start}" y1="{y:g}" x2="{end - tip}" y2="{y:g}" stroke="{INK}"{dashes}/>',
        f'<polygon points="{end},{y:g} {end - tip},{y - 4:g} {end - tip},{y + 4:g}" fill="{INK}"/>',
        f'<rect x="{middle - _half(step.text) + 6:g}" y="{y - 20:g}" width="{2 * _half(step.text) - 12:g}" height="16" '
        'fill="#ffffff"/>',
        _text(middle, y - 7, step.text),
    ]


def _note(step: Note, x: dict[str, int], y: float) -> list[str]:
    half = _half(step.text)
    middle = _inside(x[step.at], half)
    colour = {"work": PALE, "disk": DISK, "bad": BAD}[step.kind]
    return [
        f'<rect x="{middle - half:g}" y="{y - 22:g}" width="{2 * half:g}" height="26" rx="4" fill="{colour}" '
        f'stroke="{LINE}"/>',
        _text(middle, y - 5, step.text),
    ]


if __name__ == "__main__":
    for name, (columns, steps) in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(svg(columns, steps), encoding="utf-8")
