"""Labels out as CSV and in again are the same labels; ids of every kind come back as they are."""

from __future__ import annotations

import io
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge import journal
from badge.errors import InputError
from badge.learner.opening import recorded_ledger
from badge.learner.transfer import labels_in, write_labels
from small_loop import Trainer, X, predict


def make(path: Path | None, ids: Any = None, classes: Any = 2, **options: Any) -> badge.ActiveLearner:
    return badge.ActiveLearner(
        X, Trainer(0.0), classes=classes, journal=path, predict=predict, ids=ids, strategy="rand", **options
    )


def exported(path: Path, to: Path) -> str:
    records = journal.records_of(path)
    ledger, text = recorded_ledger(records, path), io.StringIO()
    write_labels(labels_in(records, ledger), text, ledger)
    to.write_text(text.getvalue(), encoding="utf-8", newline="")
    return text.getvalue()


NUMBERS = [str(n) for n in range(25)]
ODD_NAMES = ["a\rb", "c\r\nd", "\n", '"', '"1"', "'=x", "=1+1", "x" * 200_000, "-1", " 7", "", "ü", "a,b", "\\", "0012"]
IDS: dict[str, list[Any]] = {
    "a number and the same as text": [*range(25), *NUMBERS],
    "texts that are numbers": [str(n) for n in range(50)],
    "odd names": [*ODD_NAMES, *(f"k{n}" for n in range(50 - len(ODD_NAMES)))],
    "odd names and numbers": [*ODD_NAMES, *range(50 - len(ODD_NAMES))],
    "above 2**63": [2**64 - 1 - n for n in range(50)],
    "negative and above 2**63": [-1, *(2**64 - 1 - n for n in range(49))],
}


@pytest.mark.parametrize("with_pool", [True, False])
@pytest.mark.parametrize("kind", IDS)
def test_csv_out_and_in_again_is_the_identity(kind: str, with_pool: bool, tmp_path: Path) -> None:
    ids, classes = IDS[kind], ["a\rb", 1, "1", '"x"', "=1", ""]
    given = {id: classes[n % len(classes)] for n, id in enumerate(ids)}
    with make(tmp_path / "a.jsonl", ids, classes) as learner:
        learner.tell(list(given), list(given.values()), by="ann\r", unasked=True)
    exported(tmp_path / "a.jsonl", tmp_path / "l.csv")
    make(tmp_path / "b.jsonl", ids, classes).close()
    if with_pool:
        with make(tmp_path / "b.jsonl", ids, classes) as learner:
            assert learner.import_csv(tmp_path / "l.csv") == 50
    else:
        from badge.cli.journal import import_labels

        import_labels(tmp_path / "b.jsonl", tmp_path / "l.csv")
    with make(tmp_path / "b.jsonl", ids, classes) as learner:
        assert {(type(id), id, label) for id, label in learner.labels.items()} == {
            (type(id), id, label) for id, label in given.items()
        }
        assert {row.by for row in learner.history} == {"ann\r"}


def test_votes_of_several_people_come_back(tmp_path: Path) -> None:
    with make(tmp_path / "a.jsonl") as learner:
        agreed, tied, decided, half = learner.ask(4, people=2).tolist()
        learner.tell([agreed, tied, decided, half], [0, 0, 0, 1], by="ann")
        learner.tell([agreed, tied, decided], [0, 1, 0], by="ben")
        learner.relabel(decided, 1)
        alone = learner.ask(1).tolist()
        learner.tell(alone, [1], by="cem")
        labels, votes, pending = learner.labels, learner.votes, sorted(learner.pending.tolist())
    exported(tmp_path / "a.jsonl", tmp_path / "l.csv")
    for _ in range(2):  # and once more is no matter
        with make(tmp_path / "b.jsonl") as learner:
            learner.import_csv(tmp_path / "l.csv")
            assert (learner.labels, learner.votes, sorted(learner.pending.tolist())) == (labels, votes, pending)
    with make(tmp_path / "b.jsonl") as learner:
        learner.tell([tied], [1], by="cem")
        assert learner.labels[tied] == 1
    assert len(journal.read(tmp_path / "b.jsonl")) == 6  # header, three people, a correction, and cem


def test_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("key,truth,who\n3,1,ann\n4,0,\n", encoding="utf-8")
    learner = make(None)
    assert learner.import_csv(tmp_path / "l.csv", id="key", label="truth", by="who") == 2
    assert learner.labels == {3: 1, 4: 0} and [row.by for row in learner.history] == ["ann", None]
    with pytest.raises(InputError, match="has no column 'person'; it has key, truth, who"):
        learner.import_csv(tmp_path / "l.csv", id="key", label="truth", by="person")


@pytest.mark.parametrize("first", [0, -1])
def test_ids_above_two_to_the_63_are_right(first: int, tmp_path: Path) -> None:
    ids = [first, *(2**64 - 1 - n for n in range(49))]
    with make(tmp_path / "j.jsonl", np.array(ids, dtype=np.uint64) if first == 0 else ids) as learner:
        asked = learner.ask(50)
        assert sorted(asked.tolist()) == sorted(ids) and asked.dtype == (np.uint64 if first == 0 else object)
        learner.tell(asked[:20], [0, 1] * 10)
        assert learner.pending.tolist() == asked[20:].tolist() and learner.batches[0].tolist() == asked.tolist()
    with make(tmp_path / "j.jsonl", ids) as learner:
        assert list(learner.labels) == asked[:20].tolist()


def test_ids_that_no_integer_type_holds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ids are text or whole numbers below 2\*\*64; got 18446744073709551616"):
        make(tmp_path / "j.jsonl", [2**64, *range(49)])
    assert not (tmp_path / "j.jsonl").exists()


def test_times_and_uuids_are_ids(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    times = np.datetime64("2026-01-01T00:00:00", "ns") + np.arange(50).astype("m8[h]")
    with make(tmp_path / "j.jsonl", times) as learner:
        asked = learner.ask(3)
        assert all(str(id).startswith("2026-01-0") for id in asked)
        learner.tell(learner.pending[:1], [0])
    with make(tmp_path / "j.jsonl", pandas.Series(times)) as learner:  # the same times as pandas gives them
        learner.tell([pandas.Timestamp(str(asked[1]))], [1])
        assert len(learner.labels) == 2
    keys = [uuid.UUID(int=n) for n in range(50)]
    learner = make(None, keys)
    learner.tell(keys[:2], [0, 1], unasked=True)
    assert learner.labels[str(keys[1])] == 1


def test_people_who_disagree_in_a_file_vote(tmp_path: Path) -> None:
    """Each event is checked after those before it: what was written can be read again."""
    (tmp_path / "two.csv").write_text("id,label,by\n7,0,ann\n7,1,ben\n8,1,ann\n")
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.import_csv(tmp_path / "two.csv") == 3
        assert learner.labels == {8: 1} and learner.votes[7] == {"ann": 0, "ben": 1}
    with make(tmp_path / "j.jsonl") as again:
        assert again.labels == {8: 1} and again.votes[7] == {"ann": 0, "ben": 1}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("2,1,,,2,'{''ann'': 0, ''ben'': 0}'\n2,1,,,,", "id 2 was asked of 3 people: say whose label it is"),
        ("2,1,ann,,,\n2,0,ann,,,", "id 2 is labelled 1 and was told again as 0"),
        ("2,1,ann,,,\n\n'2','x\ny',ann,,,", "line 5: "),
    ],
)
def test_rows_that_contradict_each_other_leave_the_journal_alone(rows: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,label,by,at,people,votes\n" + rows.replace("'", '"') + "\n")
    with make(tmp_path / "j.jsonl") as learner:
        before = (tmp_path / "j.jsonl").read_bytes()
        with pytest.raises(InputError, match=message):
            learner.import_csv(tmp_path / "x.csv")
    assert (tmp_path / "j.jsonl").read_bytes() == before
    make(tmp_path / "j.jsonl").close()


def test_a_third_vote_of_two_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text('id,label,by,at,people,votes\n7,,,,2,"{""ann"": 0}"\n')
    (tmp_path / "more.csv").write_text("id,label,by\n7,1,ben\n7,1,eve\n")
    with make(tmp_path / "j.jsonl") as learner:
        learner.import_csv(tmp_path / "one.csv")
        try:
            learner.import_csv(tmp_path / "more.csv")
        except InputError as error:
            assert "7" in str(error)
        labels, votes = learner.labels, learner.votes
    with make(tmp_path / "j.jsonl") as again:
        assert (again.labels, again.votes) == (labels, votes)


def test_votes_without_a_column_of_people(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('id,label,votes\n7,1,"{""ann"": 1, ""ben"": 1}"\n')
    with make(tmp_path / "j.jsonl") as learner:
        learner.import_csv(tmp_path / "x.csv")
        assert learner.labels == {7: 1} and learner.votes == {7: {"ann": 1, "ben": 1}}
