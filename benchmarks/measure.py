"""Time and memory of contenders, each measured in new processes with a fixed number of threads.

`seconds` runs its contenders in turn, repeat by repeat, in one process: a slow moment of the machine hits all alike. One
whose repeats would take longer than `BUDGET` seconds is repeated less often, and its record says how often it ran.
`memory` starts a process for one contender, and reads from the kernel how far it grew above its inputs.

    python -m benchmarks.measure request.json answer.json
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from badge.errors import BadgeError
from benchmarks.inputs import Input

__all__ = ["Memory", "Run", "Timing", "memory", "same_picks", "seconds"]

#: Seconds after which no further repeat of a contender is begun.
BUDGET = 600.0
REPEATS = 5
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """One contender on one input. `mapped`: the input is a float16 file on disk, mapped into memory."""

    contender: str
    input: Input
    k: int
    mapped: bool = False


@dataclass(frozen=True)
class Timing:
    """`seconds` of every repeat, scaled to k centres where the contender is a yardstick. `missing`: why there are none.

    `others`: how many cores the machine's other processes used meanwhile; on a quiet machine 0.
    """

    run: Run
    threads: int
    seconds: list[float] = field(default_factory=list)
    distinct: bool | None = None
    others: float | None = None
    missing: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds else float("nan")


@dataclass(frozen=True)
class Memory:
    """Growth of one process above its inputs: `peak` of resident memory, `anonymous` without what is mapped from files."""

    run: Run
    threads: int
    input_bytes: int = 0
    peak: int | None = None
    anonymous: int | None = None
    seconds: float | None = None
    missing: str | None = None


def seconds(runs: Sequence[Run], threads: int, repeats: int = REPEATS, budget: float = BUDGET) -> list[Timing]:
    """Times of all runs, in turn, in one process."""
    request = {"do": "seconds", "runs": [asdict(r) for r in runs], "repeats": repeats, "budget": budget}
    answers = _in_child(request, threads)
    return [Timing(run, threads, **answer) for run, answer in zip(runs, answers, strict=True)]


def memory(run: Run, threads: int) -> Memory:
    """Memory of one run, in a new process."""
    return Memory(run, threads, **_in_child({"do": "memory", "runs": [asdict(run)]}, threads))


def same_picks(runs: Sequence[Run], threads: int, seeds: int = 2) -> list[int]:
    """How many picks of each run, one by one, are those of the first run, over a few seeds: [seeds · k, …]."""
    counts: list[int] = _in_child({"do": "same_picks", "runs": [asdict(r) for r in runs], "seeds": seeds}, threads)
    return counts


def _in_child(request: dict[str, Any], threads: int) -> Any:
    """What a process with `threads` threads answers. It gets its libraries' thread numbers before they are loaded."""
    import badge

    home = str(Path(badge.__file__).parent.parent)
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory(prefix="badge-bench-") as folder:
        question, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        question.write_text(json.dumps({**request, "threads": threads}), encoding="utf-8")
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.measure", str(question), str(answer)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            raise BadgeError(f"the benchmark's process failed on {request['runs']}: {last}")
        return json.loads(answer.read_text(encoding="utf-8"))


def main(arguments: Sequence[str]) -> None:
    """The measuring process: a request in, an answer out, both files."""
    import torch

    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    torch.set_num_threads(request["threads"])
    runs = [Run(**{**r, "input": Input(**r["input"])}) for r in request["runs"]]
    answer: Any
    if request["do"] == "seconds":
        answer = _seconds(runs, request["repeats"], request["budget"])
    elif request["do"] == "memory":
        answer = _memory(runs[0])
    else:
        answer = _same_picks(runs, request["seeds"])
    Path(arguments[1]).write_text(json.dumps(answer), encoding="utf-8")


def _seconds(runs: Sequence[Run], repeats: int, budget: float) -> list[dict[str, Any]]:
    from benchmarks import inputs
    from benchmarks.contenders import CONTENDERS

    loaded = {of: inputs.load(of) for of in {run.input for run in runs}}  # each once: it may fill half the memory
    answers: list[dict[str, Any]] = []
    picks = []
    for run in runs:
        contender = CONTENDERS[run.contender]
        answers.append({"seconds": [], "distinct": None, "missing": contender.missing})
        picks.append(None if contender.missing else contender.prepare(loaded[run.input], run.k))
        if not contender.missing:
            contender.prepare(loaded[run.input], min(run.k, 8))(0)  # warms up: libraries, pages, thread pools
    quiet = _others()
    for repeat in range(repeats):
        order = range(len(runs)) if repeat % 2 == 0 else reversed(range(len(runs)))
        for i in order:
            pick, taken = picks[i], answers[i]["seconds"]
            if pick is None or (taken and sum(taken) * (1 + 1 / len(taken)) > budget):
                continue
            start = time.perf_counter()
            positions = pick(repeat)
            taken.append(time.perf_counter() - start)
            if positions is not None:
                answers[i]["distinct"] = len(np.unique(positions)) == runs[i].k and answers[i]["distinct"] is not False
    others = quiet()
    for run, answer in zip(runs, answers, strict=True):
        answer["others"] = others
        per = CONTENDERS[run.contender].per_columns
        answer["seconds"] = [s * run.k / per for s in answer["seconds"]] if per else answer["seconds"]
    return answers


def _same_picks(runs: Sequence[Run], seeds: int) -> list[int]:
    from benchmarks import inputs
    from benchmarks.contenders import CONTENDERS

    loaded = {of: inputs.load(of) for of in {run.input for run in runs}}
    counts = [0] * len(runs)
    for seed in range(seeds):
        found = [CONTENDERS[r.contender].prepare(loaded[r.input], r.k)(seed) for r in runs]
        for i, positions in enumerate(found):
            counts[i] += int((np.asarray(positions) == np.asarray(found[0])).sum())
    return counts


def _memory(run: Run) -> dict[str, Any]:
    from benchmarks import inputs
    from benchmarks.contenders import CONTENDERS

    contender = CONTENDERS[run.contender]
    if contender.missing:
        return {"missing": contender.missing}
    with tempfile.TemporaryDirectory(prefix="badge-bench-") as folder:
        outputs = inputs.write_memmap(run.input, Path(folder)) if run.mapped else inputs.load(run.input)
        # Libraries and thread pools are no part of a selection's memory.
        small = inputs.load(Input("isotropic", 256, run.input.c, run.input.d))
        contender.prepare(small, 4)(0)
        pick = contender.prepare(outputs, run.k)
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)  # else the selection grows into what is free in the heap, unseen
        before, start = _status(), time.perf_counter()
        with _watch() as peak:
            pick(0)
        taken = time.perf_counter() - start
        size = sum(t.numel() * t.element_size() for t in (outputs.probabilities, outputs.embeddings))
        if not before:
            return {"input_bytes": size, "seconds": taken, "missing": "memory is read from /proc, which is not there"}
        grown = {name: peak[name] - before[now] for name, now in (("VmHWM", "VmRSS"), ("RssAnon", "RssAnon"))}
        return {"input_bytes": size, "peak": grown["VmHWM"], "anonymous": grown["RssAnon"], "seconds": taken}


def _others() -> Callable[[], float | None]:
    """Starts a watch; what it returns tells how many cores were busy since then with other processes than this one."""

    def busy() -> float | None:
        try:
            line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        except OSError:
            return None
        user, nice, system, _, _, irq, softirq, steal = (int(x) for x in line.split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    before, mine, start = busy(), time.process_time(), time.monotonic()

    def since() -> float | None:
        after = busy()
        if before is None or after is None:
            return None
        ours, taken = time.process_time() - mine, max(time.monotonic() - start, 1e-9)
        return round(max(0.0, after - before - ours) / taken, 2)

    return since


def _status() -> dict[str, int]:
    """This process's memory in bytes, as Linux counts it; empty elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    pairs = (line.split(":") for line in lines if line.startswith(("VmHWM", "VmRSS", "RssAnon")))
    return {name: 1024 * int(value.split()[0]) for name, value in pairs}


@contextlib.contextmanager
def _watch() -> Iterator[dict[str, int]]:
    """The highest values of `_status` while the block runs. The kernel keeps that of VmHWM; RssAnon is looked at often."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak that loading left behind
    peak = _status()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.003):
            for name, value in _status().items():
                peak[name] = max(peak[name], value)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        for name, value in _status().items():
            peak[name] = max(peak[name], value)


if __name__ == "__main__":
    main(sys.argv[1:])
