"""What happens to a journal's file: changed, cut, replaced, forked. Nothing goes unnoticed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from badge.errors import JournalError
from badge.journal import Journal, read, records_of, repair
from badge.journal.events import JsonObject, Lost, Stop, Tell
from badge.journal.lines import encode
from badge.journal.schema import KINDS, check, typed

RECORDS = [Tell(ids=[n], labels=["cat"]) for n in range(6)]
EVENTS: list[dict[str, Any]] = [record.event() for record in RECORDS]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "j.jsonl") as opened:
        opened.append(*RECORDS)
    return opened.path


def test_every_changed_byte_is_noticed_and_its_line_named(path: Path) -> None:
    whole = path.read_bytes()
    for at in range(len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        line = whole[:at].count(b"\n") + 1
        with pytest.raises(JournalError, match=rf"j\.jsonl, line {line}: "):
            read(path)


def edited(path: Path, edit: Callable[[list[bytes]], None]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    edit(lines)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("left", range(6))
@pytest.mark.parametrize("more", [0, 1, 9, -1])
def test_lines_missing_at_the_end_are_noticed(path: Path, left: int, more: int) -> None:
    whole = path.read_bytes()
    ends = [0, *(m.end() for m in re.finditer(b"\n", whole))]
    path.write_bytes(whole[: max(0, ends[left] + more)])
    if more < 0:
        left = max(0, left - 1) + (left > 0)  # without its newline a line is still there
    missing = f"lines {left + 1} to 6 are" if left < 5 else "line 6 is"
    for opened in (read, Journal):
        with pytest.raises(JournalError, match=rf"j\.jsonl, line {left + 1}: {missing} missing at the end"):
            opened(path)
    if left == 0:
        with pytest.raises(JournalError, match="no sound line"):
            repair(path)
        return
    done = repair(path)
    assert done.lost == list(range(left + 1, 7)) and done.kept == left
    with Journal(path) as again:  # the loop goes on, and what came before the cut is as it was
        assert again.records[:left] == RECORDS[:left] and {type(r) for r in again.records[left:]} == {Lost}
        again.append(RECORDS[0])
    assert len(read(path)) == 7


def test_what_stands_beside_a_journal_is_never_in_the_way(path: Path) -> None:
    whole, beside = path.read_bytes(), path.with_name("j.jsonl.last")
    with Journal(path) as opened:  # longer than what was noted, as after a kill between the two writes
        opened.append(*RECORDS)
        noted = beside.read_bytes()
        opened.append(*RECORDS)
    beside.write_bytes(noted)
    with pytest.warns(
        UserWarning, match=r"j\.jsonl\.last is behind: it tells of line 12 as the last, and there are 18"
    ):
        Journal(path).close()
    assert len(read(path)) == 18
    changed = noted.replace(b" 12 ", b" 72 ")
    assert changed != noted
    for junk in (
        b"",
        noted[:20],
        noted[:-1] + b"x",
        b"\xff" * len(noted),
        changed,
    ):  # of no use: as if it were not there
        path.write_bytes(whole)
        beside.write_bytes(junk)
        with pytest.warns(UserWarning, match=r"j\.jsonl\.last is damaged; lines cut off at the end"):
            Journal(path).close()
        assert beside.read_bytes() != junk
        Journal(path).close()  # said once: it is as it should be again
    beside.unlink()
    with pytest.warns(UserWarning, match=r"j\.jsonl\.last is missing; lines cut off at the end"):
        Journal(path).close()
    with Journal(path.with_name("k.jsonl")) as other:
        other.append(Tell(ids=[7], labels=["another journal"]))
    path.write_bytes(other.path.read_bytes())  # one that was begun elsewhere takes its place
    assert len(read(path)) == 1
    with pytest.warns(UserWarning, match=r"j\.jsonl\.last is of another journal"):
        Journal(path).close()
    path.unlink()
    with Journal(path) as anew:
        assert anew.records == []


def test_another_line_in_the_place_of_the_last_is_noticed(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    beside = path.with_name("j.jsonl.last")
    noted = beside.read_bytes()
    beside.unlink()
    with pytest.warns(UserWarning, match="is missing"), Journal(path) as opened:  # an older copy went on elsewhere
        opened.append(Tell(ids=[7], labels=["dog"]))
    beside.write_bytes(noted)
    with pytest.raises(JournalError, match="line 6: another line stands here than the one that had been written"):
        read(path)
    assert repair(path).lost == [] and len(read(path)) == 6


def test_a_journal_that_can_be_computed_again_has_nothing_beside_it(tmp_path: Path) -> None:
    with Journal(tmp_path / "cell.jsonl", sync=False) as opened:
        opened.append(*RECORDS)
    assert [file.name for file in tmp_path.iterdir()] == ["cell.jsonl"]


LINES: dict[str, tuple[Callable[[list[bytes]], None], str]] = {
    "missing": (lambda lines: lines.__delitem__(2), "line 3: line 3 is missing: line 4 stands here"),
    "several missing": (lambda lines: lines.__delitem__(slice(1, 3)), "line 2: lines 2 to 3 are missing"),
    "the first missing": (lambda lines: lines.__delitem__(0), "line 1: line 1 is missing"),
    "doubled": (lambda lines: lines.insert(3, lines[2]), "line 4: line 3 stands here, doubled or moved"),
    "swapped": (lambda lines: lines.insert(4, lines.pop(1)), "line 2: line 2 is missing: line 3 stands here"),
    "a typo in the last": (
        lambda lines: lines.__setitem__(5, lines[5].replace(b"tell", b"tall")),
        "line 6: its checksum does not match",
    ),
    "an empty line": (lambda lines: lines.insert(3, b"\n"), "line 4: a line without number and checksum"),
    "a line of format 1": (
        lambda lines: lines.insert(3, b'{"event": "tell", "ids": [9], "labels": ["dog"]}\n'),
        "line 4",
    ),
    "half a line": (lambda lines: lines.__setitem__(5, lines[5][:20] + b"\n"), "line 6: its checksum"),
    "a last line without its newline, and a typo": (
        lambda lines: lines.__setitem__(5, lines[5].replace(b"tell", b"tall")[:-1]),
        "line 6: its checksum does not match",
    ),
}


@pytest.mark.parametrize("case", LINES)
def test_lines_that_are_not_what_was_written(case: str, path: Path) -> None:
    edit, message = LINES[case]
    edited(path, edit)
    damaged = path.read_bytes()
    with pytest.raises(JournalError, match=re.escape(message)):
        Journal(path)
    with pytest.raises(JournalError, match=re.escape(message)):
        read(path)
    assert path.read_bytes() == damaged  # looking at it changes nothing


def test_a_repair_keeps_what_is_sound_and_deletes_nothing(path: Path) -> None:
    def edit(lines: list[bytes]) -> None:
        lines[3] = lines[3].replace(b"cat", b"cow")  # changed
        lines[1], lines[4] = lines[4], lines[1]  # moved
        lines.insert(2, lines[0])  # doubled

    edited(path, edit)
    damaged = path.read_bytes()
    done = repair(path)
    assert (done.kept, done.lost) == (5, [4])
    kept = read(path)
    assert [kept[n] for n in (0, 1, 2, 4, 5)] == [EVENTS[n] for n in (0, 1, 2, 4, 5)]
    assert done.aside is not None and kept[3]["event"] == "lost" and kept[3]["aside"] == done.aside.name
    assert done.aside.read_bytes() == damaged
    assert str(repair(path)) == "6 events, nothing to repair"
    with Journal(path) as opened:
        opened.append(RECORDS[0])
    path.write_bytes(path.read_bytes().replace(b"\n", b"x", 1))  # two lines joined into one: both are found in it
    assert repair(path).lost == [] and len(read(path)) == 7
    assert len(list(path.parent.glob("j.jsonl.damaged*"))) == 2


def test_a_repair_needs_the_file_for_itself_and_something_sound(path: Path, tmp_path: Path) -> None:
    with Journal(path), pytest.raises(JournalError, match="is open for writing"):
        repair(path)
    (tmp_path / "k.jsonl").write_text("not a journal\n", encoding="utf-8")
    with pytest.raises(JournalError, match="holds no sound line"):
        repair(tmp_path / "k.jsonl")
    with pytest.raises(JournalError, match="there is no journal"):
        repair(tmp_path / "absent.jsonl")


def replaced(path: Path) -> None:
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (lambda path: path.unlink(), "it is gone"),
    "replaced": (replaced, "another file"),
    "truncated": (lambda path: path.write_bytes(b""), "it is 0 bytes long and was left at"),
    "appended to": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "bytes long and was left at"),
}


@pytest.mark.parametrize("case", GONE)
def test_a_file_that_others_change_while_it_is_open(case: str, path: Path) -> None:
    change, message = GONE[case]
    with Journal(path) as opened:
        change(path)
        with pytest.raises(JournalError, match=f"changed by another program while it was open: .*{message}"):
            opened.append(RECORDS[0])
        assert opened.records == RECORDS


def test_a_change_of_the_working_directory_is_no_change_of_the_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Journal("j.jsonl") as opened:
        monkeypatch.chdir("/")
        opened.append(RECORDS[0])
    assert len(read(path)) == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # other tests may have left threads behind
def test_a_child_process_cannot_write_and_does_not_hold_the_lock(path: Path) -> None:
    opened = Journal(path)
    before = path.read_bytes()
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            opened.append(RECORDS[0])
        except JournalError as error:
            code = 0 if f"belongs to process {os.getppid()}" in str(error) and path.read_bytes() == before else 2
        os.write(ready[1], bytes([code]))
        os.read(go[0], 1)
        os._exit(0)
    assert os.read(ready[0], 1) == b"\0"
    opened.append(RECORDS[1])  # the parent goes on
    opened.close()
    Journal(path).close()  # the child is alive, and does not keep the file locked
    os.write(go[1], b"x")
    os.waitpid(child, 0)
    assert read(path) == [*EVENTS, EVENTS[1]]


# -- the schema --------------------------------------------------------------------------------------------------------


WRONG = {
    "unknown kind 'tall'": {"event": "tall"},
    "unknown kind None": {"text": "hello"},
    "lacks the field 'labels'": {"event": "tell", "ids": [1]},
    "has a field 'lables'": {"event": "tell", "ids": [1], "labels": [1], "lables": [1]},
    "is '1', not of type list": {"event": "tell", "ids": "1", "labels": [1]},
    "is True, not of type int": {"event": "ask", "round": True, "ids": [1]},
    "has format 3": {"event": "start", "cell": {}, "format": 3},
    "the field 'pool' of the event 'pool' lacks the field 'length'": {"event": "pool", "pool": {"digest": None}},
    "the field 'add' of the field 'memory' of the event 'ask' is 5": {
        "event": "ask", "round": 0, "ids": [], "memory": {"add": 5},
    },
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_what_is_no_event(message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check(WRONG[message])
    (tmp_path / "k.jsonl").write_bytes(encode(1, WRONG[message]))
    with pytest.raises(JournalError, match=f"line 1: .*{re.escape(message)}"):
        Journal(tmp_path / "k.jsonl")


STOP = {"ids": [3], "codes": [0], "revision": 2, "labels": 4, "examples": 9, "changed": None, "kappa": None}
HEADER: dict[str, Any] = {"event": "learner", "format": 2, "classes": 2, "strategy": "badge", "seed": 0}


@pytest.mark.parametrize(
    "event",
    [
        {"event": "ask", "round": 1, "ids": [3, "a"], "people": 2, "stop": STOP, "memory": {"set": {"w": 1}}},
        {**HEADER, "pool": {"length": 3, "digest": None}, "initial": {"ids": ["a"], "labels": [1]}},
        {"event": "end", "reason": "labels reached", "labels": None},
    ],
)
def test_events_become_their_types_and_back(event: dict[str, Any], tmp_path: Path) -> None:
    check(event)
    record = typed(event)
    assert type(record) is KINDS[event["event"]] and record.event() == event
    with Journal(tmp_path / "k.jsonl") as opened:
        opened.append(record)
    assert records_of(tmp_path / "k.jsonl") == [record]


def test_every_field_is_typed() -> None:
    """Nothing but what strategies say of themselves is an open dictionary, and tables of one text per name."""
    open_ended = {"strategy", "first", "all", "set", "add", "code", "versions", "columns"}
    for kind in (*KINDS.values(), *JsonObject.__subclasses__()):
        for field in fields(kind):
            if "dict" in str(field.type) or str(field.type) in ("Any", "typing.Any"):
                assert field.name in open_ended, (kind, field.name)


def test_class_variables_name_their_type() -> None:
    """Python 3.10 cannot read the types of a class with a plain ClassVar, and then no journal."""
    for kind in (*KINDS.values(), Stop):
        hints = vars(kind).get("__annotations__", {}).values()
        assert not {"ClassVar", "typing.ClassVar"} & set(map(str, hints)), kind
