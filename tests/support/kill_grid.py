"""Run by test_kill.py: a grid that is killed and taken up again, over and over. Not a test module.

`python kill_grid.py FOLDER`: children are forked from this process, in which no thread was started, and killed at
random moments; then cells run in worker processes, of which the parent alone is killed.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from badge import journal
from badge.errors import JournalError
from badge.experiment import Cell, Display, Processes, Serial, run_cells

CELLS = [
    Cell("own_parts:blobs", "own_parts:slow", strategy, batch_size=10, initial=12, labels=42, seed=seed, max_epochs=5)
    for strategy, seed in (("badge", 0), ("albl", 0), ("rand", 0), ("rand", 1))
]
#: workers are forked too: spawned, each would import torch anew
FORK = multiprocessing.get_context("fork")
multiprocessing.get_context = lambda method=None: FORK  # type: ignore[assignment,misc]


def run(folder: Path, workers: int = 0) -> None:
    display = Display(CELLS, Console(file=io.StringIO()))
    failed = run_cells(CELLS, folder, Processes(workers) if workers else Serial(), display)
    assert not failed, failed


def content(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All journals, without seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a torn line is expected here
        return {
            path.name: [{k: v for k, v in e.items() if not k.endswith("seconds")} for e in journal.read(path)]
            for path in sorted(folder.glob("*.jsonl"))
        }


def check_only_grown(before: dict[str, list[dict[str, Any]]], after: dict[str, list[dict[str, Any]]]) -> None:
    """Nothing that was on disk at one killing is gone or different at the next."""
    for name, events in before.items():
        assert after[name][: len(events)] == events, f"{name} has lost something"


def killed_at_random(folder: Path, chance: random.Random) -> int:
    """Kill a run of the whole grid until it gets to its end; how often that was."""
    moments, known, longest = 0, content(folder), 0.15
    while True:
        pid = os.fork()
        if pid == 0:
            warnings.simplefilter("ignore")
            run(folder)
            os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        before = known
        check_only_grown(before, known := content(folder))
        longest *= 1.3 if known == before else 1.0  # on a busy machine nothing may come of so little time
        if os.WIFEXITED(status):
            return moments
        moments += 1


def workers_killed_with_their_parent(folder: Path, chance: random.Random) -> int:
    """A run in two worker processes, whose parent is killed; the workers must not go on and hold their journals."""
    pid = os.fork()
    if pid == 0:
        run(folder, workers=2)
        os._exit(0)
    while not size(folder):  # until it is at work
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.05))
    os.kill(pid, signal.SIGKILL)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    deadline = time.monotonic() + 60
    while any(map(held, folder.glob("*.jsonl"))):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)
    return int(killed)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    run(folder / "reference")
    reference, chance, moments = content(folder / "reference"), random.Random(0), 0
    while moments < 15:
        killed = folder / f"killed{moments}"
        moments += killed_at_random(killed, chance)
        assert content(killed) == reference, "killed at random: other picks or accuracies"

    parents = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for workers in (folder / "workers0", folder / "workers1"):
            parents += workers_killed_with_their_parent(workers, chance)
            run(workers)
            assert content(workers) == reference, "killed in workers: other picks or accuracies"
    print(json.dumps({"moments": moments, "parents": parents}))


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.jsonl"))


def held(path: Path) -> bool:
    try:
        journal.Journal(path).close()
    except JournalError:
        return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]))
