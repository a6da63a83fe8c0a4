"""A pool that shrinks: examples are withdrawn and come back; what is to be forgotten leaves the journal."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import badge
from badge import journal
from badge.cli import app
from badge.errors import InputError, JournalError
from sixty import KEYS, TRUTH, X, make


def without(*gone: str) -> dict[str, Any]:
    keep = [n for n, id in enumerate(KEYS) if id not in gone]
    return {"pool": X[keep], "ids": [KEYS[n] for n in keep]}


def truth(ids: Any) -> list[int]:
    return [int(TRUTH[KEYS.index(str(id))]) for id in ids]


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Path, list[str]]:
    """A journal after two batches of six, and the ids in them; the last two are pending."""
    path = tmp_path / "j.jsonl"
    with make(path, X, ids=KEYS, initial={id: truth([id])[0] for id in KEYS[:2]}) as learner:
        ids = learner.ask(6).tolist()
        learner.tell(ids, truth(ids), by="ann")
        ids += learner.ask(6).tolist()
        learner.relabel(ids[1], 1 - truth([ids[1]])[0])
        learner.tell(ids[6:10], truth(ids[6:10]), by="ben")
    return path, ids


def test_examples_leave_and_come_back(begun: tuple[Path, list[str]]) -> None:
    path, ids = begun
    labelled, pending = ids[0], ids[-1]
    with pytest.warns(UserWarning, match="2 examples of .* are no longer in the pool .*: they are withdrawn"):
        learner = make(path, **without(labelled, pending))
    with learner:
        assert learner.withdrawn == {labelled: truth([labelled])[0], pending: None}
        assert labelled not in learner.labels and learner.pending.tolist() == [ids[-2]]
        assert len(learner.candidates) + len(learner.labels) + len(learner.pending) == 58
        with pytest.raises(InputError, match="is not one of the 58 ids"):
            learner.tell([pending], [0])
        learner.tell(batch := learner.ask(4), truth(batch))
        assert len(learner.model) == 2 and len(learner.outputs) == 58
        assert len(learner.explain().norm) == 4
    with make(path, **without(labelled, pending)) as learner:  # said once
        assert set(learner.withdrawn) == {labelled, pending}
    with make(path, X, ids=KEYS) as learner:
        assert learner.withdrawn == {} and learner.labels[labelled] == truth([labelled])[0]
        assert pending in learner.candidates  # to be asked again
        learner.ask(3)
    kinds = [event["event"] for event in journal.read(path)]
    assert kinds[6:] == ["withdraw", "pool", "ask", "tell", "return", "pool", "ask"]


def test_a_pool_that_lost_most_of_its_examples_is_another_one(begun: tuple[Path, list[str]]) -> None:
    path, _ = begun
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"belongs to another pool: .* is not in yours, nor are \d+ others of 60"):
        make(path, **without(*KEYS[:40]))
    assert path.read_bytes() == before


def test_labels_of_withdrawn_examples_are_exported(begun: tuple[Path, list[str]]) -> None:
    path, ids = begun
    with pytest.warns(UserWarning, match="withdrawn"):
        make(path, **without(ids[0])).close()
    said = CliRunner().invoke(app, ["journal", "export", str(path)])
    assert f"\n{ids[0]},{truth([ids[0]])[0]},ann," in said.output


@pytest.mark.parametrize("which", [0, 1, 7, 11, "initial"])
def test_an_erased_example_leaves_no_trace(which: Any, begun: tuple[Path, list[str]]) -> None:
    path, ids = begun
    id = KEYS[0] if which == "initial" else ids[which]
    with make(path, X, ids=KEYS) as learner:
        labels, batches = learner.labels, [batch.tolist() for batch in learner.batches]
    before = journal.read(path)
    said = CliRunner().invoke(app, ["journal", "erase", str(path), "--id", id])
    assert said.exit_code == 0 and "1 examples erased from" in said.output and "was rewritten" in said.output
    assert id.encode() not in path.read_bytes()
    after = journal.read(path)  # the chain is whole, and every other event keeps its number
    assert len(after) == len(before) + 1 and after[-1]["event"] == "erased" and after[-1]["examples"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the file beside it tells of the new last line
        with make(path, **without(id)) as learner:
            assert learner.labels == {known: label for known, label in labels.items() if known != id}
            assert [b.tolist() for b in learner.batches] == [[i for i in batch if i != id] for batch in batches]
            assert all(row.id != id for row in learner.history)
            learner.ask(3)
    assert CliRunner().invoke(app, ["journal", "check", str(path)]).exit_code == 0


def test_what_cannot_be_erased(begun: tuple[Path, list[str]]) -> None:
    path, ids = begun
    before = path.read_bytes()
    for nobody in ("nobody", "--5", "9" * 5000):
        said = CliRunner().invoke(app, ["journal", "erase", str(path), f"--id={nobody}"])
        assert f"holds nothing about '{nobody[:3]}" in str(said.exception)
    with make(path, X, ids=KEYS), pytest.raises(JournalError, match="is open for writing"):
        journal.erase(path, [ids[0]])
    assert path.read_bytes() == before


def test_positions_are_erased_too(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with badge.ActiveLearner(X, make().trainer, classes=2, journal=path, strategy="rand") as learner:
        ids = learner.ask(4)
        learner.tell(ids, TRUTH[ids])
    assert CliRunner().invoke(app, ["journal", "erase", str(path), "--id", str(ids[0])]).exit_code == 0
    with badge.ActiveLearner(X, make().trainer, classes=2, journal=path, strategy="rand") as learner:
        assert list(learner.labels) == ids[1:].tolist() and int(ids[0]) in learner.candidates
        assert all(learner.labels[int(id)] == TRUTH[id] for id in ids[1:])
