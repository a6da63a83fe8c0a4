"""Where the time of a selection goes, by function of badge.

cProfile counts; the time in torch and numpy is put on the function of badge that called them. `steps` are the stages of
the sampler, from outside: what each takes with everything that it calls. `functions` are all functions, from inside.
Both follow the code as it is now: no table of names has to be kept in step with it.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import badge
from benchmarks.inputs import Input

__all__ = ["Stage", "functions", "profile", "steps"]

HOME = str(Path(badge.__file__).parent)


@dataclass(frozen=True)
class Stage:
    """Seconds of one function, its calls, and its share of the whole."""

    name: str
    calls: int
    seconds: float
    share: float


def profile(of: Input, k: int, contender: str = "ours", threads: int = 1) -> tuple[float, list[Stage], list[Stage]]:
    """(seconds without the profiler, steps of the sampler, all functions), the largest first.

    >>> seconds, found, _ = profile(Input("skewed", 500, 3, 8), 5)
    >>> 0.99 < sum(s.share for s in found) < 1.01
    True
    """
    import torch

    from benchmarks import inputs
    from benchmarks.contenders import CONTENDERS

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        pick = CONTENDERS[contender].prepare(inputs.load(of), k)
        pick(0)
        start = time.perf_counter()
        pick(1)
        seconds = time.perf_counter() - start
        profiler = cProfile.Profile()
        profiler.runcall(pick, 1)
    finally:
        torch.set_num_threads(before)
    stats = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    return seconds, steps(stats), functions(stats)


def functions(stats: dict[Any, Any]) -> list[Stage]:
    """Own time of each function of badge, with the whole time of what it calls outside of badge."""
    inside = {f for f in stats if f[0].startswith(HOME)}
    spent = {f: stats[f][2] for f in inside}
    for _, caller, seconds in _calls_outside(stats, inside):
        spent[caller] += seconds
    return _stages(stats, spent)


def steps(stats: dict[Any, Any], sampler: str = "kmeanspp") -> list[Stage]:
    """The functions of the sampler's own module, and what they call of the other samplers' modules with all that it calls.

    The rest, from the pool's outputs to the features and back from the sampler, is one step.
    """
    home = str(Path(HOME) / "samplers")
    inside = {f for f in stats if f[0].startswith(home) and Path(f[0]).stem == sampler}
    spent = {f: stats[f][2] for f in inside}
    for f, caller, seconds in _calls_outside(stats, inside):
        step = f if f[0].startswith(home) else caller
        spent[step] = spent.get(step, 0.0) + seconds
    whole = sum(own for _, _, own, _, _ in stats.values())
    return _stages(stats, spent, whole)


def _calls_outside(stats: dict[Any, Any], inside: set[Any]) -> Iterator[tuple[Any, Any, float]]:
    """(function outside, caller inside, seconds with all that it calls outside): what it calls back inside counts there."""
    for f, (_, _, _, whole, callers) in stats.items():
        if f in inside:
            continue
        back = min(whole, sum(stats[g][4][f][3] for g in inside if f in stats[g][4]))  # nested calls count twice
        for caller, (*_, with_callees) in callers.items():
            if caller in inside:
                yield f, caller, with_callees * (1 - back / whole if whole else 1.0)


def _stages(stats: dict[Any, Any], spent: dict[Any, float], whole: float | None = None) -> list[Stage]:
    total = sum(spent.values())
    whole = max(whole or 0.0, total)  # nested calls may count twice
    found = [Stage(f"{Path(f[0]).stem}.{f[2]}", stats[f][1], s, s / whole) for f, s in spent.items()]
    if whole > total:
        found.append(Stage("before and after the sampler", 1, whole - total, 1 - total / whole))
    return sorted(found, key=lambda stage: -stage.seconds)
