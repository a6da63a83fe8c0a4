"""The state beside a long journal: the same learner with and without it, whatever becomes of that file or of the journal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from badge import journal
from badge.errors import JournalError
from badge.journal import lines as lines_
from badge.journal import snapshot
from badge.journal.events import Ask, Header, Initial, PoolId, Tell
from badge.journal.last import Last, digest, write_last
from badge.journal.lines import encode
from badge.learner import book
from badge.learner.ids import Ids
from badge.learner.opening import recorded_ledger, restored, state_of
from sixty import KEYS, TRUTH, X, make


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "EVERY", 5)


def live(path: Path, add_class: bool = False) -> None:
    """Every kind of event, from a learner that is opened often."""
    with make(path, initial={KEYS[0]: 0, KEYS[1]: 1}, ids=KEYS, strategy="albl") as learner:
        ids = learner.ask(6)
        learner.tell(ids[:4], [0, 1, 0, 1], by="ann")
        learner.relabel(ids[0], 1)
    with make(path, ids=KEYS, strategy="albl") as learner:
        ids = learner.ask(3, people=2)
        learner.tell(ids, [0, 1, 0], by="ann")
        learner.tell(ids[:2], [0, 0], by="ben")
        learner.skip(learner.candidates[:2], "unclear")
        if add_class:
            learner.add_class()
        learner.tell(learner.candidates[:1], [2 if add_class else 1], unasked=True)
        learner.release(learner.pending[:1])


def seen(learner: Any) -> Any:
    parts = (learner.labels, learner.pending.tolist(), learner.skipped, learner.votes, learner.classes, learner.seed)
    rows = [(row.event, row.id, row.label, row.predicted) for row in learner.history]
    return *parts, [batch.tolist() for batch in learner.batches], rows, str(learner.advice())


def test_the_state_is_that_of_the_whole_journal(tmp_path: Path) -> None:
    path, plain = tmp_path / "j.jsonl", tmp_path / "plain.jsonl"
    live(path)
    beside = tmp_path / "j.jsonl.state"
    live(tmp_path / "k.jsonl", add_class=True)
    records = journal.records_of(tmp_path / "k.jsonl")
    for number in range(1, len(records) + 1):
        whole = recorded_ledger(records[:number], path)
        again = restored(json.loads(json.dumps(state_of(whole))), Ids(60, KEYS))
        assert again is not None and state_of(again) == state_of(whole)
    plain.write_bytes(path.read_bytes())
    plain.with_name("plain.jsonl.last").write_bytes(path.with_name("j.jsonl.last").read_bytes())
    with make(path, ids=KEYS, strategy="albl") as quick, make(plain, ids=KEYS, strategy="albl") as slow:
        assert quick._journal.snapshot is not None and slow._journal.snapshot is None and beside.exists()
        assert seen(quick) == seen(slow)
        assert quick.ask(4).tolist() == slow.ask(4).tolist()
        assert list(quick._journal.records) == list(journal.records_of(path))
        assert list(reversed(quick._journal.records)) == journal.records_of(path)[::-1]
        assert quick._journal.records[-1] == journal.records_of(path)[-1]
        assert quick._journal.records[2:5] == journal.records_of(path)[2:5] and len(quick.explain().norm) == 4


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "a byte": lambda whole: whole.replace(b'"number":', b'"numbex":'),
    "other bytes": lambda whole: b"\xff" * 100,
    "another version": lambda whole: whole.replace(b'"format": 1', b'"format": 2'),
}


@pytest.mark.parametrize("kind", [*DAMAGE, "deleted"])
def test_a_state_that_is_of_no_use_is_left_alone(kind: str, tmp_path: Path) -> None:
    path, beside = tmp_path / "j.jsonl", tmp_path / "j.jsonl.state"
    live(path)
    with make(path, ids=KEYS, strategy="albl") as learner:
        expected = seen(learner)
    if kind == "deleted":
        beside.unlink()
    else:
        beside.write_bytes(DAMAGE[kind](beside.read_bytes()))
    with make(path, ids=KEYS, strategy="albl") as learner:
        assert learner._journal.snapshot is None and seen(learner) == expected
    with make(path, ids=KEYS, strategy="albl") as learner:  # written again
        assert learner._journal.snapshot is not None


def test_a_journal_that_was_changed_is_noticed_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    live(path)
    whole = path.read_bytes()
    for at in (len(whole) // 7, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(JournalError, match=rf"line {whole[:at].count(10) + 1}: "):
            make(path, ids=KEYS, strategy="albl")
    lines = whole.splitlines(keepends=True)
    for left in (2, len(lines) - 1):
        path.write_bytes(b"".join(lines[:left]))
        with pytest.raises(JournalError, match=f"line {left + 1}: .* missing at the end"):
            make(path, ids=KEYS, strategy="albl")


def test_an_example_that_leaves_the_pool_of_a_long_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    live(path)
    with make(path, ids=KEYS, strategy="albl") as learner:
        gone = next(iter(learner.labels))
    keep = [n for n, id in enumerate(KEYS) if id != gone]
    with pytest.warns(UserWarning, match="no longer in the pool"):
        learner = make(path, X[keep], ids=[KEYS[n] for n in keep], strategy="albl")
    assert list(learner.withdrawn) == [gone] and gone not in learner.labels
    learner.close()


def test_a_long_journal_opens_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lines, only those behind the state are read (seconds: `python -m benchmarks.journal_cost`)."""
    monkeypatch.setattr(book, "EVERY", 1_000)
    events = 4_000
    path, pool = tmp_path / "j.jsonl", TRUTH.repeat(1000)[: events + 100, None].astype(float)
    header = Header(
        format=2, pool=PoolId(length=len(pool), digest=None), classes=2, strategy="rand", seed=0, picks=1,
        initial=Initial(ids=[], labels=[]),
    )  # fmt: skip
    asked = range(0, events - 1000, 50)
    records: list[Any] = [header]
    for round, first in enumerate(asked):
        records.append(Ask(round=round, ids=list(range(first, first + 50))))
        records += [Tell(ids=[id], labels=[id % 2], by="ann") for id in range(first, first + 50)]
    lines = [encode(n, record.event()) for n, record in enumerate(records, start=1)]
    path.write_bytes(b"".join(lines))
    write_last(path, Last(digest(lines[0][:-1]), len(lines), digest(lines[-1][:-1])))
    with make(path, pool, strategy="rand") as learner:
        labels = len(learner.labels)
    read: list[bytes] = []
    for module in (lines_, snapshot):
        monkeypatch.setattr(module, "decode", lambda line, decode=lines_.decode: read.append(line) or decode(line))
    with make(path, pool, strategy="rand") as learner:
        assert len(read) < 10
        assert len(learner.labels) == labels == 50 * len(asked)
        learner.ask(3)


def test_an_erased_example_is_in_no_state_either(tmp_path: Path) -> None:
    path, beside = tmp_path / "j.jsonl", tmp_path / "j.jsonl.state"
    live(path)
    gone = journal.read(path)[1]["ids"][0]
    assert gone.encode() in beside.read_bytes()
    journal.erase(path, [gone])
    assert not beside.exists()
    keep = [n for n, id in enumerate(KEYS) if id != gone]
    make(path, X[keep], ids=[KEYS[n] for n in keep], strategy="albl").close()
    assert gone.encode() not in beside.read_bytes()
