"""The whole grid: cost against N, k and the shape of the outputs, for ours and everyone who can take part.

What does not fit in memory, or would take longer than a limit, is left out and listed with its estimate: nothing is
extrapolated. The bare product is measured once for each input, and scaled to every k as it is by its definition.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks import inputs
from benchmarks.bars import Lab
from benchmarks.inputs import Input
from benchmarks.measure import Run, Timing

__all__ = ["batches", "estimate", "plotted", "pools", "run", "runs"]

SIZES = (10_000, 50_000, 200_000, 1_000_000)
SHAPES = ((10, 256), (10, 512), (100, 768), (1_000, 2_048))
BATCHES = (100, 1_000, 10_000)
CONTENDERS = ("ours", "plain loop", "bmdal-reg kmeanspp", "scikit-learn", "scikit-activeml", "bare product")
#: Seconds that one repeat may be estimated to take; more where the plot needs the point. Ours always takes part.
LIMIT, PLOTTED_LIMIT = 6.0, 45.0


def pools() -> list[Input]:
    """The network trained on 100 labels (the bars have those with 1,000 and 5,000), and all generated pools."""
    generated = [Input(kind, n, c, d) for c, d in SHAPES for n in SIZES for kind in ("skewed", "isotropic")]
    return [inputs.trained(100), *generated]


def batches(of: Input) -> list[int]:
    """Every k of which the pool has twice as many."""
    return [k for k in BATCHES if 2 * k <= of.n]


def plotted(of: Input, k: int) -> bool:
    """Whether the plot shows this case: cost against N at k = 1,000, and against k at N = 50,000."""
    return of.kind in ("skewed", "isotropic") and (of.c, of.d) == (10, 512) and (k == 1_000 or of.n == 50_000)


def estimate(run: Run) -> tuple[float, float]:
    """(seconds on one thread, bytes with the inputs) of a run, roughly: to decide what to leave out, never to report.

    >>> estimate(Run("plain loop", Input("skewed", 50_000, 10, 512), 1_000))[0] > 1
    True
    """
    of, k = run.input, run.k
    matrix, row = 4 * of.n * of.c * of.d, 2 * (of.c + of.d)
    return {
        "ours": (of.bytes / 1e9 + k * k * row / 40e9, 1.3 * of.bytes + 0.5e9),
        "plain loop": (k * of.bytes / 10e9, 1.5 * of.bytes),
        "bmdal-reg kmeanspp": (k * of.bytes / 4e9, 3 * of.bytes),
        "scikit-learn": (k * matrix / 4e9, of.bytes + 2.5 * matrix),
        "scikit-activeml": (k * matrix / 0.7e9, of.bytes + 5 * matrix),
        "bare product": (of.n * 512 * row / 80e9, 2 * of.bytes + 2**30),
    }[run.contender]


def free_bytes() -> float:
    """Memory that is free now; without a word from the system, 8 GB."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return 1024 * found["MemAvailable"]
    except (OSError, KeyError):
        return 8e9


def left_out(run: Run, room: float) -> str | None:
    """Why a run does not take part, or None."""
    seconds, space = estimate(run)
    limit = PLOTTED_LIMIT if plotted(run.input, run.k) else LIMIT
    if space > room:
        return f"needs about {space / 1e9:.0f} GB of {room / 1e9:.0f} GB"
    if seconds > limit and run.contender != "ours":
        return f"takes about {seconds:,.0f} s, over the limit of {limit:g} s"
    return None


def runs(of: Input) -> list[Run]:
    """Every contender with every k, the bare product once."""
    ks = batches(of)
    return [Run(c, of, k) for k in ks for c in CONTENDERS if c != "bare product" or k == ks[0]]


def run(lab: Lab, of: Input) -> None:
    """Measure one input with every k; what is left out is kept as a timing without seconds, with the reason."""
    room = 0.8 * free_bytes()
    first, *others = batches(of)
    reasons = {one: left_out(one, room) for one in runs(of)}
    lab.timings += [Timing(one, lab.threads, missing=reason) for one, reason in reasons.items() if reason]
    taking_part = [one for one, reason in reasons.items() if not reason]
    if not taking_part:
        return
    for found in lab.all_seconds(taking_part):
        if found.run.contender == "bare product":
            scaled = [(k, [s * k / first for s in found.seconds]) for k in others]
            lab.timings += [replace(found, run=replace(found.run, k=k), seconds=s) for k, s in scaled]
