"""Run by test_page_kill.py: a labelling page whose server is killed and started again, over and over. Not a test module.

`python kill_page.py FOLDER --times 1000`: one person answers over HTTP as fast as the server allows. It is killed with
SIGKILL at random moments, one time in five while it starts. Whatever it confirmed must be in the journal, once. Servers are
forked from this process, in which no thread was started.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import httpx
import sklearn.decomposition
import sklearn.feature_extraction.text
import torch
import uvicorn

import badge.labelling.command  # loaded here, a server that is forked need not
from badge.cli import main as badge_command
from pages import free_port
from small_loop import arguments, quietly_read

LOADED = (uvicorn, sklearn.decomposition, sklearn.feature_extraction.text, badge.labelling.command)
ITEMS = 300


def served(folder: Path, port: int) -> int:
    """The process number of a server that was started."""
    pid = os.fork()
    if pid:
        return pid
    warnings.simplefilter("ignore")  # a torn line is expected here
    os.chdir(folder)
    out = os.open("server.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.argv = ["badge", "label", "pool.txt", "--classes", "good,bad", "--batch-size", "20", "--port", str(port)]
    try:
        badge_command()
    finally:
        os._exit(1)


def answers(folder: Path, port: int, confirmed: list[tuple[str, str]], seconds: float) -> None:
    """Answer until the server is gone, `seconds` after its first reply; what it confirms is noted."""
    home, log = f"http://127.0.0.1:{port}", folder / "server.log"
    while not (link := re.search(r"http\S+token=\S+", log.read_text() if log.exists() else "")):
        time.sleep(0.01)
    with httpx.Client(base_url=home, headers={"origin": home}, timeout=None) as client:
        while True:
            try:
                client.get(link[0])
                break
            except httpx.ConnectError:
                time.sleep(0.01)
        if seconds:
            signal.setitimer(signal.ITIMER_REAL, seconds)
        me = {"client": "ann", "name": "ann"}
        task: dict[str, Any] = {}
        for number in range(10**9):
            while "id" not in task:
                task = client.post("/api/next", json=me).json()
                time.sleep(0.0 if "id" in task else 0.02)
            label = ("good", "bad")[int(task["id"]) % 2]
            body = {**me, "request": f"{os.getpid()}-{time.monotonic_ns()}-{number}", "label": label}
            reply = client.post("/api/answer", json={**body, "id": task["id"], "shown": task["shown"]})
            said = reply.json()
            if reply.status_code != 200:
                raise AssertionError(said)
            confirmed.append((str(said["id"]), said["label"]))
            task = said["next"]


def check(journal: Path, confirmed: list[tuple[str, str]]) -> int:
    """Everything confirmed is in the journal, and nothing twice; how many labels it holds."""
    tells = [event for event in quietly_read(journal) if event["event"] == "tell"]
    told = [(str(id), label) for e in tells for id, label in zip(e["ids"], e["labels"], strict=True)]
    assert len(told) == len({id for id, _ in told}), "an item was labelled twice"
    assert set(confirmed) <= set(told), f"{set(confirmed) - set(told)} were confirmed and are lost"
    return len(told)


class Killed(Exception):
    """The time of the server is over."""


def main(folder: Path, times: int, seed: int) -> None:
    torch.set_num_threads(1)
    chance, port, kills, labels, journals = random.Random(seed), free_port(), 0, 0, 1
    (folder / "pool.txt").write_text("".join(f"film {i}, {('fine', 'dull')[i % 2]}\n" for i in range(ITEMS)))
    confirmed: list[tuple[str, str]] = []

    def over(number: int, frame: object) -> None:
        os.kill(pid, signal.SIGKILL)
        raise Killed

    signal.signal(signal.SIGALRM, over)
    while kills < times:
        (folder / "server.log").unlink(missing_ok=True)
        pid = served(folder, port)
        while_it_starts = chance.random() < 0.2
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.01, 1.5) if while_it_starts else 60)
        try:
            answers(folder, port, confirmed, 0 if while_it_starts else chance.uniform(0.01, 0.6))
        except Killed:
            kills += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.kill(pid, signal.SIGKILL)  # whatever went wrong, nobody waits for a server that lives
            os.waitpid(pid, 0)
        if check(folder / "pool.labels.jsonl", confirmed) > ITEMS // 2:
            labels, journals = labels + len(confirmed), journals + 1
            confirmed.clear()
            for file in folder.glob("pool.labels*"):
                file.unlink()
    print(
        json.dumps({"kills": kills, "journals": journals, "confirmed": labels + len(confirmed), "lost": 0, "twice": 0})
    )


if __name__ == "__main__":
    chosen = arguments(100, "how many SIGKILLs")
    main(chosen.folder, chosen.times, chosen.seed)
