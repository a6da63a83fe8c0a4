"""What each idea of `samplers/nearest` is worth: k-means++ with one of them left out, over k-means++ with all.

    python -m benchmarks.ablation [--repeats 5]

Seconds of the processor on one thread, variants in turn within one process, the median over repeats. Picks are the same.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import torch

from badge.core.rows import Here
from badge.features import Features, gradient_embedding
from badge.samplers.kmeanspp import kmeanspp_over
from badge.samplers.nearest import Tuning
from badge.samplers.shard import Shard
from benchmarks.inputs import Input, load, trained

__all__ = ["main"]

NEVER = 2**60


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _without_outlines() -> Iterator[None]:
    with mock.patch("badge.samplers.nearest.centres.outlines_pay", lambda rows: False):
        yield


#: name -> (how the tuning differs, what is replaced meanwhile)
VARIANTS: dict[str, tuple[dict[str, int], Callable[[], object]]] = {
    "all": ({}, _nothing),
    "sketch": ({"sketch_from": NEVER}, _nothing),
    "outlines": ({}, _without_outlines),
    "sketch and outlines": ({"sketch_from": NEVER}, _without_outlines),
}


def seconds(features: Features, k: int, name: str) -> tuple[float, list[int]]:
    changed, patch = VARIANTS[name]
    tuning = replace(Tuning(), **changed)
    vars(features).pop("sq_norms", None)
    with patch(), torch.inference_mode():  # type: ignore[attr-defined]
        start = time.process_time()
        picks = kmeanspp_over(Here(features, partial(Shard, tuning=tuning)), k, np.random.default_rng(0), tuning=tuning)
        return time.process_time() - start, picks.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    inputs = [
        (trained(1_000), (100, 1_000, 10_000)),
        (trained(5_000), (1_000, 10_000)),
        (Input("skewed", 60_000, 10, 256), (1_000, 10_000, 30_000)),
        (Input("isotropic", 60_000, 10, 256), (1_000, 3_000)),
        (Input("skewed", 20_000, 100, 512), (1_000, 10_000)),
    ]
    left_out = list(VARIANTS)[1:]
    print("| pool | k | all, seconds | " + " | ".join(f"without {name}" for name in left_out) + " |")
    print("| --- " * (3 + len(left_out)) + "|")
    for of, sizes in inputs:
        features = gradient_embedding(load(of))
        for k in sizes:
            times: dict[str, list[float]] = {name: [] for name in VARIANTS}
            picks: dict[str, list[int]] = {}
            for repeat in range(repeats):
                for name in sorted(VARIANTS, reverse=bool(repeat % 2)):
                    took, picks[name] = seconds(features, k, name)
                    times[name].append(took)
            if len({tuple(found) for found in picks.values()}) != 1:
                raise SystemExit(f"{of}, k = {k}: the variants picked different rows")
            own = statistics.median(times["all"])
            ratios = [statistics.median(a / b for a, b in zip(times[n], times["all"], strict=True)) for n in left_out]
            print(f"| {of} | {k:,} | {own:.3f} | " + " | ".join(f"{r:.2f} ×" for r in ratios) + " |", flush=True)


if __name__ == "__main__":
    main()
