"""A pool on a Ray cluster of this machine against the same pool on one process: seconds, rounds, bytes, memory.

    python -m benchmarks.cluster select  --rows 5000000 --embedding 512 --picks 1000 --repeats 4
    python -m benchmarks.cluster select  --rows 1000000 --embedding 512 --picks 10000 --repeats 1
    python -m benchmarks.cluster select  --rows 100000000 --embedding 64 --picks 1000 10000 --repeats 1 --only ray
    python -m benchmarks.cluster predict --rows 1000000 --repeats 3

The pool is made in `--folder`, once, and kept there: skewed class scores, embeddings close to 32 directions, float16. Both
ways run in turn, on two threads of one process and on two shards of one thread each. The first selection of a session,
which starts the processes of the shards and reads the files for the first time, is told apart from the others.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import badge
import badge.cluster
from badge.cluster.session import Resources, connected
from badge.cluster.shards import Placed, RayPlace, RayShards
from badge.core.rows import Here
from badge.outputs import parts
from badge.samplers.shard import Shard

__all__ = ["main", "make_pool", "measure_predict", "measure_select"]

CLASSES, DIRECTIONS, PART = 10, 32, 250_000


def make_pool(folder: Path, rows: int, embedding: int) -> Path:
    """Outputs in parts, made once; the rows of later parts are those of the first, scaled one by one."""
    path = folder / f"pool-{rows}-{embedding}"
    identity = {"model": "made up", "pool": f"{rows}x{embedding}"}
    place = parts.place_of(path)
    if parts.begin(place, identity):
        return path
    rng = np.random.default_rng(0)
    size = min(PART, rows)
    spread = 12 * rng.random((size, 1), dtype=np.float32) ** 2
    scores = torch.from_numpy(rng.standard_normal((size, CLASSES), dtype=np.float32) * spread)
    p = torch.softmax(scores, dim=1).half().numpy()
    basis = rng.standard_normal((min(DIRECTIONS, embedding), embedding), dtype=np.float32)
    h = torch.from_numpy(rng.standard_normal((size, len(basis)), dtype=np.float32) @ basis / 6)
    made = []
    for start in range(0, rows, PART):
        count, key = min(PART, rows - start), f"{start:012d}"
        found = parts.existing(place, key, identity)
        if found is None:
            scale = torch.from_numpy(np.random.default_rng(start).random((count, 1), dtype=np.float32) + 0.5)
            found = parts.write(place, key, p[:count], (h[:count] * scale).half().numpy(), None, identity)
        made.append(found)
    parts.finish(place, made)
    return path


class Timed:
    """Notes when the shards had read their rows and what was said to them."""

    def __init__(self, shards: Any) -> None:
        self.shards, self.sizes, self.device = shards, shards.sizes, shards.device
        self.rounds, self.ready_at = 0, 0.0

    def ask(self, message: Any, arguments: Mapping[int, tuple[Any, ...]]) -> Mapping[int, Any]:
        answers: Mapping[int, Any] = self.shards.ask(message, arguments)
        self.rounds += message is Shard.survivors
        if message is Shard.segments and not self.ready_at:
            self.ready_at = time.perf_counter()
        return answers


def memory() -> dict[str, float]:
    """Megabytes of this process: the most it ever had with the pages of files that are mapped, and what is its own now."""
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"peak megabytes": peak, "own megabytes": int(own.split()[1]) / 1024}


def selected(path: Path, picks: int, make: Callable[[Any, Any], Any]) -> tuple[Any, dict[str, float]]:
    """The picks, over the shards that `make` makes, and what they cost."""
    seen: list[Timed] = []

    class Place:
        def shards(self, rows: Any, build: Any) -> Timed:
            seen.append(Timed(make(rows, build)))
            return seen[-1]

    start = time.perf_counter()
    ids = badge.select_from(badge.Outputs.load(path).map(lambda rows: Placed(rows, Place())), picks)
    end, (timed,) = time.perf_counter(), seen
    told = {"seconds": end - start, "seconds until rows were read": timed.ready_at - start, "rounds": timed.rounds}
    shards = timed.shards
    if isinstance(shards, RayShards):
        told |= {"megabytes from shards": shards.received / 1e6, "megabytes to shards": shards.sent / 1e6}
        found = shards.ray.get([actor.__ray_call__.remote(lambda host: memory()) for actor in shards.actors])
        told |= {f"{key} of the largest shard": max(one[key] for one in found) for key in found[0]}
        shards.close()
    return ids, told


def measure_select(ray: Any, path: Path, picks: int, repeats: int, only_ray: bool = False) -> dict[str, Any]:
    """Both ways in turn on one pool; the ratio is the median over pairs of runs."""
    torch.set_num_threads(2)
    with RayPlace(ray, 2, Resources()) as place:
        return _measured(path, picks, repeats, {"ray": place.shards} | ({} if only_ray else {"here": Here}))


def _measured(path: Path, picks: int, repeats: int, ways: Mapping[str, Callable[[Any, Any], Any]]) -> dict[str, Any]:
    told: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    ids: list[Any] = []
    for repeat in range(repeats):
        for name in sorted(ways, reverse=bool(repeat % 2)):
            found, numbers = selected(path, picks, ways[name])
            ids.append(found)
            told[name].append(numbers)
    first = {name: runs[0]["seconds"] for name, runs in told.items()}
    told = {name: runs[1:] or runs for name, runs in told.items()}
    result: dict[str, Any] = {name: _medians(runs) for name, runs in told.items()}
    result["seconds of the first"] = first
    result["same picks"] = all(bool((found == ids[0]).all()) for found in ids)
    if "here" in ways:
        pairs = list(zip(told["ray"], told["here"], strict=True))
        result["ratio"] = statistics.median(a["seconds"] / b["seconds"] for a, b in pairs)
        result["ratio of the rounds"] = statistics.median(_rounds(a) / _rounds(b) for a, b in pairs)
    return result


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def _rounds(numbers: dict[str, float]) -> float:
    return numbers["seconds"] - numbers["seconds until rows were read"]


def measure_predict(rows: int, repeats: int) -> dict[str, Any]:
    """`badge.cluster.predict` of an MLP on two workers over `badge.predict(out=)` on two threads."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, CLASSES))
    pool = torch.randn(rows, 128)
    torch.set_num_threads(2)
    told: dict[str, list[float]] = {"ray": [], "here": []}
    for repeat in range(repeats + 1):
        for name in sorted(told, reverse=bool(repeat % 2)):
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                if name == "ray":
                    badge.cluster.predict(net, pool, folder, batch_size=1024, workers=2)
                else:
                    badge.predict(net, pool, batch_size=1024, out=folder)
                if repeat:  # the first pair warms up: the workers import torch
                    told[name].append(time.perf_counter() - start)
    ratio = statistics.median(a / b for a, b in zip(told["ray"], told["here"], strict=True))
    return {name: statistics.median(seconds) for name, seconds in told.items()} | {"ratio": ratio}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["select", "predict"])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--embedding", type=int, default=512)
    parser.add_argument("--picks", type=int, nargs="+", default=[1_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["ray"], help="not on one process, for pools that are too large for it")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args(arguments)
    with connected() as ray:
        ray.get(ray.remote(lambda: None).remote())
        if given.what == "predict":
            print(json.dumps(measure_predict(given.rows, given.repeats)))
            return
        path = make_pool(given.folder, given.rows, given.embedding)
        for picks in given.picks:
            result = measure_select(ray, path, picks, given.repeats, given.only == "ray")
            driver = {f"{key} of this process": value for key, value in memory().items()}
            about = {"rows": given.rows, "embedding": given.embedding, "picks": picks}
            print(json.dumps({**about, **result, **driver}), flush=True)


if __name__ == "__main__":
    main()
