"""Journals after a repair, and with the memory of another version of a strategy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from badge import journal
from badge.core.rng import PICKS_VERSION
from badge.errors import JournalError
from badge.journal.events import Ask, Memory
from sixty import TRUTH, make, rounds
from small_loop import Trainer


@pytest.mark.parametrize("line", range(2, 12))
def test_the_loop_goes_on_after_any_line_was_lost(line: int, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, strategy="albl") as learner:
        rounds(learner, 3)
        ids = learner.ask(2, people=2)
        learner.tell(ids, [0, 1], by="ann")
        learner.tell(ids, [0, 0], by="ben")
        learner.add_class()
        learner.tell(learner.candidates[:1], [2], unasked=True)
        labels = learner.labels
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"event":"', b'"event":"x')
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=f"line {line}: its checksum"):
        make(path, strategy="albl")
    assert journal.repair(path).lost == [line]
    trainer = Trainer(0.0)
    trainer.fit = lambda examples, labels, rng: np.zeros((3, 2))  # type: ignore[method-assign]
    with make(path, strategy="albl", trainer=trainer) as learner:
        told = {id: label for id, label in learner.labels.items() if id in labels}
        assert len(told) >= len(labels) - 5  # what the lost line held is missing, and nothing else
        learner.tell(list(learner.ask(3)), [0, 1, 0])
    make(path, strategy="albl").close()


def test_memory_of_another_version_is_left_behind_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path, strategy="albl") as learner:
        rounds(learner, 3)
    other = Memory(all={"weights_of_an_older_version": [1, 2]})
    old = [replace(r, memory=other) if isinstance(r, Ask) and r.memory else r for r in journal.records_of(path)]
    path.unlink()
    with journal.Journal(path) as written:
        written.append(*old)
    with make(path, strategy="albl") as learner:
        with pytest.warns(UserWarning, match="is of another version of it .*: it starts without memory"):
            ids = learner.ask(4)
        learner.tell(ids, TRUTH[ids])
        learner.ask(4)
        assert len(learner.labels) == 16


def test_a_journal_of_another_version_of_the_picks_says_where_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    with make(path) as learner:
        rounds(learner, 2)
    assert journal.read(path)[0]["picks"] == PICKS_VERSION
    monkeypatch.setattr("badge.learner.book.PICKS_VERSION", 7)
    for _ in range(2):  # said once
        with make(path) as learner:
            rounds(learner, 1)
    kinds = [event["event"] for event in journal.read(path)]
    assert kinds == ["learner", "ask", "tell", "ask", "tell", "picks", "ask", "tell", "ask", "tell"]
    assert journal.read(path)[5]["version"] == 7
