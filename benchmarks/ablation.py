"""What each idea that makes the samplers fast is worth: the time without it over the time with all.

    python -m benchmarks.ablation [--repeats 5] [--only kmeanspp]

Seconds of the processor on one thread, variants in turn within one process, the median over repeats. Picks are the same.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch

from badge.core.rows import Here
from badge.features import Dense, Features, gradient_embedding
from badge.features.kinds import unit_rows
from badge.outputs import Outputs
from badge.samplers import Gauss, coverage
from badge.samplers.kcenter import kcenter_over
from badge.samplers.kmeanspp import kmeanspp_over
from badge.samplers.nearest import Tuning
from badge.samplers.shard import Shard
from benchmarks.inputs import Input, letters, load, trained

__all__ = ["main"]

NEVER = 2**60
#: An idea -> what is replaced to leave it out: fields of `Tuning`, or names in modules (those with a dot).
Without = Mapping[str, Mapping[str, Any]]
NO_OUTLINES = {"nearest.centres.outlines_pay": lambda rows: False}
KMEANSPP: Without = {
    "sketch": {"sketch_from": NEVER},
    "outlines": NO_OUTLINES,
    "sketch and outlines": {"sketch_from": NEVER, **NO_OUTLINES},
    "lengths": {
        "nearest.centres.Centres._of_length": lambda self, sq_norms, goal, first, last: torch.arange(first, last)
    },
    "at once": {"at_once": 0},
    "below the diagonal": {"block.STRIP": NEVER},
    "groups by age": {"few": NEVER},
    "newest centres first": {"newest": 0},
    "dropping decided rows": {"follow": 0.0},
}
KCENTER: Without = {"sketch": {"sketch_from": NEVER}, "outlines": NO_OUTLINES, "glances": {"shard.GLANCE": NEVER}}
COVERAGE: Without = {
    "guesses": {"coverage.LEVELS": (0,)},
    "lowering bounds": {"cover.Cover.lower": lambda *given: None},
    "sketch": {"coverage.sketched": lambda features, kernel: None},
}
#: Pairs of rows are compared: part of the pool is enough.
COVERED = 12_000
FEATURES: Mapping[str, Callable[[Outputs], Features]] = {
    "kmeanspp": gradient_embedding,
    "kcenter": Dense.embeddings,
    "coverage": lambda outputs: unit_rows(outputs.embeddings[:COVERED]),
}


def seconds(sampler: str, features: Features, k: int, without: Mapping[str, Any]) -> tuple[float, list[int]]:
    tuning = replace(Tuning(), **{name: value for name, value in without.items() if "." not in name})
    shards, rng = partial(Shard, tuning=tuning), np.random.default_rng(0)
    vars(features).pop("sq_norms", None)
    with ExitStack() as stack:
        for name, value in without.items():
            if "." in name:
                stack.enter_context(mock.patch(f"badge.samplers.{name}", value))
        stack.enter_context(torch.inference_mode())
        start = time.process_time()
        if sampler == "coverage":
            picks = coverage(features, k, rng, Gauss(1.0))
        else:
            over: Callable[..., Any] = kmeanspp_over if sampler == "kmeanspp" else kcenter_over
            picks = over(Here(features, shards), k, rng, tuning=tuning)
        return time.process_time() - start, picks.tolist()


def table(sampler: str, ideas: Without, inputs: list[tuple[Input, tuple[int, ...]]], repeats: int) -> None:
    print(f"\n| {sampler} | k | all, seconds | " + " | ".join(f"without {name}" for name in ideas) + " |")
    print("| --- " * (3 + len(ideas)) + "|")
    for of, sizes in inputs:
        features = FEATURES[sampler](load(of))
        of = replace(of, n=len(features))
        for k in sizes:
            times: dict[str, list[float]] = {name: [] for name in ("all", *ideas)}
            picks: dict[str, list[int]] = {}
            seconds(sampler, features, k if k <= 1_000 else 10, {})  # to warm up
            for repeat in range(repeats):
                for name in sorted(times, reverse=bool(repeat % 2)):
                    took, picks[name] = seconds(sampler, features, k, ideas.get(name, {}))
                    times[name].append(took)
            if len({tuple(found) for found in picks.values()}) != 1:
                raise SystemExit(f"{of}, k = {k}: the variants picked different rows")
            own = statistics.median(times["all"])
            ratios = [statistics.median(a / b for a, b in zip(times[n], times["all"], strict=True)) for n in ideas]
            print(f"| {of} | {k:,} | {own:.3f} | " + " | ".join(f"{r:.2f} ×" for r in ratios) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("kmeanspp", "kcenter", "coverage"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    skewed, isotropic = Input("skewed", 60_000, 10, 256), Input("isotropic", 60_000, 10, 256)
    kmeanspp_inputs = [
        (trained(1_000), (100, 1_000, 10_000)),
        (trained(5_000), (1_000, 10_000)),
        (skewed, (1_000, 10_000, 30_000)),
        (isotropic, (1_000, 3_000)),
        (Input("skewed", 20_000, 100, 512), (1_000,)),
        (Input("skewed", 10_000, 10, 256), (100, 10_000)),
        *((of, (of.n,)) for of in letters()),
    ]
    kcenter_inputs = [(trained(5_000), (100, 1_000)), (skewed, (1_000,))]
    coverage_inputs = [(trained(5_000), (10, 100)), (skewed, (100,)), (isotropic, (10,))]
    for sampler, ideas, inputs in (
        ("kmeanspp", KMEANSPP, kmeanspp_inputs),
        ("kcenter", KCENTER, kcenter_inputs),
        ("coverage", COVERAGE, coverage_inputs),
    ):
        if given.only in (None, sampler):
            table(sampler, ideas, inputs, given.repeats)


if __name__ == "__main__":
    main()
