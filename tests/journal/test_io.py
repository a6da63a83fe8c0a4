"""A disk that fails, files that others put in the way, and repairs that change nothing but the damage."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from badge.errors import JournalError
from badge.journal import Journal, read, repair
from badge.journal.events import Tell

RECORDS = [Tell(ids=[n], labels=["cat"]) for n in range(6)]
AFTER = Tell(ids=[9], labels=["dog"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal(tmp_path / "j.jsonl") as opened:
        opened.append(*RECORDS)
    return opened.path


def failing(*given: Any) -> Any:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("step", ["write", "fsync", "lseek"])
@pytest.mark.parametrize("rollback", ["", "ftruncate"])
def test_a_call_that_was_refused_never_counts(
    step: str, rollback: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Journal(path)
    monkeypatch.setattr(os, step, failing)
    if rollback:
        monkeypatch.setattr(os, rollback, failing)
    with pytest.raises(JournalError, match="Input/output error; nothing was added"):
        opened.append(AFTER)
    assert opened.records == RECORDS
    if rollback:
        with pytest.raises(JournalError, match=r"Input/output error; nothing was added: try again"):
            opened.append(AFTER)
    monkeypatch.undo()
    opened.settle()
    assert opened.records == RECORDS and read(path) == [record.event() for record in RECORDS]
    opened.append(AFTER)
    opened.close()
    assert len(read(path)) == 7


@pytest.mark.filterwarnings("ignore:.*the last write was interrupted")
def test_a_refused_line_that_cannot_be_cut_off_is_no_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal(path)
    monkeypatch.setattr(os, "fsync", failing)  # the line is in the file, whole
    monkeypatch.setattr(os, "ftruncate", failing)
    with pytest.raises(JournalError, match="nothing was added"):
        opened.append(AFTER)
    opened.close()
    monkeypatch.undo()
    with Journal(path) as again:
        assert again.records == RECORDS


def test_a_disk_that_does_not_answer_is_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal(path)
    monkeypatch.setattr(os, "fstat", failing)
    with pytest.raises(JournalError, match="nothing was added"):
        opened.append(AFTER)
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(JournalError, match="Input/output error"):
        opened.sync()
    for name in ("fstat", "lseek", "fsync"):
        monkeypatch.undo()
        opened.close()
        monkeypatch.setattr(os, name, failing)
        with pytest.raises(JournalError, match="cannot open the journal"):
            Journal(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and links")
@pytest.mark.parametrize("what", ["pipe", "link", "dangling link", "folder"])
def test_what_others_put_beside_a_journal_is_refused(what: str, path: Path, tmp_path: Path) -> None:
    beside, target = tmp_path / "j.jsonl.last", tmp_path / "target"
    beside.unlink()
    target.write_bytes(b"mine")
    if what == "pipe":
        os.mkfifo(beside)
    elif what == "folder":
        beside.mkdir()
    else:
        beside.symlink_to(target if what == "link" else tmp_path / "nowhere")
    for call in (Journal, read):
        with pytest.raises(JournalError, match=r"j\.jsonl\.last is not a file, but a link or a pipe: delete it"):
            call(path)
    assert target.read_bytes() == b"mine" and not (tmp_path / "nowhere").exists()


def damage(path: Path) -> bytes:
    path.write_bytes(path.read_bytes().replace(b"cat", b"cow", 1))
    return path.read_bytes()


def test_a_repair_keeps_mode_link_and_what_lies_beside(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link" / "labels.jsonl"
    link.parent.mkdir()
    link.symlink_to(path)
    path.chmod(0o600)
    (tmp_path / "j.jsonl.new").write_text("mine")
    (tmp_path / "j.jsonl.damaged").symlink_to(tmp_path / "nowhere")
    was = damage(path)
    done = repair(link)
    assert link.is_symlink() and done.lost == [1] and len(read(link)) == 6
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert done.aside == tmp_path / "j.jsonl.damaged1" and done.aside.read_bytes() == was
    assert stat.S_IMODE(done.aside.stat().st_mode) == 0o600
    assert (tmp_path / "j.jsonl.new").read_text() == "mine" and not (tmp_path / "nowhere").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "j.jsonl", "j.jsonl.damaged", "j.jsonl.damaged1", "j.jsonl.last", "j.jsonl.new", "link",
    ]  # fmt: skip
    Journal(link).close()


def test_a_repair_sees_what_was_told_up_to_its_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that tells and closes just before the repair has the lock: what it told is in the repaired journal."""
    module = sys.modules["badge.journal.repair"]
    real, whole = module.lock_file, path.read_bytes()
    damage(path)

    def late(fd: int) -> bool:
        monkeypatch.setattr(module, "lock_file", real)
        with path.open("r+b") as other:
            other.write(whole)
        with Journal(path) as opened:
            opened.append(AFTER)
        damage(path)
        return real(fd)

    monkeypatch.setattr(module, "lock_file", late)
    assert repair(path).kept == 6 and len(read(path)) == 7


def test_one_file_tells_of_the_last_line_however_the_journal_is_called(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "k.jsonl").symlink_to(path)
    with Journal(tmp_path / "link" / "k.jsonl") as opened:
        opened.append(AFTER)
    Journal(path).close()
    assert [file.name for file in (tmp_path / "link").iterdir()] == ["k.jsonl"]
