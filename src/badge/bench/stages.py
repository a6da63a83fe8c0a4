"""Where the time of a selection goes, by function of badge.

cProfile counts; the time in torch and numpy is put on the function of badge that called them. So the stages are the
functions as they are now, and no table of names has to be kept in step with the code.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from badge.bench.inputs import Input

__all__ = ["Stage", "profile"]


@dataclass(frozen=True)
class Stage:
    """Seconds in one function and in what it calls outside of badge; `calls` of it."""

    name: str
    calls: int
    seconds: float
    share: float


def profile(of: Input, k: int, contender: str = "ours", threads: int = 1) -> tuple[float, list[Stage]]:
    """(seconds without the profiler, stages with it, the largest first).

    >>> seconds, stages = profile(Input("skewed", 500, 3, 8), 5)
    >>> 0.99 < sum(s.share for s in stages) < 1.01
    True
    """
    import torch

    from badge.bench import inputs
    from badge.bench.contenders import CONTENDERS

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
    return seconds, stages(pstats.Stats(profiler).stats)  # type: ignore[attr-defined]


def stages(stats: dict[Any, Any]) -> list[Stage]:
    """Own time of each function of badge, with the whole time of what it calls outside of badge."""
    home = str(Path(__file__).parent.parent)
    own = {f: (calls, own_time) for f, (_, calls, own_time, _, _) in stats.items() if f[0].startswith(home)}
    spent = {f: own_time for f, (_, own_time) in own.items()}
    for f, (_, _, _, _, callers) in stats.items():
        if f in own:
            continue
        for caller, (_, _, _, with_callees) in callers.items():
            if caller in spent:
                spent[caller] += with_callees
    total = sum(spent.values())
    found = [
        Stage(f"{Path(file).stem}.{name}", own[file, line, name][0], seconds, seconds / total)
        for (file, line, name), seconds in spent.items()
    ]
    return sorted(found, key=lambda s: -s.seconds)
