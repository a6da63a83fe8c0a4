"""One person at the labelling page, at a steady rate, over HTTP: how many answers were picks, and what they are worth.

    python tests/support/simulate_person.py banking77.jsonl.xz --rate 3 --answers 300 --strategy badge --seed 0
    python tests/support/simulate_person.py banking77.jsonl.xz --encoder hf:folder --out runs.jsonl
    python tests/support/simulate_person.py --table runs.jsonl

The file has a `text`, a `label` and a `split` in each line. The pool is the split "train", the rest tests. After the run the
labels are taken in the order given; the page's own model is trained on the first 50, 100, … of them, and tested. With --out
the result is appended to a file, and --table prints a table of such a file. Other options go to `badge label`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import badge
from badge.labelling.models import trainer_of
from pages import Server


def run(
    file: Path, rate: float, answers: int, strategy: str, seed: int, encoder: str, options: list[str], step: int = 50
) -> dict[str, Any]:
    with lzma.open(file, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    pool = [row for row in rows if row["split"] == "train"]
    names = sorted({row["label"] for row in rows})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pool.jsonl").write_text("\n".join(json.dumps({"text": row["text"]}) for row in pool) + "\n")
        (Path(folder) / "classes.txt").write_text("\n".join(map(str, names)) + "\n")
        server = Server(Path(folder), "pool.jsonl", "--classes", "classes.txt", "--strategy", strategy,
                        "--seed", str(seed), "--encoder", encoder, *options, seconds=120)  # fmt: skip
        given, kinds, waits = label(server, pool, rate, answers)
        server.kill()
        asks = [e for e in badge.journal.read(Path(folder) / "pool.labels.jsonl") if e["event"] == "ask"]
    first = next((place for place, kind in enumerate(kinds) if kind == "model"), None)
    after = kinds[first:] if first is not None else []
    return {
        "file": file.name,
        "strategy": strategy,
        "model": "words" if encoder == "none" else "encoder",
        "seed": seed,
        "rate": rate,
        "answers": len(given),
        "picks": round(sum(kind != "gap" for kind in kinds) / len(kinds), 4),
        "first_model_pick": first,
        "picks_after_it": round(sum(kind == "model" for kind in after) / max(1, len(after)), 4),
        "asks": len(asks),
        "median_reply_ms": round(1000 * float(np.median(waits)), 1),
        "accuracy": curve(rows, pool, names, given, step, None if encoder == "none" else encoder),
    }


def label(server: Server, pool: list[Any], rate: float, answers: int) -> tuple[list[int], list[str], list[float]]:
    """Answer as the file says; the items, how each was chosen (model, start, gap), and seconds per reply."""
    given, kinds, waits = [], [], []
    with httpx.Client(base_url=server.home, headers={"origin": server.home}, timeout=60) as client:
        client.get(server.url)
        who = {"client": "c", "name": "ann"}
        task = client.post("/api/next", json=who).json()
        started = time.monotonic()
        for number in range(answers):
            while "id" not in task:
                time.sleep(0.02)
                task = client.post("/api/next", json=who).json()
            kinds.append("gap" if task["batch"] is None else "start" if "no model yet" in task["why"] else "model")
            given.append(int(task["id"]))
            time.sleep(max(0.0, started + (number + 1) / rate - time.monotonic()))
            body = {**who, "request": str(number), "id": task["id"], "shown": task["shown"]}
            before = time.monotonic()
            task = client.post("/api/answer", json={**body, "label": str(pool[given[-1]]["label"])}).json()["next"]
            waits.append(time.monotonic() - before)
    return given, kinds, waits


def curve(
    rows: list[Any], pool: list[Any], names: list[Any], given: list[int], step: int, encoder: str | None
) -> dict[int, float]:
    """Test accuracy of the page's model after the first labels."""
    texts = [row["text"] for row in pool] + [row["text"] for row in rows if row["split"] != "train"]
    truth = np.array([names.index(row["label"]) for row in [*pool, *(r for r in rows if r["split"] != "train")]])
    trainer = trainer_of("text", len(names), encoder)
    prepared = trainer.prepare(texts)
    found = {}
    for labels in range(step, len(given) + 1, step):
        ids = given[:labels]
        model = trainer.fit(prepared[ids], truth[ids], np.random.default_rng(0))
        said = np.asarray(model.classes_)[model(prepared[len(pool) :]).argmax(dim=1).numpy()]
        found[labels] = round(float((said == truth[len(pool) :]).mean()), 4)
    return found


def table(file: Path) -> str:
    """Accuracies by number of labels, badge against random order: means over seeds."""
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = []
    for data, model in sorted({(one["file"], one["model"]) for one in runs}):
        here = [one for one in runs if (one["file"], one["model"]) == (data, model)]
        for labels in sorted({int(n) for one in here for n in one["accuracy"]}):
            cells = []
            for strategy in ("badge", "rand"):
                found = [one["accuracy"][str(labels)] for one in here
                         if one["strategy"] == strategy and str(labels) in one["accuracy"]]  # fmt: skip
                cells.append(f"{np.mean(found):.1%} ({min(found):.1%} to {max(found):.1%})" if found else "–")
            lines.append(f"| {data.split('.')[0]}, {model} | {labels} | {' | '.join(cells)} |")
    return "\n".join(["| texts, model | labels | picks | random order |", "| --- | --- | --- | --- |", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoder", default="none")
    parser.add_argument("--rate", type=float, default=1.0, help="answers a second")
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--strategy", default="badge")
    parser.add_argument("--seed", type=int, default=0)
    given, options = parser.parse_known_args()
    asked = vars(given)
    out = asked.pop("out")
    if asked.pop("table"):
        print(table(given.file))
        return
    line = json.dumps(run(**asked, options=options))
    print(line)
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
