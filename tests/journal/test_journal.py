"""The journal: nothing that was appended is lost, nothing half-written is read, one writer at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from badge.errors import InputError, JournalError
from badge.journal import Journal, read, repair
from badge.journal import file as journal
from badge.journal.events import Skip, Tell
from badge.journal.lines import encode

RECORDS = [Tell(ids=list(range(n)), labels=["ü\n"] * n) for n in range(5)]
EVENTS = [record.event() for record in RECORDS]
A, B, C = (Skip(ids=[1], reason=reason) for reason in "abc")
AFTER = Skip(ids=[1], reason="after")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "deep" / "j.jsonl") as opened:
        for record in RECORDS:
            opened.append(record)
    return opened.path


def test_events_come_back_in_order_and_one_line_each(path: Path) -> None:
    assert read(path) == EVENTS
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(EVENTS)
    with Journal(path) as opened:
        assert opened.records == RECORDS


def test_each_append_is_synced_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    opened = Journal(tmp_path / "j.jsonl")
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(opened.path.read_bytes()))
    opened.append(A)
    opened.append(B, C)
    lines = [encode(number, record.event()) for number, record in enumerate([A, B, C], start=1)]
    assert synced == [lines[0], b"".join(lines)]


def test_without_sync_an_append_is_written_and_waits_for_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []
    opened = Journal(tmp_path / "j.jsonl", sync=False)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(opened.path.read_bytes()))
    opened.append(A)
    assert opened.path.read_bytes() == encode(1, A.event()) and synced == []
    opened.sync()
    assert synced == [encode(1, A.event())]


def test_a_new_file_is_entered_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []
    monkeypatch.setattr(journal, "sync_folder", folders.append)
    Journal(tmp_path / "j.jsonl").close()
    assert folders == [tmp_path]


@given(cut=st.integers(min_value=0), again=st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_truncation_loses_at_most_the_torn_line(
    tmp_path_factory: pytest.TempPathFactory, cut: int, again: bool
) -> None:
    target = tmp_path_factory.mktemp("j") / "j.jsonl"
    lines = [encode(number, event)[:-1] for number, event in enumerate(EVENTS, start=1)]
    whole = b"\n".join(lines) + b"\n"
    cut %= len(whole) + 1
    target.write_bytes(whole[:cut])
    complete = sum(cut >= len(b"\n".join(lines[: n + 1])) for n in range(len(lines)))
    torn = cut > len(b"\n".join([*lines[:complete], b""]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        opened = Journal(target)
    said = [str(warning.message) for warning in caught]
    assert any(f"line {complete + 1}: the last write was interrupted" in text for text in said) == torn
    assert any("j.jsonl.last is missing" in text for text in said) == (complete > 0)
    assert opened.records == RECORDS[:complete]
    if again:
        opened.append(AFTER)
    opened.close()
    if again or not torn:
        assert read(target) == EVENTS[:complete] + [AFTER.event()] * again


def test_zeros_of_a_power_loss_count_as_torn(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * 4096)
    with pytest.warns(UserWarning, match="line 6: the last write was interrupted; its 4096 bytes"):
        assert read(path) == EVENTS


@pytest.mark.parametrize("damage", [b'{"n":3, "as', b'{"event": "as', b"[1, 2]", b"\xff\xfe", b""])
def test_a_damaged_line_in_the_middle_is_named(path: Path, damage: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[2] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(JournalError, match=r"j\.jsonl, line 3: (its checksum|a line without number)"):
        Journal(path)
    path.unlink()
    Journal(path).close()  # the failed open has released its lock


def test_another_kind_of_file_is_not_taken_for_a_torn_journal(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes", encoding="utf-8")
    with pytest.raises(JournalError, match="line 1: a line without number and checksum; this is not a journal"):
        Journal(notes)
    assert notes.read_text(encoding="utf-8") == "my notes"


def test_a_failed_write_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal(path)
    before = path.read_bytes()
    real = os.write

    def full(fd: int, data: bytes) -> int:
        real(fd, bytes(data)[:4])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left on device; nothing was added"):
        opened.append(AFTER)
    assert path.read_bytes() == before and opened.records == RECORDS
    monkeypatch.undo()
    opened.append(AFTER)
    assert read(path) == [*EVENTS, AFTER.event()]


def test_short_writes_are_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal(path)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    opened.append(AFTER)
    assert read(path) == [*EVENTS, AFTER.event()]


def test_numbers_that_json_has_no_word_for_are_refused(path: Path) -> None:
    with Journal(path) as opened, pytest.raises(ValueError, match="JSON"):
        opened.append(Tell(ids=[1], labels=[float("nan")]))
    assert read(path) == EVENTS


def test_one_writer_at_a_time(path: Path) -> None:
    opened = Journal(path)
    with pytest.raises(JournalError, match="already open for writing"):
        Journal(path)
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom badge.journal.file import Journal\nJournal({str(path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert other.returncode == 1 and "already open for writing" in other.stderr
    assert read(path) == EVENTS  # reading needs no lock
    opened.close()
    opened.close()
    Journal(path).close()
    with pytest.raises(JournalError, match="is closed"):
        opened.append(AFTER)


def test_paths_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no journal"):
        read(tmp_path / "absent.jsonl")
    with pytest.raises(JournalError, match="cannot open the journal"):
        Journal(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="cannot open the journal"):
        Journal(tmp_path / "file" / "j.jsonl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_has_no_end_is_no_journal(tmp_path: Path) -> None:
    """A pipe would be waited for and a device read until memory is full."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for place in (tmp_path / "pipe.jsonl", Path("/dev/zero"), tmp_path):
        for call in (Journal, read, repair):
            with pytest.raises(JournalError, match=r"not a file|Is a directory"):
                call(place)  # type: ignore[operator]


def test_sync_is_yes_or_no(path: Path) -> None:
    with pytest.raises(InputError, match="sync must be True or False"):
        Journal(path, sync=[1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["a\0b", "\ud800", "x" * 300, 5, None])
def test_places_that_no_file_can_have(place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (Journal, read, repair):
        with pytest.raises(InputError, match="a journal"):
            call(place)
