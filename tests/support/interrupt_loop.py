"""Run by test_kill.py: a loop that is interrupted (SIGINT, Ctrl-C) over and over and goes on. Not a test module.

`python interrupt_loop.py FOLDER --times 10000`: signals come at random moments of asks, tells, relabels and skips. After
each, the same learner must hold what the file holds and nothing that it has acknowledged may be missing; at the end of
each loop the journal is opened again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import torch

import badge
from small_loop import TRUTH, X, arguments, learner, ledger_in

#: a signal counts while this is set: the checks in between are not under attack
armed = False


def interrupted(number: int, frame: object) -> None:
    if armed:
        raise KeyboardInterrupt


class Attacker(threading.Thread):
    """Sends this process SIGINT at random moments."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.chance, self.over = chance, False

    def run(self) -> None:
        while not self.over:
            time.sleep(self.chance.uniform(0, 0.004))
            os.kill(os.getpid(), signal.SIGINT)


def step(opened: badge.ActiveLearner, chance: random.Random, told: dict[int, int]) -> None:
    """One call; what it has returned from is noted in `told`."""
    pending = opened.pending
    if not len(pending):
        opened.unskip(opened.skipped)  # what was interrupted between skip and unskip
        opened.ask(6)
        return
    id = int(pending[0])
    what = chance.random()
    if what < 0.1:
        opened.skip([id], "unclear")
        opened.unskip([id])
    elif what < 0.2 and told:
        again = chance.choice(list(told))
        wrong = 1 - told[again]
        del told[again]  # unknown until it returns
        opened.relabel(again, wrong)
        told[again] = wrong
    else:
        opened.tell([id], [int(TRUTH[id])])
        told[id] = int(TRUTH[id])


def check(path: Path, opened: badge.ActiveLearner, told: dict[int, int]) -> None:
    """The learner holds what the file holds, and all that was acknowledged."""
    held = opened.labels
    ledger = ledger_in(path)
    assert held == {id: ledger.classes.decode(code) for id, code in ledger.labels.items()}, "state and file differ"
    assert opened.pending.tolist() == list(ledger.pending) and opened.skipped == ledger.skipped
    assert all(held.get(id) == label for id, label in told.items()), "an acknowledged label is lost"


def main(folder: Path, times: int, seed: int) -> None:
    global armed
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, interrupted)
    chance, interrupts, loops = random.Random(seed), 0, 0
    attacker = Attacker(random.Random(seed + 1))
    attacker.start()
    while interrupts < times:
        path, loops = folder / f"loop{loops}.jsonl", loops + 1
        opened, told = learner(path, seed=loops), dict[int, int]()
        while len(opened.labels) < 40:
            try:
                armed = True
                step(opened, chance, told)
                armed = False
            except KeyboardInterrupt:
                armed = False
                interrupts += 1
                check(path, opened, told)
        check(path, opened, told)
        opened.close()
        with learner(path, seed=loops) as again:
            check(path, again, told)
            assert len(np.unique(np.concatenate(again.batches))) <= len(X)
        path.unlink()
    attacker.over = True
    print(json.dumps({"interrupts": interrupts, "loops": loops, "lost": 0, "unreadable": 0, "state off the file": 0}))


if __name__ == "__main__":
    chosen = arguments(100, "how many SIGINTs")
    main(chosen.folder, chosen.times, chosen.seed)
