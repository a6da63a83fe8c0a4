"""Where people notice speed: small pools, a busy laptop, a pass over texts, pools on disk. Ratios within one process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import badge
from benchmarks import inputs
from benchmarks.bars import MB, Bar, Lab
from benchmarks.contenders import CONTENDERS
from benchmarks.doors import paired
from benchmarks.inputs import Input
from benchmarks.measure import _status, _watch

__all__ = ["noticed", "numpy_loop"]

Way = Callable[[], Any]
#: What takes less than this many seconds is repeated five times as often: other programs disturb it more.
SHORT = 0.1
#: Pools are this much smaller in tests.
SCALE = 1.0


def noticed(lab: Lab) -> list[Bar]:
    """The rows of the table."""
    bars: list[Bar] = []

    def compare(what: str, must: float, goal: float | None, ways: tuple[Way, Way], scale: float = 1.0) -> None:
        lab.tell(what)
        start = time.perf_counter()
        ways[0]()
        short = time.perf_counter() - start < SHORT
        ratio, note = paired(*ways, lab.repeats * (5 if short else 1), scale)
        bars.append(Bar("noticed", what, "≤", must, goal, ratio, threads=lab.threads, note=note))

    before = torch.get_num_threads()
    torch.set_num_threads(lab.threads)
    try:
        for n, loop, must in ((1_000, "a loop of numpy", 1.2), (5_000, "the plain loop", 1.0)):
            compare(f"N = {rows(n):,}, (10, 256), k = 10: over {loop}", must, 1.0, small(rows(n), loop))
        compare("TF-IDF of 20,000 texts × 11,281 words: predict over predict_proba", 2.0, None, texts(rows(20_000)))
        if lab.threads == 1:
            what = "the same: peak memory of predict above its inputs"
            bars.append(Bar("noticed", what, "≤", 200, None, peak_of_texts(rows(20_000)) / MB, "MB"))
        for name, net, n, shape, must in NETWORKS:
            ways = passes(net, torch.randn(rows(n), *shape))
            compare(f"predict of {name}, {rows(n):,} rows: over the bare loop", must, 1.05, ways)
        shapes = (60_000, 10, 256), (20_000, 77, 768), (60_000, 150, 384), (20_000, 1_000, 2_048)
        for of in (*(Input("skewed", rows(n), c, d) for n, c, d in shapes), *inputs.letters()):
            must, goal = (0.4, 0.3) if lab.threads == 1 else (0.6, 0.4)
            compare(f"{of}, k = 100: over the bare product", must, goal, *product(of, 100))
        for of in (inputs.trained(1_000), Input("skewed", rows(20_000), 4, 4_096)):
            compare(f"{of}, k = 1,000: over the bare product", 0.18, 0.12, *product(of, min(1_000, of.n // 4)))
        for of in (Input("skewed", rows(30_000), 10, 256), inputs.trained(1_000), *inputs.letters()):
            pool, n = _pool(of), min(rows(10_000), of.n // 3)
            what = f"{of}: k = N of the first {n:,} rows"
            compare(f"{what}: over k = N/2", 1.5, None, whole(pool, n))
            compare(f"{what}: over the same k of the first {3 * n:,}", 1.0, None, larger(pool, n))
        what = f"Outputs(p, h), {rows(1_000_000):,} × (10 + 256), float16 on disk: over select_from, k = 100"
        with on_disk(rows(1_000_000)) as ways:
            compare(what, 0.5, None, ways)
        compare("coreset, 10 labelled, N = 59,990, D = 256, k = 100: over its product", 4.3, 2.2, coreset())
        if lab.threads == 1:
            bars += [seconds(lab, "coreset, 10 labelled, N = 59,990, D = 256, k = 100", 0.1, 0.05, coreset()[1])]
            bars += [
                seconds(lab, f"typiclust, N = {rows(100_000):,}, D = 256, k = 100", 5, 2, typical(rows(100_000)), 1)
            ]
            with busy_process():
                what = f"N = {rows(60_000):,}, (10, 256), k = 100, beside a busy process: two threads over one"
                compare(what, 1.5, 1.0, two_threads(rows(60_000)))
    finally:
        torch.set_num_threads(before)
    return bars


def seconds(lab: Lab, what: str, must: float, goal: float, way: Way, repeats: int = 5) -> Bar:
    """The median of a few calls, the first of which warms up where there are several."""
    lab.tell(what)
    taken = []
    for _ in range(repeats + (repeats > 1)):
        start, cpu = time.perf_counter(), time.process_time()
        way()
        taken.append((time.perf_counter() - start, time.process_time() - cpu))
    wall, cpu = (statistics.median(column) for column in zip(*taken[-repeats:], strict=True))
    return Bar("noticed", what, "≤", must, goal, wall, "s", lab.threads, f"{cpu:.3g} s of processor time ({repeats} ×)")


def typical(n: int) -> Way:
    out = _pool(Input("skewed", n, 10, 256))
    return lambda: badge.select_from(out, min(100, n), "typiclust")


def rows(n: int) -> int:
    return max(200, int(n * SCALE))


def numpy_loop(p: np.ndarray[Any, Any], h: np.ndarray[Any, Any], k: int, seed: int) -> list[int]:
    """BADGE in twenty lines of numpy, one centre at a time.

    >>> p, h = np.full((5, 2), 0.5, dtype=np.float32), np.eye(5, dtype=np.float32)
    >>> len(set(numpy_loop(p, h, 5, 0)))
    5
    """
    rng, a = np.random.default_rng(seed), p.copy()
    a[np.arange(len(a)), a.argmax(axis=1)] -= 1
    sq_norms = (a * a).sum(axis=1) * (h * h).sum(axis=1)
    pick = int(rng.integers(len(a)))
    picks, sq_dists = [pick], np.full(len(a), np.inf, dtype=np.float32)
    while len(picks) < k:
        to_pick = sq_norms + sq_norms[pick] - 2 * (a @ a[pick]) * (h @ h[pick])
        sq_dists = np.minimum(sq_dists, np.maximum(to_pick, 0))
        sq_dists[picks] = 0
        cumulative = np.cumsum(sq_dists, dtype=np.float64)
        pick = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        picks.append(pick)
    return picks


def small(n: int, loop: str) -> tuple[Way, Way]:
    """Twenty selections of 10: one takes less than a millisecond."""
    out = _pool(Input("skewed", n, 10, 256))
    p, h, plain = out.probabilities.numpy(), out.embeddings.numpy(), CONTENDERS["plain loop"].prepare(out, 10)
    bare = plain if loop == "the plain loop" else lambda seed: numpy_loop(p, h, 10, seed)
    return lambda: [bare(s) for s in range(20)], lambda: [badge.select_from(out, 10, seed=s) for s in range(20)]


def texts(n: int) -> tuple[Way, Way]:
    """Rows as TF-IDF gives them, and a fitted logistic regression."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    pool = sparse.random(n, 11_281, density=60 / 11_281, format="csr", random_state=0, dtype=np.float64)
    model = LogisticRegression().fit(pool[:200], np.arange(200) % 20)
    return lambda: model.predict_proba(pool), lambda: badge.predict(model, pool)


def peak_of_texts(n: int) -> int:
    """How far a fresh process grows while it predicts the texts, in bytes. What it frees goes back to the system at once."""
    call = [sys.executable, "-c", f"from benchmarks import noticed; print(noticed.grown({n}))"]
    fresh = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**16)}
    return int(subprocess.run(call, check=True, capture_output=True, env=fresh).stdout)


def grown(n: int) -> int:
    texts(300)[1]()  # libraries are no part of it
    _, predict = texts(n)
    before = _status()
    with _watch() as peak:
        predict()
    return peak["VmHWM"] - before["VmRSS"] if before else 0


def passes(net: nn.Module, pool: torch.Tensor) -> tuple[Way, Way]:
    net = net.eval()

    def bare() -> torch.Tensor:
        with torch.no_grad():
            return torch.cat([net(pool[a : a + 256]) for a in range(0, len(pool), 256)])

    return bare, lambda: badge.predict(net, pool, batch_size=256)


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def _lenet() -> nn.Module:
    first = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(
        first, second, nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
    )


def _tiny_cnn() -> nn.Module:
    convolution = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU())
    return nn.Sequential(convolution, nn.Flatten(), nn.Linear(576, 10))


#: name, network, rows, shape of an example, must
NETWORKS: tuple[tuple[str, nn.Module, int, tuple[int, ...], float], ...] = (
    ("an MLP 784-256-10", _mlp(), 60_000, (784,), 1.15),
    ("a small CNN (LeNet-5)", _lenet(), 10_000, (1, 28, 28), 1.1),
    ("a tiny CNN (two convolutions, 576 wide)", _tiny_cnn(), 10_000, (1, 28, 28), 1.1),
    ("Linear(16, 10)", nn.Linear(16, 10), 60_000, (16,), 3.0),
)


def product(of: Input, k: int) -> tuple[tuple[Way, Way], float]:
    """The two ways, and what the ratio is multiplied by: the product has a fixed number of columns."""
    out, bare = _pool(of), CONTENDERS["bare product"]
    multiply = bare.prepare(out, k)
    return (lambda: multiply(0), lambda: badge.select_from(out, k)), (bare.per_columns or k) / k


def whole(pool: badge.Outputs, n: int) -> tuple[Way, Way]:
    out = _checked(pool[:n])
    return lambda: badge.select_from(out, n // 2), lambda: badge.select_from(out, n)


def larger(pool: badge.Outputs, n: int) -> tuple[Way, Way]:
    """All of a pool, over as many picks of one three times as large: a smaller pool must not take longer."""
    large, small = _checked(pool[: 3 * n]), _checked(pool[:n])
    return lambda: badge.select_from(large, n), lambda: badge.select_from(small, n)


def coreset() -> tuple[Way, Way]:
    """The product is that of the pool with the labelled examples and the picks."""
    out = _pool(inputs.trained(1_000))
    labeled, pool = _checked(out[:10]), _checked(out[10:])
    h, k = pool.embeddings, min(100, len(pool))
    others, room = h[: k + 10].T.contiguous(), torch.empty(len(pool), min(k + 10, len(pool)))
    return lambda: torch.mm(h, others, out=room), lambda: badge.select_from(pool, k, "coreset", labeled=labeled)


@contextmanager
def on_disk(n: int) -> Iterator[tuple[Way, Way]]:
    """Both ways read files that the system has in memory."""
    with tempfile.TemporaryDirectory(prefix="badge-bench-") as folder:
        out = inputs.write_memmap(Input("skewed", n, 10, 256), Path(folder))
        p, h = out.probabilities.numpy(), out.embeddings.numpy()
        ready = badge.Outputs.trusted(out.probabilities, out.embeddings)
        yield lambda: badge.select_from(ready, 100), lambda: badge.Outputs(p, h)


def two_threads(n: int) -> tuple[Way, Way]:
    out = _pool(Input("skewed", n, 10, 256))

    def on(threads: int) -> None:
        torch.set_num_threads(threads)
        badge.select_from(out, 100)

    return lambda: on(1), lambda: on(2)


@contextmanager
def busy_process() -> Iterator[None]:
    """Another program that keeps one core busy."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def _pool(of: Input) -> badge.Outputs:
    return _checked(inputs.load(of))


def _checked(out: badge.Outputs) -> badge.Outputs:
    """Outputs as a caller makes them: the check finds the norms."""
    return badge.Outputs(out.probabilities, out.embeddings)
