"""One person at the labelling page, at a steady rate, over HTTP: how many answers were picks, and what they are worth.

    python tests/support/simulate_person.py banking77.jsonl.xz --rate 3 --answers 300 --seed 0
    python tests/support/simulate_person.py banking77.jsonl.xz --encoder hf:folder --strategy rand --out runs.jsonl
    python tests/support/simulate_person.py --table runs.jsonl

The file has a `text`, a `label` and a `split` in each line. The pool is the split "train", the rest tests. After the run the
labels are taken in the order given; the page's own model is trained on the first 25, 50, … of them, and tested. With --out
the result is appended to a file, and --table prints the tables of such a file. Other options go to `badge label`. The page
starts without kept embeddings, as on the first day.
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
    file: Path,
    rate: float,
    answers: int,
    strategy: str | None,
    seed: int,
    encoder: str,
    options: list[str],
    step: int = 25,
) -> dict[str, Any]:
    with lzma.open(file, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    pool = [row for row in rows if row["split"] == "train"]
    names = sorted({row["label"] for row in rows})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pool.jsonl").write_text("\n".join(json.dumps({"text": row["text"]}) for row in pool) + "\n")
        (Path(folder) / "classes.txt").write_text("\n".join(map(str, names)) + "\n")
        asked = ("--encoder", encoder, "--seed", str(seed), *(() if strategy is None else ("--strategy", strategy)))
        server = Server(Path(folder), "pool.jsonl", "--classes", "classes.txt", *asked, *options, seconds=120)
        given, kinds, waits = label(server, pool, rate, answers)
        server.kill()
        events = list(badge.journal.read(Path(folder) / "pool.labels.jsonl"))
    first = next((place for place, kind in enumerate(kinds) if kind == "model"), None)
    after = kinds[first:] if first is not None else []
    return {
        "file": file.name,
        "strategy": next(event["strategy"] for event in events if event["event"] == "learner"),
        "model": "words" if encoder == "none" else "encoder",
        "seed": seed,
        "rate": rate,
        "answers": len(given),
        "picks": round(sum(kind != "gap" for kind in kinds) / len(kinds), 4),
        "first_model_pick": first,
        "picks_after_it": round(sum(kind == "model" for kind in after) / max(1, len(after)), 4),
        "asks": sum(event["event"] == "ask" for event in events),
        "first_item_seconds": round(waits[0], 2),
        "median_reply_ms": round(1000 * float(np.median(waits[1:])), 1),
        "accuracy": curve(rows, pool, names, given, step, None if encoder == "none" else encoder),
    }


def label(server: Server, pool: list[Any], rate: float, answers: int) -> tuple[list[int], list[str], list[float]]:
    """Answer as the file says; the items, how each was chosen (model, start, gap), and seconds per reply."""
    given, kinds, waits = [], [], []
    with httpx.Client(base_url=server.home, headers={"origin": server.home}, timeout=60) as client:
        opened = time.monotonic()
        client.get(server.url)
        who = {"client": "c", "name": "ann"}
        task = client.post("/api/next", json=who).json()
        started = time.monotonic()
        waits.append(started - opened)  # for the first item
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
    """Shares of answers that were picks by rate, and what picks save against random order: means over seeds."""
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    shares = ["| texts, model | strategy | answers a second | picks | of a model from answer |",
              "| --- | --- | --- | --- | --- |"]  # fmt: skip
    saved = ["| texts, model | labels | random order | picks | as good as random order after | labels saved |",
             "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for data, model in sorted({(one["file"], one["model"]) for one in runs}):
        here = [one for one in runs if (one["file"], one["model"]) == (data, model)]
        picked = [one for one in here if one["strategy"] != "rand"]
        name = f"{data.split('.')[0]}, {model}"
        for rate in sorted({one["rate"] for one in picked}):
            at = [one for one in picked if one["rate"] == rate]
            first = " and ".join(str(1 + one["first_model_pick"]) for one in at)
            each = " and ".join(f"{one['picks']:.1%}" for one in at)
            shares.append(f"| {name} | {at[0]['strategy']} | {rate:g} | {each} | {first} |")
        labels, ours = mean_curve(picked)
        _, theirs = mean_curve([one for one in here if one["strategy"] == "rand"])
        for place in range(3, len(labels), 4):
            needed = float(np.interp(theirs[place], np.maximum.accumulate(ours), labels, right=np.inf))
            reached = f"{needed:.0f} | {1 - needed / labels[place]:.0%}" if needed < np.inf else "not reached | –"
            saved.append(f"| {name} | {labels[place]} | {theirs[place]:.1%} | {ours[place]:.1%} | {reached} |")
    return "\n".join([*shares, "", *saved])


def mean_curve(runs: list[Any]) -> tuple[list[int], Any]:
    """Numbers of labels, and the mean accuracy of runs after each."""
    labels = sorted(map(int, runs[0]["accuracy"]))
    return labels, np.mean([[one["accuracy"][str(n)] for n in labels] for one in runs], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoder", default="none")
    parser.add_argument("--rate", type=float, default=1.0, help="answers a second")
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--strategy", help="default: what the page takes")
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
