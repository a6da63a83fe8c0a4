"""What `python -m benchmarks` does: sections in order, results saved after each, tables at the end."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from badge.errors import InputError, UnknownNameError
from benchmarks import bars, grid, inputs, machine, report, stages
from benchmarks.bars import Lab
from benchmarks.inputs import Input

__all__ = ["NAMES", "QUICK", "run"]

#: What other parts of badge cost: a module with `measure() -> {"ratio": …}`, and what its ratio is of.
COSTS = {
    "cell": ("benchmarks.cell_cost", "a cell over its training, prediction and selection"),
    "frozen": ("benchmarks.frozen_cost", "a round on kept embeddings over the 3 s that it may take"),
    "journal": ("benchmarks.journal_cost", "opening a journal of 400,000 events over the 2 s that it may take"),
    "predict": ("benchmarks.predict_cost", "badge.predict over the bare loop"),
    "train": ("benchmarks.train_cost", "badge.Trainer over the bare loop"),
}
#: Where a page shows the plot.
PLOT = "images/benchmark.png"
#: The bars that need neither hours nor 5 GB of disk, and the profile.
QUICK = [*(name for name in bars.SECTIONS if name != "memmap"), "profile"]
NAMES = [*bars.SECTIONS, "profile", *COSTS, "grid"]


def run(
    full: bool = False,
    only: Sequence[str] = (),
    threads: Sequence[int] = (1,),
    repeats: int = 5,
    out: Path = Path("bench"),
    page: Path | None = None,
) -> dict[str, Any]:
    """Run sections, and write results.json, plot.png and the page; returns all results that `out` now has."""
    from rich.console import Console

    for name in only:
        if name not in NAMES:
            raise UnknownNameError("section of the benchmark", name, NAMES)
    if min(threads) < 1 or repeats < 1:
        raise InputError(f"threads {list(threads)} and repeats {repeats}: both must be at least 1")
    if page is not None and not page.is_file():
        raise InputError(f"there is no page {page}")
    console = Console(stderr=True)
    about = machine.describe()
    results = report.load(out / "results.json")
    for count in threads:
        for name in only or (NAMES if full else QUICK):
            console.rule(f"{name}, {count} thread{'s' * (count > 1)}", style="dim")
            file = out / "results.json"
            for part in _parts(name, file, count, about):
                lab = Lab(
                    threads=count,
                    repeats=repeats,
                    tell=lambda line: console.print(line, style="dim", highlight=False, soft_wrap=True),
                )
                found = part(lab)
                results = report.save(found, file)
                for bar in found["bars"]:
                    console.print(
                        f"{bar['verdict']}: {bar['what']} {report.number(bar['measured'], bar['unit'])} "
                        f"(must {bar['sense']} {report.number(bar['must'], bar['unit'])})",
                        style={"missed": "red", "goal": "green"}.get(bar["verdict"]),
                        soft_wrap=True,
                    )
    if report.plot(results, out / "plot.png"):
        console.print(f"plot: {out / 'plot.png'}")
    terminal = Console(file=sys.stdout)
    for table in report.tables(results):
        terminal.print(table)
    console.print(f"results: {out / 'results.json'}")
    if page is not None:
        text = report.into_markdown(page.read_text(encoding="utf-8"), results)
        page.write_text(text, encoding="utf-8")
        if PLOT in text:
            report.plot(results, page.parent / PLOT)
        console.print(f"tables: {page}")
    return results


def _parts(name: str, file: Path, threads: int, about: dict[str, Any]) -> list[Callable[[Lab], dict[str, Any]]]:
    """What a section measures, each part saved when it is done. The grid goes on where it was left at this commit."""
    if name == "grid":
        here = {"commit": about.get("commit"), "threads": threads}
        measured = [t for t in report.load(file).get("timings", []) if here.items() <= t.items()]
        done = {(t["run"]["contender"], Input(**t["run"]["input"]), t["run"]["k"]) for t in measured}
        left = [of for of in grid.pools() if any((r.contender, of, r.k) not in done for r in grid.runs(of))]
        return [lambda lab, of=of: _grid(lab, of, about) for of in left]  # type: ignore[misc]
    return [lambda lab: _section(name, lab, about)]


def _grid(lab: Lab, of: Input, about: dict[str, Any]) -> dict[str, Any]:
    grid.run(lab, of)
    return report.record(lab, [], about)


def _section(name: str, lab: Lab, about: dict[str, Any]) -> dict[str, Any]:
    results = report.record(lab, bars.SECTIONS[name](lab) if name in bars.SECTIONS else [], about)
    if name == "profile":
        results["stages"] = [_profile(of, k, lab, about) for of, k in _profiled()]
    elif name in COSTS:
        results["costs"] = _cost(name, lab)
    return results


def _profiled() -> list[tuple[Input, int]]:
    of = inputs.trained(5_000)
    return [(of, min(k, of.n // 4)) for k in (100, 1_000, 10_000)] + [(Input("isotropic", 50_000, 10, 512), 1_000)]


def _profile(of: Input, k: int, lab: Lab, about: dict[str, Any]) -> dict[str, Any]:
    what = f"{of}, k = {k:,}"
    lab.tell(f"profile of {what}")
    return report.stage_record(what, *stages.profile(of, k, threads=lab.threads), about)


def _cost(name: str, lab: Lab) -> list[dict[str, Any]]:
    module, what = COSTS[name]
    if importlib.util.find_spec(module) is None:
        return []
    import torch

    lab.tell(f"cost of {name}")
    measure: Callable[..., dict[str, Any]] = importlib.import_module(module).measure
    before = torch.get_num_threads()
    torch.set_num_threads(lab.threads)
    try:
        own = {"threads": lab.threads} if "threads" in inspect.signature(measure).parameters else {}
        return [{"what": f"{what}, {lab.threads} thread(s)", **measure(**own)}]
    finally:
        torch.set_num_threads(before)
