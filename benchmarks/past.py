"""Strategies past the paper against the bare product, scikit-learn and plain loops: `python -m benchmarks.past [NAME ...]`.

One process, one thread, CPU seconds, contenders in turn. The pool is MNIST through an MLP with 1,000 labels (60,000 rows of
10 probabilities and 256 embedding columns), as in the other benchmarks.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import badge
from badge import data, samplers
from badge.features.kinds import unit_rows
from badge.outputs import Outputs
from badge.samplers.kernels import Gauss
from badge.samplers.lloyd import lloyd_from
from badge.samplers.plain import plain_bait, plain_coverage, plain_lloyd
from badge.strategies import get
from badge.strategies.uncertainty import doubt
from benchmarks.bars import MB
from benchmarks.inputs import Input, at_hand, load, trained
from benchmarks.measure import _status, _watch

__all__ = ["NAMES", "main"]

#: Labelled rows that the pool is conditioned on, and picks.
LABELED, K = 1000, 100
#: The bare product is taken for this share of the rows.
SHARE = 16
#: Rows, and columns of their embeddings, that the plain loop of bait gets.
FEW, WIDE = 1000, 32
#: Seeds of k-means that times and inertias are means of.
SEEDS = 4


def seconds(call: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def select(name: str, pool: Outputs, k: int, labeled: Outputs | None) -> float:
    return seconds(lambda: get(name)(pool, k, np.random.default_rng(0), labeled=labeled))


def product(pool: Outputs) -> float:
    """The bare N × D × N product, blocks in cache."""
    x = unit_rows(pool.embeddings).as_matrix()
    some = range(0, len(x) // SHARE, 1024)

    def multiply() -> None:
        for i in some:
            for j in range(0, len(x), 1024):
                x[i : i + 1024] @ x[j : j + 1024].T

    return seconds(multiply) * len(x) / (len(some) * 1024)


def coverage(name: str, pool: Outputs, labeled: Outputs | None) -> None:
    before, mine, after = product(pool), select(name, pool, K, labeled), product(pool)
    bare = (before + after) / 2
    start = "before any label" if labeled is None else f"{LABELED:,} labelled"
    print(f"{name}, {start}, k = {K}: {mine:.1f} s, {mine / bare:.2f} products N × D × N ({bare:.1f} s)", flush=True)
    peak_so_far()


def fisher(name: str, pool: Outputs, labeled: Outputs | None) -> None:
    print(f"{name}, k = {K} ({2 * K} forward steps): {select(name, pool, K, labeled):.1f} s", flush=True)
    peak_so_far()


def peak_so_far() -> None:
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory of the process so far: {grown:.2f} GB", flush=True)


def loops(pool: Outputs, n: int = 2000, k: int = 20) -> None:
    """Against the loops of `samplers/plain.py`, on as many rows as their whole matrices let them have."""
    rng, rows = np.random.default_rng(0), np.sort(np.random.default_rng(0).permutation(len(pool))[:n])
    x, of_rows, few = unit_rows(pool.embeddings[rows]), pool[rows], rows[:FEW]
    sigma = float(torch.cdist(x[:50].as_matrix(), x[50:100].as_matrix()).min())
    first = x.as_matrix()[:k]
    narrow = Outputs(pool.probabilities[few], pool.embeddings[few][:, :WIDE])
    for name, size, ours, plain in (
        (
            f"coverage, σ = {sigma:.2f}, k = {k}",
            n,
            lambda: samplers.coverage(x, k, rng, Gauss(sigma)),
            lambda: plain_coverage(x, k, rng, Gauss(sigma)),
        ),
        (
            "bait-binary, k = 10",
            n,
            lambda: get("bait-binary")(of_rows, 10, rng),
            lambda: bait_by_loop(of_rows, 10, True),
        ),
        (f"bait, D = {WIDE}, k = 10", FEW, lambda: get("bait")(narrow, 10, rng), lambda: bait_by_loop(narrow, 10)),
        (f"lloyd, k = {k}", n, lambda: lloyd_from(x, first), lambda: plain_lloyd(x, first)),
    ):
        ours()  # libraries are loaded
        mine, theirs = seconds(ours), seconds(plain)
        print(f"{name}, {size:,} rows: {mine:.3f} s; plain loop {theirs:.2f} s ({theirs / mine:.0f} ×)", flush=True)


def bait_by_loop(pool: Outputs, k: int, binary: bool = False) -> Any:
    """BAIT with the matrices of every row, as the authors have them."""
    p, h = pool.probabilities.double().numpy(), pool.embeddings.double().numpy()
    top = p.max(axis=1)[:, None]
    a = (
        np.sqrt(top * (1 - top))[:, :, None]
        if binary
        else np.sqrt(p)[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
    )
    blocks = np.einsum("nyc,nd->nycd", a, h).reshape(len(p), a.shape[1], -1)
    return plain_bait(blocks, None, k, penalty=0.01 * float((h**2).sum(axis=1).mean()))


def clusters(pool: Outputs, k: int = 1000, beta: int = 10) -> None:
    from sklearn.cluster import KMeans, kmeans_plusplus

    from badge.features import Dense

    weights = doubt(pool)
    some = weights.topk(beta * k).indices
    x, w = Dense(pool.embeddings[some]), weights[some]
    rows, masses = x.as_matrix().numpy(), w.numpy()

    def seeded(seed: int) -> torch.Tensor:
        return x.as_matrix()[torch.from_numpy(samplers.kmeanspp(x, k, np.random.default_rng(seed)))]

    def inertia(cluster: torch.Tensor, centres: torch.Tensor) -> float:
        return float(((x.as_matrix().double() - centres[cluster]).square().sum(dim=1) * w).sum())

    def theirs(**options: Any) -> float:
        return float(KMeans(k, n_init=1, **options).fit(rows, sample_weight=masses).inertia_)

    def one_trial(seed: int) -> Any:
        return kmeans_plusplus(rows, k, sample_weight=masses, random_state=seed, n_local_trials=1)[0]

    firsts = [seeded(seed) for seed in range(SEEDS)]
    print(f"lloyd, {beta * k:,} rows, k = {k:,}, means of {SEEDS} seeds", flush=True)
    for name, fit in {
        "from given centres": lambda seed: lloyd_from(x, firsts[seed], weights=w),
        "scikit-learn from these": lambda seed: theirs(init=firsts[seed].numpy(), max_iter=50, tol=0),
        "with seeding": lambda seed: lloyd_from(x, seeded(seed), weights=w),
        "scikit-learn, k-means++ as ours": lambda seed: theirs(init=one_trial(seed)),
        "scikit-learn, several rows tried per centre": lambda seed: theirs(random_state=seed),
    }.items():
        found: list[Any] = []
        took = seconds(partial(lambda fit, to: to.extend(map(fit, range(SEEDS))), fit, found)) / SEEDS
        values = [one if isinstance(one, float) else inertia(*one) for one in found]
        spread = f"{min(values):.0f} to {max(values):.0f}"
        print(f"  {name}: {took:.2f} s, inertia {np.mean(values):.0f} ({spread})", flush=True)


def cold_start() -> None:
    pool = load(Input("skewed", 100_000, 10, 256))
    print(f"typiclust, {pool}, k = {K}: {select('typiclust', pool, K, None):.1f} s", flush=True)


def pixels(k: int = 10) -> None:
    """Raw pixels, 784 wide, and the first batch: every pair of rows counts."""
    images = data.load("mnist", progress=False).X_train
    pool = Outputs(embeddings=torch.as_tensor(images).flatten(1).float())
    took, shape = select("maxherding", pool, k, None), tuple(pool.embeddings.shape)
    print(f"maxherding, pixels {shape}, k = {k}: {took:.1f} s", flush=True)


def dropout() -> None:
    """How far a fresh process grows in one pass over 60,000 × 784 rows, and in twenty with dropout on."""
    for passes in (None, 20):
        call = [sys.executable, "-c", f"from benchmarks import past; print(past.grown({passes}))"]
        peak = int(subprocess.run(call, check=True, capture_output=True).stdout) / MB
        print(f"predict of an MLP, passes={passes}: {peak:.0f} MB above the model and the pool", flush=True)


def grown(passes: int | None, rows: int = 60_000) -> int:
    torch.set_num_threads(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(256, 10)
    ).eval()
    badge.predict(net, torch.zeros(300, 784), passes=passes)  # libraries are no part of it
    pool = torch.randn(rows, 784)
    before = _status()
    with _watch() as peak:
        badge.predict(net, pool, passes=passes)
    return peak["VmHWM"] - before["VmRSS"] if before else 0


def peers() -> None:
    """scikit-activeml's typiclust and probcover on rows around ten places; it has none of the others."""
    try:
        from skactiveml import pool as theirs
    except ImportError:
        print("scikit-activeml is not installed: pip install 'badge-learn[bench]'")
        return
    rng = np.random.default_rng(0)
    places = 2 * rng.normal(size=(10, 64))
    for n in (5_000, 20_000):
        x = (places[rng.integers(10, size=n)] + rng.normal(size=(n, 64))).astype(np.float32)
        pool, nothing = Outputs(np.full((n, 10), 0.1), x), np.full(n, np.nan)
        for name, query in (("typiclust", theirs.TypiClust()), ("probcover", theirs.ProbCover(n_classes=10))):
            ours = select(name, pool, K, None)
            other = seconds(partial(query.query, x, nothing, batch_size=K))
            print(
                f"{name}, {n:,} × 64, k = {K}: {ours:.2f} s; scikit-activeml {other:.2f} s ({other / ours:.1f} ×)",
                flush=True,
            )


def mixtures(whole: Outputs, n: int, folder: Path) -> Outputs:
    """n rows on disk, in float32: mixtures of two rows that the network calls the same."""
    rng = np.random.default_rng(0)
    order = whole.probabilities.argmax(dim=1).argsort(stable=True)
    files = [folder / "probabilities.npy", folder / "embeddings.npy"]
    arrays = [whole.probabilities[order], whole.embeddings[order]]
    maps = [np.lib.format.open_memmap(f, "w+", np.float32, (n, x.shape[1])) for f, x in zip(files, arrays, strict=True)]
    for start in range(0, n, 50_000):
        i = torch.from_numpy(rng.integers(len(order), size=min(50_000, n - start)))
        j = (i + torch.from_numpy(rng.integers(-3000, 3000, size=len(i)))).clamp(0, len(order) - 1)
        share = torch.from_numpy(rng.uniform(0, 0.5, size=(len(i), 1)).astype(np.float32))
        for to, x in zip(maps, arrays, strict=True):
            to[start : start + len(i)] = torch.lerp(x[i], x[j], share).numpy()
    del maps
    return Outputs(*(np.load(f, mmap_mode="r") for f in files))


def million(whole: Outputs, labeled: Outputs, n: int = 1_000_000) -> None:
    """Wall seconds on two threads, pool on disk."""
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        pool = mixtures(whole, n, Path(folder))
        for name in ("bait-binary", "uherding"):
            begin = time.perf_counter()
            get(name)(pool, K, np.random.default_rng(0), labeled=labeled)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            took = time.perf_counter() - begin
            print(
                f"{name}, {n:,} rows on disk, k = {K}, two threads: {took:.0f} s, peak memory {grown:.2f} GB",
                flush=True,
            )
    torch.set_num_threads(1)


#: Those that have a pool of their own.
ALONE = {"typiclust": cold_start, "pixels": pixels, "bald": dropout, "peers": peers}
NAMES = ("uherding", "maxherding", "probcover", "bait-binary", "bait", "wkmeans", "loops", *ALONE, "million")


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for name in names or NAMES:
            if name in ALONE:
                ALONE[name]()
                continue
            if not at_hand("mnist"):
                sys.exit(f"{name} is measured on MNIST: set BADGE_DATA to a folder that holds mnist.npz")
            whole = load(trained(1000))
            order = np.random.default_rng(0).permutation(len(whole))
            pool, labeled = whole[np.sort(order[LABELED:])], whole[order[:LABELED]]
            if name == "wkmeans":
                clusters(pool)
            elif name == "million":
                million(pool, labeled)
            elif name == "loops":
                loops(pool)
            elif name.startswith("bait"):
                fisher(name, pool, labeled)
            else:
                coverage(name, pool, None if name == "maxherding" else labeled)


if __name__ == "__main__":
    main(sys.argv[1:])
