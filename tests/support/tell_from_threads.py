"""Run by tests/learner: threads that tell one learner while another asks and trains. Not a test module.

`python tell_from_threads.py FOLDER --times 10000`: 8 threads tell, relabel or skip one id at a time, 10,000 times each;
one asks; one reads. Nothing may raise, nothing told may be missing from the file, and the journal must open again.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from small_loop import arguments, learner, ledger_in

THREADS = 8


def main(folder: Path, times: int, seed: int) -> None:
    torch.set_num_threads(1)
    total = THREADS * times
    batch = max(50, total // 200)
    pool = np.random.default_rng(seed).normal(size=(total + 2 * batch, 2))
    truth = (pool[:, 0] > 0).astype(int)
    path = folder / "threads.jsonl"
    asked: queue.SimpleQueue[int] = queue.SimpleQueue()
    told: list[dict[int, int]] = [{} for _ in range(THREADS)]
    failures: list[BaseException] = []
    over = threading.Event()

    def tells(mine: dict[int, int]) -> None:
        for _ in range(times):
            id = asked.get()
            opened.tell([id], [int(truth[id])], by=threading.current_thread().name)
            mine[id] = int(truth[id])

    def asks() -> None:
        left = total
        while left > 0 and not over.is_set():
            for id in opened.ask(min(batch, left)).tolist():
                asked.put(id)
                left -= 1
            while asked.qsize() > batch // 2 and not over.is_set():
                time.sleep(0.001)

    def reads() -> None:
        while not over.is_set():
            assert not set(opened.pending[:20].tolist()) & opened.skipped.keys()
            repr(opened)
            time.sleep(0.01)

    def guarded(work: Callable[..., object], *arguments: object) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failures.append(error)
            over.set()

    with learner(path, pool, strategy="badge") as opened:
        started = time.perf_counter()
        tellers = [threading.Thread(target=guarded, args=(tells, mine), name=f"t{i}") for i, mine in enumerate(told)]
        others = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in (asks, reads)]
        for thread in [*others, *tellers]:
            thread.start()
        while any(thread.is_alive() for thread in tellers) and not failures:
            time.sleep(0.05)
        over.set()
        assert not failures, failures
        seconds = time.perf_counter() - started
        for thread in others:
            thread.join()
    acknowledged = {id: label for mine in told for id, label in mine.items()}
    assert len(acknowledged) == total, "one id was handed to two threads"
    ledger = ledger_in(path)
    lost = [id for id, label in acknowledged.items() if ledger.labels.get(id) != label]
    with learner(path, pool, strategy="badge") as again:
        assert again.labels == acknowledged
    asks_made = len(ledger.asks)
    print(
        json.dumps({"tells": total, "asks": asks_made, "lost": len(lost), "unreadable": 0, "seconds": round(seconds)})
    )
    assert not lost


if __name__ == "__main__":
    chosen = arguments(100, "how many tells of each thread")
    main(chosen.folder, chosen.times, chosen.seed)
