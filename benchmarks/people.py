"""What a person waits for: the first model's picks on the labelling page of a large pool, and a whole report.

The pool is generated: texts of twelve words, drawn by Zipf's law from a vocabulary, with some words that tell the class. A
simulated person answers over HTTP, three times a second, from the moment that the page is there. Where the file holds labels
a model picks at once; where it holds none, typical texts come first.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from badge.labelling.picking import TYPICAL
from benchmarks.bars import MB, Bar, Lab

__all__ = ["Waited", "first_model", "people", "seconds_of_a_report", "write_texts"]

TEXTS, WORDS, CLASSES, RATE = 200_000, 12, 8, 3.0
#: labels that the file holds, and answers of the person where it holds none: by then the whole pool is prepared
LABELS, ANSWERS = 200, 150
RESULTS = Path(__file__).parents[1] / "results" / "runs.csv.gz"


def people(lab: Lab, texts: int = TEXTS) -> list[Bar]:
    """The rows of the table: the page, its memory, a report."""
    lab.tell(f"badge label with {texts:,} texts, {LABELS} of them labelled")
    at_once = first_model(texts, LABELS)
    lab.tell(f"badge label with {texts:,} texts, none of them labelled")
    new = first_model(texts, 0, ANSWERS)
    lab.tell("badge report")
    report, runs, figures = seconds_of_a_report()
    return [
        Bar("people", f"badge label with {texts:,} texts, {LABELS} labelled: to the first pick of a model", "≤", 15, 5,
            at_once.model, "s", 1, f"the page answers after {at_once.page:.1f} s"),
        Bar("people", f"badge label with {texts:,} texts, none labelled: to the first typical text", "≤", 15, 5,
            new.typical, "s", 1, f"the first pick of a model is answer {new.answers}, at {RATE:.0f} a second"),
        Bar("people", f"badge label with {texts:,} texts: peak memory of the process", "≤", 1_000, None, new.peak / MB, "MB"),
        Bar("people", f"badge report of {runs:,} cells", "≤", 6, 3, report, "s", 2, f"{figures} figures"),
    ]  # fmt: skip


def write_texts(file: Path, texts: int, labels: int = 0, seed: int = 0) -> None:
    """A table of texts; every text has two words of its class, and some, evenly spaced, have a label."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number:x}" for number in range(50_000)])
    common = np.minimum(rng.zipf(1.3, size=(texts, WORDS - 2)) - 1, len(words) - 1)
    classes = np.arange(texts) % CLASSES
    told = classes[:, None] * 20 + rng.integers(20, size=(texts, 2))
    lines = [" ".join(a) + f" c{b[0]} c{b[1]}" for a, b in zip(words[common].tolist(), told.tolist(), strict=True)]
    named = set(np.linspace(0, texts - 1, labels).astype(int).tolist())
    rows = [f"{line},{f'class {classes[place]}' if place in named else ''}" for place, line in enumerate(lines)]
    file.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")


@dataclass
class Waited:
    """Seconds from the start of the command to the page, the first typical text (0: none came), the first pick of a model."""

    page: float = 0.0
    typical: float = 0.0
    model: float = 0.0
    answers: int = 0  #: before that pick
    peak: int = 0  #: bytes of the process


def first_model(texts: int, labels: int = 0, answers: int = 0) -> Waited:
    """What a person waits for, who gives at least `answers`."""
    with tempfile.TemporaryDirectory() as folder:
        write_texts(Path(folder) / "pool.csv", texts, labels)
        names = ",".join(f"class {number}" for number in range(CLASSES))
        start = time.perf_counter()
        call = [sys.executable, "-u", "-m", "badge", "label", "pool.csv", "--classes", names, "--label", "label"]
        with subprocess.Popen(
            [*call, "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            try:
                assert server.stdout is not None
                said = (re.search(r"https?://\S+", line) for line in server.stdout)
                url = next(found[0] for found in said if found)
                waited = _answer(url, start, answers)
                status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
            finally:
                server.kill()
    waited.peak = 1024 * int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]
    return waited


def _answer(url: str, start: float, answers: int, most: int = 600) -> Waited:
    """Answer until a model has picked an item, at least `answers` times."""
    home, found = url.split("/?")[0], Waited()
    who = {"client": "c", "name": "ann"}
    with httpx.Client(base_url=home, headers={"origin": home}, timeout=60) as client:
        for _ in range(600):  # the address is printed a moment before the server listens
            try:
                client.get(url)
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        task = client.post("/api/next", json=who).json()
        found.page = time.perf_counter() - start
        for number in range(most):
            now = time.perf_counter() - start
            if task["why"] == TYPICAL:
                found.typical = found.typical or now
            if task["guesses"] and not found.model:  # a model picked it
                found.model, found.answers = now, number + 1
            if found.model and number >= answers:
                return found
            time.sleep(1 / RATE)
            answer = {**who, "request": str(number), "id": task["id"], "shown": task["shown"], "label": _truth(task)}
            task = client.post("/api/answer", json=answer).json()["next"]
    raise RuntimeError(f"no model picked an item within {most} answers")


def _truth(task: dict[str, Any]) -> str:
    told = re.search(r"c(\d+) c\d+$", task["item"]["text"])
    assert told is not None
    return f"class {int(told[1]) // 20}"


def seconds_of_a_report() -> tuple[float, int, int]:
    """Seconds of `badge report` of the runs in `results/`; how many runs and figures these are."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        call = [sys.executable, "-m", "badge", "report", str(RESULTS), "--out", folder]
        subprocess.run(call, capture_output=True, check=True)
        seconds = time.perf_counter() - start
        figures = len(list((Path(folder) / "figures").glob("*.svg")))
    from badge.stats import load

    return seconds, len(load(RESULTS).runs), figures
