"""The figures of a benchmark: a JSON file, tables on the terminal and in Markdown, a plot. Numbers come from here only.

`save` merges: a new measurement replaces the old one, so that sections can be run one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.bars import Bar, Lab
from benchmarks.grid import CONTENDERS, plotted
from benchmarks.inputs import Input
from benchmarks.measure import REPEATS
from benchmarks.stages import Stage

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["into_markdown", "load", "markdown", "plot", "save", "tables"]

FORMAT = 2
#: Stages below this share of the time are put together.
SMALL = 0.02


def record(lab: Lab, bars: Iterable[Bar], machine: dict[str, Any]) -> dict[str, Any]:
    """What was measured, as JSON; every record has the commit that it is of."""
    stamp = {"commit": machine.get("commit"), "date": machine.get("date")}
    return {
        "format": FORMAT,
        "machine": machine,
        "bars": [{**asdict(b), "verdict": b.verdict, **stamp} for b in bars],
        "timings": [{**asdict(t), "median": t.median if t.seconds else None, **stamp} for t in lab.timings],
        "memories": [{**asdict(m), **stamp} for m in lab.memories],
        "stages": [],
        "costs": [],
    }


def stage_record(
    what: str, seconds: float, steps: Sequence[Stage], functions: Sequence[Stage], machine: dict[str, Any]
) -> dict[str, Any]:
    stamp = {"commit": machine.get("commit"), "date": machine.get("date")}
    found = {"steps": [asdict(s) for s in steps], "functions": [asdict(s) for s in functions]}
    return {"what": what, "seconds": seconds, **found, **stamp}


_KEYS = {
    "bars": ("what", "threads"),
    "timings": ("run", "threads"),
    "memories": ("run", "threads"),
    "stages": ("what",),
    "costs": ("what",),
}


def merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`new`, and what `old` has that `new` measured not.

    >>> old = {"bars": [{"what": "a", "threads": 1, "measured": 1}, {"what": "b", "threads": 1, "measured": 2}]}
    >>> [b["measured"] for b in merge(old, {"bars": [{"what": "a", "threads": 1, "measured": 3}]})["bars"]]
    [3, 2]
    """
    merged = {**old, **new}
    for part, names in _KEYS.items():
        found: dict[str, Any] = {}
        for one in [*old.get(part, []), *new.get(part, [])]:
            found[json.dumps([one[name] for name in names], sort_keys=True)] = one
        merged[part] = list(found.values())
    return merged


def load(file: Path) -> dict[str, Any]:
    """What was measured before; of another format, nothing."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found if found.get("format") == FORMAT else {}


def save(results: dict[str, Any], file: Path) -> dict[str, Any]:
    """Write `results`, merged with what the file had; returns the whole."""
    merged = merge(load(file), results)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(merged, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return merged


def number(x: float | None, unit: str = "") -> str:
    """Three digits and the unit.

    >>> number(0.2471, "×"), number(12345.6, "MB"), number(None, "s")
    ('0.247 ×', '12,346 MB', '–')
    """
    if x is None:
        return "–"
    text = f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"
    return f"{text} {unit}".strip()


Rows = list[list[str]]


def bar_rows(results: dict[str, Any]) -> Rows:
    """what, threads, must, goal, measured, verdict, note; of the sections that have no table of their own."""
    return _bars([b for b in results.get("bars", []) if b["section"] not in OWN_TABLE])


def section_rows(section: str, results: dict[str, Any]) -> Rows:
    """The same of one section."""
    return _bars([b for b in results.get("bars", []) if b["section"] == section])


def _bars(bars: list[dict[str, Any]]) -> Rows:
    rows = []
    for b in bars:
        limits = [
            f"{b['sense']} {number(b[name], b['unit'])}" if b[name] is not None else "–" for name in ("must", "goal")
        ]
        rows.append([b["what"], str(b["threads"]), *limits, number(b["measured"], b["unit"]), b["verdict"], b["note"]])
    return rows


def input_name(of: dict[str, Any]) -> str:
    return str(Input(**of))


def timing_rows(results: dict[str, Any]) -> Rows:
    """input, k, threads, and the median of each contender of the grid, as a multiple of ours too."""
    found: dict[tuple[Input, int, int], dict[str, Any]] = {}
    for t in results.get("timings", []):
        if (run := t["run"])["contender"] in CONTENDERS:
            found.setdefault((Input(**run["input"]), run["k"], t["threads"]), {})[run["contender"]] = t

    def place(case: tuple[Input, int, int]) -> tuple[Any, ...]:
        of, k, threads = case
        return of.kind, of.labels or 0, of.c, of.d, of.n, k, threads

    def cell(t: dict[str, Any] | None, mine: dict[str, Any] | None) -> str:
        if t is None:
            return ""
        if not t["median"]:
            return "not run"
        text = number(t["median"], "s")
        if t is not mine and mine and mine["median"]:
            text += f", {number(t['median'] / mine['median'], '×')}"
        return text if len(t["seconds"]) >= REPEATS else f"{text} ({len(t['seconds'])} repeats)"

    rows = []
    for case in sorted(found, key=place):
        times = found[case]
        rows.append(
            [str(case[0]), f"{case[1]:,}", str(case[2]), *(cell(times.get(c), times.get("ours")) for c in CONTENDERS)]
        )
    return rows


def other_rows(results: dict[str, Any]) -> Rows:
    """input, k, threads, contender, median, repeats of what is not in the grid."""
    chosen = [t for t in results.get("timings", []) if t["run"]["contender"] not in CONTENDERS]
    rows = []
    for t in sorted(chosen, key=lambda t: (input_name(t["run"]["input"]), t["run"]["k"], t["threads"])):
        median = number(t["median"], "s") if t["median"] else f"not run: {t['missing']}"
        run = t["run"]
        shown = [input_name(run["input"]), f"{run['k']:,}", str(t["threads"]), run["contender"], median]
        rows.append([*shown, str(len(t["seconds"])) if t["seconds"] else "–"])
    return rows


def memory_rows(results: dict[str, Any]) -> Rows:
    """input, k, contender, bytes of inputs, peak growth, ratio."""
    rows = []
    for m in results.get("memories", []):
        run = m["run"]
        name = input_name(run["input"]) + (", float16 on disk" if run["mapped"] else "")
        if m["peak"] is None:
            rows.append([name, f"{run['k']:,}", run["contender"], "–", f"not measured: {m['missing']}", "–"])
            continue
        sizes = [number(m[part] / 1e6, "MB") for part in ("input_bytes", "anonymous" if run["mapped"] else "peak")]
        share = number(m["anonymous" if run["mapped"] else "peak"] / m["input_bytes"], "×")
        rows.append([name, f"{run['k']:,}", run["contender"], *sizes, share])
    return rows


def step_rows(results: dict[str, Any]) -> Rows:
    """what, step of the sampler with all that it calls, calls, share of the time."""
    return _shares(results, "steps")


def function_rows(results: dict[str, Any]) -> Rows:
    """what, function with what it calls in torch and numpy, calls, share of the time."""
    return _shares(results, "functions")


def _shares(results: dict[str, Any], part: str) -> Rows:
    rows = []
    for p in results.get("stages", []):
        kept = [s for s in p[part] if s["share"] >= SMALL]
        what = f"{p['what']} ({p['seconds']:.3g} s)"
        rows += [[what, s["name"], f"{s['calls']:,}", f"{100 * s['share']:.0f} %"] for s in kept]
        rest = 1 - sum(s["share"] for s in kept)
        rows.append([what, "all others", "", f"{100 * rest:.0f} %"])
    return rows


def cost_rows(results: dict[str, Any]) -> Rows:
    return [[c["what"], number(c["ratio"], "×")] for c in results.get("costs", [])]


BAR_COLUMNS = ["what", "threads", "must", "goal", "measured", "verdict", "medians (repeats)"]
#: Sections of bars that are a table of the page.
OWN_TABLE = ("devices", "noticed", "people")

_TABLES: dict[str, tuple[str, list[str], Callable[[dict[str, Any]], Rows]]] = {
    "bars": ("The bars", BAR_COLUMNS, bar_rows),
    "devices": ("Waits for a device", BAR_COLUMNS, partial(section_rows, "devices")),
    "noticed": ("What people notice", BAR_COLUMNS, partial(section_rows, "noticed")),
    "people": ("What a person waits for", BAR_COLUMNS, partial(section_rows, "people")),
    "timings": ("Times, and multiples of ours", ["input", "k", "threads", *CONTENDERS], timing_rows),
    "others": ("Other times", ["input", "k", "threads", "contender", "median", "repeats"], other_rows),
    "memory": ("Memory above the inputs", ["input", "k", "contender", "inputs", "peak", "of inputs"], memory_rows),
    "steps": ("Where the time goes", ["selection", "step", "calls", "share"], step_rows),
    "functions": ("The same by function", ["selection", "function", "calls", "share"], function_rows),
    "costs": ("Costs beside the selection", ["what", "ratio"], cost_rows),
}


def tables(results: dict[str, Any]) -> list[Table]:
    """The tables for the terminal; empty ones are left out."""
    from rich.table import Table

    found = []
    for title, columns, rows_of in _TABLES.values():
        rows = rows_of(results)
        if not rows:
            continue
        shown = columns[:6] if columns is BAR_COLUMNS else columns  # the notes of the bars are too wide; times follow
        table = Table(*shown, title=title)
        for row in rows:
            table.add_row(
                *row[: len(shown)], style={"missed": "red", "goal": "green"}.get(row[5] if len(row) > 5 else "")
            )
        found.append(table)
    return found


def markdown(results: dict[str, Any], name: str) -> str:
    """One table in Markdown; `machine` is the machine's description."""
    if name == "machine":
        machine = results["machine"]
        shown = {**machine, "memory_bytes": number((machine["memory_bytes"] or 0) / 2**30, "GiB")}
        shown["peers"] = ", ".join(f"{n} {v or 'not installed'}" for n, v in machine["peers"].items())
        return "\n".join(f"- {key.removesuffix('_bytes')}: {value}" for key, value in shown.items())
    _, columns, rows_of = _TABLES[name]
    rows = rows_of(results) or [["not measured yet", *[""] * (len(columns) - 1)]]
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def into_markdown(text: str, results: dict[str, Any]) -> str:
    """`text` with new tables between `<!-- bench: NAME -->` and `<!-- bench end -->`. What was not measured stays.

    >>> into_markdown("a <!-- bench: costs -->old<!-- bench end --> b", {"costs": [{"what": "predict", "ratio": 1.01}]})
    'a <!-- bench: costs -->\\n\\n| what | ratio |\\n| --- | --- |\\n| predict | 1.01 × |\\n\\n<!-- bench end --> b'
    >>> into_markdown("<!-- bench: costs -->old<!-- bench end -->", {})
    '<!-- bench: costs -->old<!-- bench end -->'
    """

    def table(found: re.Match[str]) -> str:
        measured = "machine" in results if found[1] == "machine" else bool(_TABLES[found[1]][2](results))
        return (
            f"<!-- bench: {found[1]} -->\n\n{markdown(results, found[1])}\n\n<!-- bench end -->"
            if measured
            else found[0]
        )

    return re.sub(r"<!-- bench: (\w+) -->.*?<!-- bench end -->", table, text, flags=re.DOTALL)


def plot(results: dict[str, Any], file: Path) -> bool:
    """Log-log: cost against N at k = 1,000 and against k at N = 50,000, for (10, 512); False where nothing is measured."""
    chosen = []
    for t in results.get("timings", []):
        of, k = Input(**t["run"]["input"]), t["run"]["k"]
        if t["median"] and t["threads"] == 1 and t["run"]["contender"] in CONTENDERS and plotted(of, k):
            chosen.append((t["run"]["contender"], of.kind, {"N": of.n, "k": k}, t["median"]))
    if not chosen:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 8), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True)
    for row, kind in zip(axes, ("skewed", "isotropic"), strict=True):
        for ax, (axis, fixed, value) in zip(row, (("N", "k", 1_000), ("k", "N", 50_000)), strict=True):
            for number, name in enumerate(CONTENDERS):
                points = sorted((at[axis], s) for c, of, at, s in chosen if (c, of, at[fixed]) == (name, kind, value))
                if points:
                    style = {"lw": 3.0, "zorder": 3} if name == "ours" else {"lw": 1.3}
                    ax.loglog(*zip(*points, strict=True), marker="o", color=f"C{number}", label=name, **style)
            ax.set(title=f"{kind}, {fixed} = {value:,}", xlabel=axis, ylabel="seconds")
            ax.grid(True, which="major", alpha=0.3)
    shown = {line.get_label(): line for ax in axes.flat for line in ax.lines}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=len(shown))
    figure.suptitle("Cost of a selection, C = 10, D = 512, one thread")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    return True
