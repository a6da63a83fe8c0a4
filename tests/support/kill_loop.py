"""Run by test_kill.py: a loop that is killed and taken up again, over and over. Not a test module.

`python kill_loop.py FOLDER --times 10000`: every journal system call of one loop in turn is the one at which a child
process dies, and then random moments, until 10,000 children were killed. Children are forked from this process, in which no
thread was started.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from small_loop import TRUTH, arguments, learner, quietly_read


def loop(path: Path | None, acknowledge: Callable[[str, list[int]], None] = lambda kind, ids: None) -> list[list[int]]:
    """To 30 labels in batches of 6, told in two parts; the batches. Takes up where the journal stops."""
    with learner(path) as opened:
        while len(opened.labels) < 30:
            if not len(opened.pending):
                acknowledge("ask", opened.ask(6).tolist())
            part = opened.pending[:4]
            opened.tell(part, TRUTH[part])
            acknowledge("tell", part.tolist())
        return [batch.tolist() for batch in opened.batches]


def in_child(work: Callable[[], None], delay: float | None) -> bool:
    """Fork, work, and be killed after `delay` seconds; whether the child got to the end."""
    pid = os.fork()
    if pid == 0:
        warnings.simplefilter("ignore")  # a torn line is expected here
        work()
        os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed: {status}"
    return os.WIFEXITED(status)


def acknowledging(path: Path) -> Callable[[str, list[int]], None]:
    """Notes in a file beside the journal what ask and tell returned from."""

    def note(kind: str, ids: list[int]) -> None:
        with path.with_suffix(".ack").open("a", encoding="utf-8") as file:
            file.write(json.dumps([kind, ids]) + "\n")

    return note


def dies_at(step: int) -> None:
    """Make the process kill itself at its `step`-th system call on a journal; a write gets half-way."""
    count = iter(range(10**9))

    def deadly(name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if next(count) == step:
                if name == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments)

        return call

    for name in ("write", "fsync", "ftruncate", "lseek"):
        setattr(os, name, deadly(name, getattr(os, name)))


def check_nothing_lost(path: Path) -> None:
    """Every id that ask or tell returned from is in the journal."""
    events = quietly_read(path)
    held = {kind: {id for event in events if event["event"] == kind for id in event["ids"]} for kind in ("ask", "tell")}
    notes = path.with_suffix(".ack")
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []:
        kind, ids = json.loads(line)
        assert set(ids) <= held[kind], f"{kind} of {ids} was lost"


def same_picks(path: Path, reference: list[list[int]], when: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert loop(path) == reference, f"killed at {when}: other picks"
    for file in (path, path.with_suffix(".ack"), path.with_name(f"{path.name}.last")):
        file.unlink(missing_ok=True)


def main(folder: Path, times: int, seed: int) -> None:
    torch.set_num_threads(1)
    reference = loop(None)
    steps = 0
    for step in range(10**9):  # every system call in turn
        path = folder / f"step{step}.jsonl"
        finished = in_child(lambda step=step, path=path: (dies_at(step), loop(path, acknowledging(path))), None)
        check_nothing_lost(path)
        same_picks(path, reference, f"system call {step}")
        if finished:
            break
        steps += 1
    started = time.perf_counter()
    in_child(lambda: loop(folder / "timed.jsonl"), None)
    whole = time.perf_counter() - started
    moments, trial, chance = 0, 0, random.Random(seed)
    while steps + moments < times:
        path, trial = folder / f"random{trial}.jsonl", trial + 1
        while not in_child(lambda path=path: loop(path, acknowledging(path)), chance.uniform(0, 0.7 * whole)):
            moments += 1
            whole *= 1.02  # how long a loop takes changes with what else the machine does
            check_nothing_lost(path)
        whole /= 1.05
        same_picks(path, reference, "a random moment")
    print(json.dumps({"steps": steps, "moments": moments, "loops": steps + trial, "lost": 0, "other picks": 0}))


if __name__ == "__main__":
    chosen = arguments(100, "how many SIGKILLs")
    main(chosen.folder, chosen.times, chosen.seed)
