"""The whole grid: cost against N, k and the shape of the outputs, for ours and everyone who can take part.

What does not fit in memory, or would take longer than `LIMIT` seconds, is left out and listed with its estimate: nothing
is extrapolated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from badge.bench import inputs
from badge.bench.bars import Lab
from badge.bench.inputs import Input
from badge.bench.measure import Run, Timing

__all__ = ["cases", "estimate", "run"]

POOLS = (10_000, 50_000, 200_000, 1_000_000)
SHAPES = ((10, 256), (10, 512), (100, 768), (1_000, 2_048))
BATCHES = (100, 1_000, 10_000)
CONTENDERS = ("ours", "bare product", "plain loop", "bmdal-reg kmeanspp", "scikit-learn", "scikit-activeml")
#: Seconds that one run may be estimated to take.
LIMIT = 60.0


def cases() -> list[tuple[Input, int]]:
    """Every input with every k below a half of it."""
    trained = [inputs.trained(labels) for labels in (100, 1_000, 5_000)]
    generated = [Input(kind, n, c, d) for kind in ("skewed", "isotropic") for c, d in SHAPES for n in POOLS]
    return [(of, k) for of in dict.fromkeys([*trained, *generated]) for k in BATCHES if 2 * k <= of.n]


def estimate(run: Run) -> tuple[float, float]:
    """(seconds on one thread, bytes above nothing) of a run, roughly: to decide what to leave out, never to report.

    >>> estimate(Run("plain loop", Input("skewed", 50_000, 10, 512), 1_000))[0] > 1
    True
    """
    of, k = run.input, run.k
    matrix = 4 * of.n * of.c * of.d
    products = 2 * of.n * (of.c + of.d) * k / 40e9
    return {
        "ours": (2 + products, 2.5 * of.bytes),
        "bare product": (products * 512 / k, 2 * of.bytes + 2**30),
        "plain loop": (k * of.bytes / 8e9, 2 * of.bytes),
        "bmdal-reg kmeanspp": (k * of.bytes / 4e9, 3 * of.bytes),
        "scikit-learn": (k * matrix / 4e9, of.bytes + 2.5 * matrix),
        "scikit-activeml": (k * matrix / 0.7e9, of.bytes + 5 * matrix),
    }[run.contender]


def free_bytes() -> float:
    """Memory that is free now; without a word from the system, 8 GB."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return 1024 * found["MemAvailable"]
    except (OSError, KeyError):
        return 8e9


def run(lab: Lab, limit: float = LIMIT) -> None:
    """Measure the grid; what is left out is kept as a timing without seconds, with the reason."""
    room = 0.8 * free_bytes()
    for of, k in cases():
        taking_part: list[Run] = []
        for contender in CONTENDERS:
            one = Run(contender, of, k)
            seconds, space = estimate(one)
            reason = None
            if space > room:
                reason = f"needs about {space / 1e9:.0f} GB of {room / 1e9:.0f} GB"
            elif seconds > limit:
                reason = f"takes about {seconds:,.0f} s, over the limit of {limit:g} s"
            if reason:
                lab.timings.append(Timing(one, lab.threads, missing=reason))
            else:
                taking_part.append(one)
        if taking_part and taking_part[0].contender == "ours":
            patient = replace(lab, budget=min(lab.budget, limit))
            patient.all_seconds(taking_part)
