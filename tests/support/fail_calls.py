"""Run by test_attacks.py: a loop whose disk fails. Not a test module.

`python fail_calls.py FOLDER --times 600`: a system call of the journal fails, and with it some of those that follow, the
ones that take back what was written among them. Every error must be a JournalError; a call that was refused must not
count, neither in the learner nor in the file when it is opened again; and a call that has returned must.
"""

from __future__ import annotations

import errno
import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import torch

import badge
from badge.errors import JournalError
from badge.journal import file as journal
from small_loop import TRUTH, arguments, learner, ledger_in

CALLS = ("write", "fsync", "ftruncate", "lseek", "fstat")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.EROFS)


class Disk:
    """The journal's view of the system: from the `first`-th call on, each call fails with probability `share`."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.count, self.first, self.last, self.share = chance, 0, 0, 0, 0.0
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*given: Any) -> Any:
            self.count += 1
            if self.first <= self.count < self.last and self.chance.random() < self.share:
                self.failed += 1
                if name == "write" and self.chance.random() < 0.7:
                    real(given[0], bytes(given[1])[: self.chance.randrange(len(given[1]) + 1)])
                number = self.chance.choice(ERRORS)
                raise OSError(number, os.strerror(number))
            return real(*given)

        return call


def step(opened: badge.ActiveLearner, chance: random.Random, told: dict[int, int]) -> None:
    """One call; what it has returned from is noted in `told`."""
    pending = opened.pending
    if not len(pending):
        opened.ask(6)
    elif told and chance.random() < 0.2:
        again = chance.choice(list(told))
        opened.relabel(again, 1 - told[again])
        told[again] = 1 - told[again]
    else:
        id = int(pending[0])
        opened.tell([id], [int(TRUTH[id])])
        told[id] = int(TRUTH[id])


def main(folder: Path, times: int, seed: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # a torn line is expected here
    chance = random.Random(seed)
    disk = Disk(chance)
    journal.os = disk  # type: ignore[attr-defined, assignment]
    refused = loops = 0
    while disk.failed < times:
        path, told = folder / f"loop{loops}.jsonl", dict[int, int]()
        loops += 1
        opened = learner(path, seed=loops, strategy="rand")
        while len(opened.labels) < 30:
            disk.first = disk.count + chance.randrange(12)
            disk.last, disk.share = disk.first + chance.choice([1, 1, 2, 3, 50]), chance.choice([1.0, 0.5])
            try:
                for _ in range(3):
                    step(opened, chance, told)
            except JournalError:
                refused += 1
            disk.last = 0
            ask_of_file = chance.random() < 0.3
            if ask_of_file:  # as if the process had ended here
                opened.close()
                opened = learner(path, seed=loops, strategy="rand")
            assert opened.labels == told, "a call that was refused counts, or one that returned does not"
        opened.close()
        assert ledger_in(path).labels == told, "the file holds something else"
        for file in (path, path.with_name(f"{path.name}.last")):
            file.unlink()
    print(json.dumps({"failed calls": disk.failed, "refused": refused, "loops": loops, "foreign": 0, "counted": 0}))


if __name__ == "__main__":
    chosen = arguments(600, "how many failing system calls")
    main(chosen.folder, chosen.times, chosen.seed)
