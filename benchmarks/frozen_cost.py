"""What one round on kept embeddings takes: `python -m benchmarks.frozen_cost`.

A pool of 100,000 embeddings of width 512 that were computed before and lie on disk; 1,000 of them are labelled. One round
fits the linear head, predicts the pool and picks 100 with BADGE. The bar is 3 s.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any

import numpy as np
import torch

from badge.learner import ActiveLearner
from badge.training import Frozen

__all__ = ["main", "measure"]

#: seconds that a round may take
LIMIT = 3.0


def measure(
    rows: int = 100_000, width: int = 512, labels: int = 1000, classes: int = 10, picks: int = 100, repeats: int = 3
) -> dict[str, Any]:
    """Median seconds of a round, and of its three parts; `ratio` is that of the limit.

    >>> measure(rows=300, width=8, labels=50, picks=5, repeats=1)["ratio"] > 0
    True
    """
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(classes, (rows,), generator=generator)
    pool = torch.randn(classes, width, generator=generator)[truth] + 4 * torch.randn(rows, width, generator=generator)
    given = {int(i): int(truth[i]) for i in np.random.default_rng(0).choice(rows, labels, replace=False)}
    rounds, parts = [], []
    with tempfile.TemporaryDirectory() as folder:
        frozen = Frozen(torch.nn.Identity(), keep=folder)
        for seed in range(repeats):
            learner = ActiveLearner(pool, frozen, classes=classes, initial=given, seed=seed)
            first = learner.ask(1)  # opens the kept embeddings
            learner.tell(first, truth[first])
            started = time.perf_counter()
            learner.ask(picks)
            rounds.append(time.perf_counter() - started)
            parts.append(dict(learner.seconds))
    seconds = statistics.median(rounds)
    middle = {f"{name}_seconds": statistics.median(part[name] for part in parts) for name in parts[0]}
    return {"ratio": seconds / LIMIT, "seconds": seconds, **middle, "rows": rows, "width": width, "labels": labels}


def main() -> None:
    """Print the figures; exit code 1 where a round takes more than 3 s."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frozen_cost", description=__doc__)
    for name, default in (("rows", 100_000), ("width", 512), ("labels", 1000), ("classes", 10), ("repeats", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    chosen = vars(parser.parse_args())
    torch.set_num_threads(threads := chosen.pop("threads"))
    found = measure(**chosen)
    print(
        f"one round on {found['rows']:,} × {found['width']} kept embeddings, {found['labels']:,} labels, {threads} thread(s)"
    )
    for part in ("train", "predict", "select"):
        print(f"  {part:8s} {found[f'{part}_seconds']:7.3f} s")
    print(f"  round    {found['seconds']:7.3f} s (limit {LIMIT} s)")
    raise SystemExit(found["ratio"] > 1)


if __name__ == "__main__":
    main()
