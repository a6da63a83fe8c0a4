"""`badge journal`: show, check, repair, export, import."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import badge
from badge.cli import main
from badge.errors import InputError
from badge.journal import Journal, read
from badge.journal.events import Tell
from small_loop import TRUTH, X, learner

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["badge", "journal", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        text = capsys.readouterr()
        return int(end.value.code or 0), text.out, text.err

    return call


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with learner(tmp_path / "labels.jsonl") as opened:
        ids = opened.ask(6)
        opened.tell(ids[:5], TRUTH[ids[:5]], by="ann")
        opened.skip(ids[5:], "blurred")
    return tmp_path / "labels.jsonl"


def test_show(path: Path, run: Run) -> None:
    code, out, _ = run("show", path, "--last", 2)
    assert code == 0
    assert "4 events (1 learner, 1 ask, 1 tell, 1 skip)" in out and "pool: 50 examples, called by position" in out
    assert "labels: 5" in out and "pending: 0; skipped: 1; asks: 1" in out and "given by: ann 5" in out
    assert out.count("\n") == 7 and "     4 skip: ids=" in out


def test_check_and_repair(path: Path, run: Run) -> None:
    assert run("check", path)[:2] == (0, f"{path}: sound, 4 events, 5 labels\n")
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    path.with_name(f"{path.name}.last").unlink()
    code, out, err = run("check", path)
    assert code == 0 and "the last write was interrupted" in err and "3 events" in out
    path.write_bytes(whole.replace(b"blurred", b"blorred"))
    code, out, err = run("check", path)
    assert code == 1 and "line 4: its checksum does not match" in err and not out
    assert "error: " in run("show", path)[2]
    code, out, _ = run("repair", path)
    assert code == 0 and "3 events kept, lost: line 4" in out and "labels.jsonl.damaged" in out
    assert run("check", path)[:2] == (0, f"{path}: sound, 4 events, 5 labels, 1 lost in a repair\n")
    assert run("repair", path)[1] == f"{path}: 4 events, nothing to repair\n"
    assert run("check", path.with_name("absent.jsonl"))[0] == 1


def test_a_contradiction_is_found(path: Path, run: Run) -> None:
    free = next(id for id in range(50) if id not in read(path)[1]["ids"])
    with Journal(path) as journal:
        journal.append(Tell(ids=[free], labels=[0]))
    code, _, err = run("check", path)
    assert code == 1 and f"line 5: id {free} was not asked" in err


def test_labels_go_out_of_one_journal_and_into_another(path: Path, run: Run, tmp_path: Path) -> None:
    code, out, _ = run("export", path)
    assert code == 0 and out.startswith("id,label,by,at\n")
    assert run("export", path, "-o", tmp_path / "labels.csv")[1] == f"{tmp_path / 'labels.csv'}: 5 labels\n"
    rows = list(csv.DictReader((tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()))
    assert {int(row["id"]): int(row["label"]) for row in rows} == learner_labels(path)
    other = tmp_path / "other.jsonl"
    learner(other, pool=X * 2, seed=5).close()  # another pool, another seed
    assert run("import", other, tmp_path / "labels.csv")[1] == f"{other}: 5 labels taken\n"
    assert run("import", other, tmp_path / "labels.csv")[1] == f"{other}: 0 labels taken\n"
    with learner(other, pool=X * 2, seed=5) as opened:
        assert opened.labels == learner_labels(path)
        assert {row.by for row in opened.history} == {"ann"} and opened.history[0].kind == "import"
    (tmp_path / "bad.csv").write_text("id,label\n1,9\n", encoding="utf-8")
    before = other.read_bytes()
    code, _, err = run("import", other, tmp_path / "bad.csv")
    assert code == 2 and "line 2: label" in err and other.read_bytes() == before
    assert "there is no journal" in run("import", tmp_path / "new.jsonl", tmp_path / "labels.csv")[2]


def learner_labels(path: Path) -> dict[int | str, int]:
    with learner(path) as opened:
        return opened.labels


def test_labels_come_out_of_a_journal_that_lost_its_first_line(path: Path, run: Run) -> None:
    labels = learner_labels(path)
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":1', 1))
    assert "lost: line 1" in run("repair", path)[1]
    with pytest.raises(badge.errors.JournalError, match=r"has lost its first line.*badge journal export"):
        learner(path)
    rows = list(csv.DictReader(run("export", path)[1].splitlines()))
    assert {int(row["id"]): int(row["label"]) for row in rows} == labels


def test_own_ids_and_text_that_spreadsheets_would_run(run: Run, tmp_path: Path) -> None:
    keys = [f"=k{n}" for n in range(50)]
    path = tmp_path / "j.jsonl"
    with badge.ActiveLearner(X, Trainer(), classes=["+a", "b"], ids=keys, journal=path) as opened:
        ids = opened.ask(4)
        opened.tell(ids, ["+a", "b", "+a", "b"], by="@ann")
        opened.relabel(ids[0], "b")
        labels = opened.labels
    run("export", path, "-o", tmp_path / "l.csv")
    assert "\n'=k" in (tmp_path / "l.csv").read_text(encoding="utf-8")
    assert len(run("export", path, "--all")[1].splitlines()) == 6
    with badge.ActiveLearner(X, Trainer(), classes=["+a", "b"], ids=keys, journal=tmp_path / "k.jsonl") as opened:
        assert opened.import_csv(tmp_path / "l.csv") == 4 and opened.labels == labels
    assert "with their own ids" in run("show", path)[1]
    assert run("import", path, tmp_path / "l.csv")[1].endswith("0 labels taken\n")
    assert len(read(path)) == 4


class Trainer:
    def fit(self, examples: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return examples[:2]


def test_no_way_out_that_only_a_program_has(path: Path, run: Run, tmp_path: Path) -> None:
    """An error may name a method as the way out; at the command line that is left out."""
    with learner(path) as opened:
        known = next(iter(opened.labels))
        other = next(name for name in range(3) if name != opened.labels[known])
        with pytest.raises(InputError, match=r"was told again as \d; relabel\("):
            opened.tell([known], [other])
    (tmp_path / "more.csv").write_text(f"id,label\n{known},{other}\n")
    code, out, err = run("import", path, tmp_path / "more.csv")
    assert (code, out) == (2, "") and "was told again" in err and "relabel(" not in err
