"""Threads, forks and Ctrl-C: nothing told is lost, and the state is what the file says."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from badge.errors import InputError, JournalError
from forks import printed
from small_loop import TRUTH, Trainer, X, learner, ledger_in, quietly_read

SUPPORT = Path(__file__).parents[1] / "support"


def script(name: str, folder: Path, times: int) -> dict[str, int]:
    """A hundredth of the long run that docs/loop.md reports; in memory where there is such a place, to spare the disk."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else folder
    with tempfile.TemporaryDirectory(dir=place) as quick:
        return printed(SUPPORT / name, quick, "--times", times)


def test_eight_threads_tell_one_learner(tmp_path: Path) -> None:
    done = script("tell_from_threads.py", tmp_path, 100)
    assert done["tells"] == 800 and done["lost"] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_loop_interrupted_at_random(tmp_path: Path) -> None:
    assert script("interrupt_loop.py", tmp_path, 100)["interrupts"] >= 100


def test_a_disk_that_fails(tmp_path: Path) -> None:
    done = script("fail_calls.py", tmp_path, 60)
    assert done["failed calls"] >= 60 and done["refused"] > 20


def test_mutated_journals(tmp_path: Path) -> None:
    done = script("mutate_journal.py", tmp_path, 1000)
    assert done["refused, line named"] == done["repaired and opened"] + done.get("no sound line left", 0)
    assert done["repaired and opened"] > 700 and done["mutated"] == 1000


def test_asks_from_four_threads_hand_out_each_id_once(tmp_path: Path) -> None:
    with learner(tmp_path / "j.jsonl", initial={0: 0, 1: 1, 2: 0, 3: 1}) as opened:
        got: list[int] = []
        threads = [threading.Thread(target=lambda: got.extend(opened.ask(5).tolist())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == len(set(got)) == 20 and sorted(got) == sorted(opened.pending.tolist())
    with learner(tmp_path / "j.jsonl") as again:
        assert sorted(again.pending.tolist()) == sorted(got)


class Waiting(Trainer):
    """Trains until it is let go."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.started, self.go = threading.Event(), threading.Event()

    def fit(self, *arguments: Any) -> Any:
        self.started.set()
        assert self.go.wait(30)
        return super().fit(*arguments)


def test_an_ask_that_trains_does_not_keep_others_from_telling(tmp_path: Path) -> None:
    initial = {int(i): int(TRUTH[i]) for i in range(8)}
    with learner(tmp_path / "plain.jsonl", initial=initial, strategy="badge") as plain:
        reference = plain.ask(40).tolist()
    with learner(tmp_path / "j.jsonl", initial=initial, strategy="badge") as opened:
        opened.trainer = trainer = Waiting()
        got: list[int] = []
        asking = threading.Thread(target=lambda: got.extend(opened.ask(40).tolist()))
        asking.start()
        assert trainer.started.wait(30)
        early, skipped = reference[:3], reference[3:5]
        opened.tell(early, TRUTH[early], unasked=True)  # all of these return while it trains
        opened.skip(skipped, "blurred")
        opened.relabel(0, 1 - int(TRUTH[0]))
        assert len(opened.labels) == 11 and list(opened.skipped) == skipped and not len(opened.pending)
        assert len(opened.history) == 12
        trainer.go.set()
        asking.join(30)
        assert got == reference[5:]  # the picks of the labels that it began with, without those taken meanwhile
        ask = quietly_read(tmp_path / "j.jsonl")[-1]
        assert (ask["k"], ask["labels"], ask["ids"]) == (40, 1, got)
        why = opened.explain()  # by the model that picked, which knew 8 labels and the old one of id 0
    with learner(tmp_path / "j.jsonl", strategy="badge") as again:
        assert np.allclose(again.explain().norm, why.norm)
        assert again.pending.tolist() == got


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_learner_can_be_read_and_not_written(tmp_path: Path) -> None:
    with learner(tmp_path / "j.jsonl") as opened:
        ids = opened.ask(4)
        held, leave = threading.Event(), threading.Event()

        def hold() -> None:
            with opened._book.lock():
                held.set()
                leave.wait(30)

        holder = threading.Thread(target=hold)
        holder.start()
        assert held.wait(30)
        before = (tmp_path / "j.jsonl").read_bytes()
        child = os.fork()  # while another thread holds the lock
        if child == 0:
            code = 9
            try:
                same = opened.pending.tolist() == ids.tolist()
                refused = 0
                for call in (lambda: opened.tell(ids, [0] * 4), lambda: opened.ask(1), lambda: opened.skip(ids)):
                    try:
                        call()
                    except JournalError as error:
                        refused += "belongs to process" in str(error)
                code = 0 if same and refused == 3 else 1
            finally:
                os._exit(code)
        deadline = time.monotonic() + 30
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
            time.sleep(0.01)
        leave.set()
        holder.join()
        assert ended[0] == child and os.waitstatus_to_exitcode(ended[1]) == 0
        assert (tmp_path / "j.jsonl").read_bytes() == before
        opened.tell(ids, TRUTH[ids])
    assert len(ledger_in(tmp_path / "j.jsonl").labels) == 4


def interrupting(at: int, work: Any) -> int | None:
    """Raise KeyboardInterrupt at the `at`-th line of badge's journal and learner that `work` runs; None: it got through."""
    count = 0

    def trace(frame: FrameType, kind: str, argument: Any) -> Any:
        nonlocal count
        name = frame.f_code.co_filename
        if "badge/journal" not in name and "badge/learner" not in name:
            return None
        if kind == "line":
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return at
    finally:
        sys.settrace(None)
    return None


@pytest.mark.parametrize("call", ["tell", "relabel", "ask", "skip"])
def test_ctrl_c_at_every_line_leaves_the_state_of_the_file(call: str, tmp_path: Path) -> None:
    at, landed = 1, 0
    while True:
        path = tmp_path / f"{at}.jsonl"
        opened = learner(path, initial={0: 0, 1: 1}, strategy="rand")
        ids = opened.ask(3).tolist()
        calls = {
            "tell": lambda ids=ids, opened=opened: opened.tell(ids[:1], [1]),
            "relabel": lambda opened=opened: opened.relabel(0, 1),
            "ask": lambda opened=opened: opened.ask(3),
            "skip": lambda ids=ids, opened=opened: opened.skip(ids[:1]),
        }
        count = len(quietly_read(path))
        interrupted = interrupting(at, calls[call])
        labels, pending, skipped = opened.labels, opened.pending.tolist(), opened.skipped
        ledger = ledger_in(path)
        assert (labels, pending, skipped) == (ledger.labels, list(ledger.pending), ledger.skipped), at
        landed += bool(interrupted) and ledger.number > count
        opened.ask(2)  # and the loop goes on
        opened.tell([id for id in ids if id not in opened.labels and id not in opened.skipped][:1], [0])
        opened.close()
        learner(path, initial={0: 0, 1: 1}, strategy="rand").close()
        path.unlink()
        if interrupted is None:
            break
        at += 3
    assert landed > 3  # among them interrupts between the append and the update


def test_a_label_that_is_in_no_file_is_an_error(tmp_path: Path) -> None:
    with learner(tmp_path / "j.jsonl") as opened:
        ids = opened.ask(4)
        opened.tell(ids[:1], [0])
        (tmp_path / "j.jsonl").rename(tmp_path / "moved.jsonl")
        with pytest.raises(JournalError, match="it is gone"):
            opened.tell(ids[1:2], [0])
        assert list(opened.labels) == [ids[0]]
        (tmp_path / "moved.jsonl").rename(tmp_path / "j.jsonl")
        opened.tell(ids[1:2], [0])
    with learner(tmp_path / "j.jsonl") as again, pytest.raises(InputError, match="was told again"):
        again.tell(ids[:1], [1])
    assert len(X) == 50
