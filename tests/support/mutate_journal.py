"""Run by test_mutated.py: journals with a byte, a line or a block changed. Not a test module.

`python mutate_journal.py FOLDER --times 100000`: each mutated journal must be refused with the number of a line, or be
the same journal. A third lies there without the file beside it that tells of the last line, and a third with that file
mutated too: then opening says so, the last line may be dropped with a warning where it was cut, and whole lines missing at
the end are a journal that is shorter. Whatever is refused is then repaired: every line that the mutation has not touched
must be in the repaired journal, and the file as it was beside it.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import Counter
from pathlib import Path

import torch

from badge.errors import JournalError
from badge.journal import Journal, records_of, repair
from badge.journal.events import Header, Record
from badge.learner.opening import recorded_ledger
from small_loop import TRUTH, arguments, learner


def make(path: Path) -> bytes:
    """A journal with an event of every kind that a loop writes."""
    with learner(path, initial={0: 0, 1: 1}) as opened:
        for _ in range(3):
            ids = opened.ask(4)
            opened.tell(ids, TRUTH[ids], by="ann")
        opened.relabel(ids[0], 1 - int(TRUTH[ids[0]]))
        ids = opened.ask(3, people=2)
        opened.tell(ids, [0, 1, 0], by="ann")
        opened.tell(ids[:2], [0, 0], by="ben")
        opened.skip(opened.candidates[:2], "unclear")
        opened.unskip(opened.skipped)
        opened.release(opened.pending[:1])
        opened.add_class()
        opened.use("marg")
        opened.tell(opened.candidates[:1], [2], unasked=True)
    return path.read_bytes()


def mutated(whole: bytes, chance: random.Random) -> tuple[str, bytes]:
    """One change, and what it is called."""
    at = chance.randrange(len(whole))
    lines = whole.splitlines(keepends=True)
    i, j = chance.sample(range(len(lines)), 2)
    kind = chance.choice(
        ["flip", "byte", "delete", "insert", "zeros", "cut", "missing", "doubled", "swapped", "moved", "crlf", "typo"]
    )
    if kind == "flip":
        return kind, whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :]
    if kind == "byte":
        return kind, whole[:at] + bytes([chance.randrange(256)]) + whole[at + 1 :]
    if kind == "delete":
        return kind, whole[:at] + whole[at + chance.choice([1, 1, 2, 20, 300]) :]
    if kind == "insert":
        return kind, whole[:at] + chance.choice([b"\n", b"x", b"{}", b" ", whole[at : at + 40]]) + whole[at:]
    if kind == "zeros":
        return kind, whole[:at] + b"\0" * len(whole[at : at + 64]) + whole[at + 64 :]
    if kind == "cut":
        return kind, whole[:at]
    if kind == "missing":
        del lines[i]
    elif kind == "doubled":
        lines.insert(j, lines[i])
    elif kind == "swapped":
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == "moved":
        lines.insert(j, lines.pop(i))
    elif kind == "crlf":
        lines[i] = lines[i][:-1] + b"\r\n"
    else:
        lines[i] = lines[i].replace(b'"event":"t', b'"event":"T').replace(b'"labels":', b'"lables":')
    return kind, b"".join(lines)


def state(events: list[Record], path: Path) -> tuple:
    ledger = recorded_ledger(events, path)
    return ledger.labels, ledger.pending, ledger.skipped, ledger.votes, ledger.classes.names, ledger.strategy


def main(folder: Path, times: int, seed: int) -> None:
    torch.set_num_threads(1)
    whole, path = make(folder / "sound.jsonl"), folder / "mutated.jsonl"
    beside, last = path.with_name("mutated.jsonl.last"), (folder / "sound.jsonl.last").read_bytes()
    events = records_of(folder / "sound.jsonl")
    ends = [0]
    for line in whole.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    states = {n: state(events[:n], path) for n in range(1, len(events) + 1)}
    numbers = {line: n for n, line in enumerate(whole.splitlines(), start=1)}
    chance, found = random.Random(seed), Counter[str]()
    for _ in range(times):
        kind, data = mutated(whole, chance)
        path.write_bytes(data)
        company = chance.choice(["sound", "missing", "mutated"])
        noted = last if company == "sound" else mutated(last + last, chance)[1]
        if company == "missing":
            beside.unlink(missing_ok=True)
        else:
            beside.write_bytes(noted)
        alone = company == "missing" or noted != last
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with Journal(path) as opened:
                    held = list(opened.records)
            except JournalError as error:
                assert re.search(r", line \d+: ", str(error)), f"{kind}: no line in {error}"
                found["refused, line named"] += 1
                repaired = check_repair(path, data, numbers, events)
                found["repaired and opened" if repaired else "no sound line left"] += 1
                continue
        assert held == events[: len(held)], f"{kind}: a silent change"
        said = [str(warning.message) for warning in caught]
        assert not (alone and held) or any("mutated.jsonl.last " in text for text in said), f"{kind}: {company}, silent"
        torn = any("was interrupted" in text for text in said)
        if 0 < len(held) < len(events):
            assert state(held, path) == states[len(held)]
        if len(held) == len(events) and not torn:
            found["the same journal"] += 1
        elif torn:
            assert alone or len(held) == len(events), f"{kind}: taken for a torn write"
            found["torn last write, with a warning"] += 1
        else:
            assert alone, f"{kind}: lost silently"
            assert data == whole[: ends[len(held)]] or data == whole[: ends[len(held)] - 1], f"{kind}: lost silently"
            found["alone, cut at the end of a line"] += 1
    print(
        json.dumps({"mutated": times, **dict(sorted(found.items())), "silent changes": 0, "labels lost in repair": 0})
    )


def check_repair(path: Path, data: bytes, numbers: dict[bytes, int], events: list[Record]) -> bool:
    """Every line that the mutation left whole is kept; what was there is kept beside."""
    untouched = [n for line, n in numbers.items() if line in data]
    try:
        done = repair(path)
    except JournalError as error:
        assert not untouched and "no sound line" in str(error), error
        return False
    with Journal(path) as opened:
        kept = list(opened.records)
    assert all(kept[n - 1] == events[n - 1] for n in untouched), "a sound line was lost"
    if isinstance(kept[0], Header):
        recorded_ledger(kept, path)  # the loop can go on
    assert done.aside is not None and done.aside.read_bytes() == data
    done.aside.unlink()
    return True


if __name__ == "__main__":
    chosen = arguments(1000, "how many mutated journals")
    main(chosen.folder, chosen.times, chosen.seed)
