"""What the doors cost over the rooms behind them: validation, the pass over a pool, an answer to a wrong call.

Both sides of a ratio run in turn in one process, on the same arrays; the figure is the median of the ratios of pairs.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import badge
from benchmarks.bars import Bar, Lab

__all__ = ["doors", "paired", "passes_of_rand", "seconds_to_refuse"]

ROWS, CLASSES, WIDTH, K = 60_000, 10, 256, 100


def doors(lab: Lab, rows: int = ROWS) -> list[Bar]:
    """The rows of the table: outputs from numpy, a pass of a small network, a wrong option."""
    before = torch.get_num_threads()
    torch.set_num_threads(lab.threads)
    try:
        lab.tell("badge.Outputs and badge.predict over what they lead to")
        outputs, outputs_note = paired(*_outputs(rows), lab.repeats)
        predict, predict_note = paired(*_predict(rows), lab.repeats)
    finally:
        torch.set_num_threads(before)
    lab.tell("badge select with a wrong option")
    refused, cpu = seconds_to_refuse(lab.repeats)
    shape = f"{rows:,} × ({CLASSES} + {WIDTH})"
    return [
        Bar("doors", f"Outputs(p, h) of numpy arrays and select_from, {shape}, k = {K}: over select_from", "≤", 1.5, 1.2,
            outputs, threads=lab.threads, note=outputs_note),
        Bar("doors", f"predict of an MLP 784-256-10, {rows:,} rows: over the forward loop in the same batches", "≤", 1.2,
            1.05, predict, threads=lab.threads, note=predict_note),
        Bar("doors", "badge select with a wrong option: to the message", "≤", 1, 0.5, refused, "s", 1,
            f"{cpu:.2f} s of processor time"),
        Bar("doors", "three rounds of rand: passes over the pool", "≤", 0, None, passes_of_rand(), "passes"),
    ]  # fmt: skip


def paired(plain: Callable[[], Any], ours: Callable[[], Any], repeats: int, scale: float = 1.0) -> tuple[float, str]:
    """The median of the ratios ours / plain over pairs of runs, each first in half of them; the first pair warms up.

    Where `plain` is a part of the work, `scale` is that part's share. The note has the ratio of processor time too, which
    is steady where others use the machine.
    """
    ratios, of_processor, seconds = [], [], []
    for repeat in range(repeats + 1):
        spent = {}
        for way in (plain, ours) if repeat % 2 else (ours, plain):
            start, cpu = time.perf_counter(), time.process_time()
            way()
            spent[way] = time.perf_counter() - start, time.process_time() - cpu
        if repeat:
            ratios.append(scale * spent[ours][0] / spent[plain][0])
            of_processor.append(scale * spent[ours][1] / spent[plain][1])
            seconds.append(spent[plain][0])
    note = f"{repeats} pairs, {min(ratios):.2f} to {max(ratios):.2f}; of {min(seconds):.3g} s"
    return statistics.median(ratios), f"{note}; {statistics.median(of_processor):.2f} × in processor time"


def _outputs(rows: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.normal(size=(rows, CLASSES)).astype(np.float32) * 3).softmax(dim=1).numpy()
    h = np.abs(rng.normal(size=(rows, WIDTH))).astype(np.float32)
    ready = badge.Outputs.trusted(torch.from_numpy(p), torch.from_numpy(h))  # no check, which finds norms as well
    return lambda: badge.select_from(ready, K), lambda: badge.select_from(badge.Outputs(p, h), K)


def _predict(rows: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    layers = (torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, CLASSES))
    net, batch_size = torch.nn.Sequential(*layers).eval(), 256
    pool = torch.from_numpy(np.random.default_rng(0).normal(size=(rows, 784)).astype(np.float32))

    def bare() -> torch.Tensor:
        with torch.no_grad():
            return torch.cat([net(pool[a : a + batch_size]) for a in range(0, rows, batch_size)])

    return bare, lambda: badge.predict(net, pool, batch_size=batch_size)


def passes_of_rand(rounds: int = 3) -> int:
    """How often a learner that picks uniformly runs its model over the pool."""
    from sklearn.linear_model import LogisticRegression

    passes, pool = 0, np.random.default_rng(0).normal(size=(500, 4))

    def predict(model: Any, of: Any) -> badge.Outputs:
        nonlocal passes
        passes += 1
        return badge.predict(model, of)

    truth = (pool[:, 0] > 0).astype(int)
    learner = badge.ActiveLearner(pool, LogisticRegression(), classes=2, strategy="rand", predict=predict)
    for _ in range(rounds):
        ids = learner.ask(20)
        learner.tell(ids, truth[ids])
    return passes


def seconds_to_refuse(repeats: int) -> tuple[float, float]:
    """Seconds, and of processor time, of `badge select` with a strategy that does not exist: medians."""
    wall, cpu = [], []
    for _ in range(repeats):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        call = [sys.executable, "-m", "badge", "select", "-k", "5", "--strategy", "nope"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 2, done.stderr
    return statistics.median(wall), statistics.median(cpu)
