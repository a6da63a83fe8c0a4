"""Labels that live on: new classes, another strategy, labels from elsewhere, lists of labels, several people."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge import journal
from badge.errors import InputError, JournalError
from badge.learner.advice import cohen_kappa
from sixty import TRUTH, X, make, rounds


def test_a_class_is_added(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    options: dict[str, Any] = {"trainer": LogisticRegression(), "predict": badge.predict}
    with make(tmp_path / "j.jsonl", classes=["a", "b"], **options) as learner:
        ids = learner.ask(9)
        learner.tell(ids[:8], np.where(TRUTH[ids[:8]], "b", "a"))
        with pytest.raises(InputError, match=r"label 'c' of id .* is not one of the classes"):
            learner.tell(ids[8:], ["c"])
        learner.add_class("c")
        learner.tell(ids[8:], ["c"])
        assert learner.classes == ["a", "b", "c"] and learner.outputs.probabilities.shape == (60, 3)
        reference = learner.ask(4).tolist()
        for name, message in (("c", "is one of the classes already"), (1.5, "needs a name"), (None, "needs a name")):
            with pytest.raises(InputError, match=message):
                learner.add_class(name)  # type: ignore[arg-type]
    for classes in (["a", "b"], ["a", "b", "c"]):
        with make(tmp_path / "j.jsonl", classes=classes, **options) as learner:
            assert learner.pending.tolist() == reference
    with pytest.raises(JournalError, match=r"its set of classes is \['a', 'b', 'c'\].*add_class adds one"):
        make(tmp_path / "j.jsonl", classes=["a", "b", "x"], **options)
    numbered = make()
    numbered.add_class()
    assert numbered.classes == [0, 1, 2]
    with pytest.raises(InputError, match="needs the next number, 3"):
        numbered.add_class("cat")


def test_another_strategy_from_now_on(tmp_path: Path) -> None:
    def run(path: Any, close: bool) -> list[list[Any]]:
        learner = make(path, strategy="albl")
        rounds(learner, 3)
        learner.use("marg")
        if close:
            learner.close()
            with pytest.warns(UserWarning, match="began with albl and uses marg since"):
                learner = make(path, strategy="albl")  # the journal's first; or the one in force:
            learner.close()
            learner = make(path, strategy="marg")
        rounds(learner, 2)
        learner.use("albl")  # without memory of its first time
        return rounds(learner, 2)

    assert run(tmp_path / "j.jsonl", close=True) == run(None, close=False)
    used = [event["strategy"] for event in journal.read(tmp_path / "j.jsonl") if event["event"] == "use"]
    assert used == ["marg", "albl"]
    with pytest.raises(JournalError, match=r"its strategy is 'albl', yours is 'badge'.*learner.use changes it"):
        make(tmp_path / "j.jsonl", strategy="badge")
    with pytest.raises(InputError, match="unknown strategy"):
        make().use("nope")


def test_labels_of_ids_that_were_never_asked(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        learner.tell([3, 4, 5], TRUTH[[3, 4, 5]], unasked=True)
        ids = learner.ask(3)
        learner.skip([6])
        learner.tell([int(ids[0]), 6], [0, 1], unasked=True)
        assert set(learner.labels) == {3, 4, 5, 6, int(ids[0])} and not learner.skipped
        with pytest.raises(InputError, match="is labelled"):
            learner.tell([3], [1 - int(TRUTH[3])], unasked=True)
        reference = learner.ask(4).tolist()
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.pending.tolist()[-4:] == reference
        assert [row.kind for row in learner.history][:3] == ["unasked"] * 3


def test_labels_from_csv(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("id,label,by\n3,0,ann\n4,1,ben\n5,0,ann\n", encoding="utf-8")
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.import_csv(file) == 3 and learner.import_csv(file) == 0
        assert learner.labels == {3: 0, 5: 0, 4: 1}
        assert [(row.kind, row.by) for row in learner.history] == [
            ("import", "ann"),
            ("import", "ann"),
            ("import", "ben"),
        ]
        for text, message in (
            ("id,label\n3,1\n", "line 2: id 3 is labelled 0 and was told again as 1"),
            ("id,label\n99,1\n", "line 2: id 99 is outside the pool"),
            ("id,label\nx,1\n", "line 2: ids are whole numbers"),
            ("id,label\n7,cat\n", "line 2: label 'cat' of id 7 is not one of the classes"),
            ("id,label\n7\n", "line 2: not as many values as columns"),
            ("key,label\n7,1\n", "has no column 'id'"),
            ("", "has no column 'id'; it has none"),
        ):
            file.write_text(text, encoding="utf-8")
            with pytest.raises(InputError, match=message):
                learner.import_csv(file)
        with pytest.raises(InputError, match="cannot read"):
            learner.import_csv(tmp_path / "absent.csv")
        with pytest.raises(InputError, match="a column is given by its name, not by ndarray"):
            learner.import_csv(file, by=np.zeros(3))  # type: ignore[arg-type]
        assert len(learner.labels) == 3


def test_lists_of_labels(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    tags = ["right", "high"]
    truth = [[name for name, has in zip(tags, row > 0, strict=True) if has] for row in X]
    options: dict[str, Any] = {"trainer": OneVsRestClassifier(LogisticRegression()), "predict": badge.predict}
    with make(tmp_path / "j.jsonl", classes=tags, multilabel=True, **options) as learner:
        for _ in range(3):
            ids = learner.ask(10)
            learner.tell(ids, [truth[i] for i in ids])
        assert learner.labels[int(ids[0])] == truth[ids[0]]
        assert learner.outputs.probabilities.shape == (60, 2)
        with pytest.raises(InputError, match="is not a list: an example has any number of classes"):
            learner.relabel(ids[0], "right")
        assert isinstance(learner.history[-1].predicted, list)
        reference = learner.ask(5).tolist()
    with make(tmp_path / "j.jsonl", classes=tags, multilabel=True, **options) as learner:
        assert learner.pending.tolist() == reference
    assert json.loads((tmp_path / "j.jsonl").read_text().splitlines()[0])["multilabel"] is True


def test_the_majority_counts_and_ties_are_pending(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl") as learner:
        a, b, c = (int(id) for id in learner.ask(3, people=2))
        learner.tell([a, b, c], [0, 0, 1], by="ann")
        assert len(learner.labels) == 0 and learner.pending.tolist() == [a, b, c]
        learner.tell([a, b], [0, 1], by="ben")
        assert learner.labels == {a: 0} and learner.pending.tolist() == [b, c]
        found = learner.agreement()
        assert found.items == {a: 1.0, b: 0.0} and found.ties == [b]
        with pytest.raises(InputError, match="was asked of 2 people: say whose label it is"):
            learner.tell([c], [1])
        with pytest.raises(InputError, match=r"is labelled 1 and was told again as 0; relabel\(\d+, 0, by='ann'\)"):
            learner.tell([c], [0], by="ann")
        learner.tell([b], [1], by="cid")  # decides the tie
        assert learner.labels == {a: 0, b: 1} and learner.votes[b] == {"ann": 0, "ben": 1, "cid": 1}
    with make(tmp_path / "j.jsonl") as learner:
        assert learner.labels == {a: 0, b: 1} and learner.pending.tolist() == [c]
        learner.relabel(b, 0, by="cid")
        assert learner.labels[b] == 0
        learner.relabel(a, 1, by="ben")  # now a tie
        assert a not in learner.labels and set(learner.pending.tolist()) == {a, c}
        learner.relabel(a, 1)  # decided, whatever the votes
        assert learner.labels[a] == 1
        with pytest.raises(InputError, match="'dan' has not labelled id"):
            learner.relabel(a, 0, by="dan")
        with pytest.raises(InputError, match="by= is the name"):
            learner.tell([c], [1], by=5)  # type: ignore[arg-type]
    assert make(tmp_path / "j.jsonl").labels == learner.labels


def test_kappa_is_cohens() -> None:
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    for classes in (2, 3, 5):
        for _ in range(20):
            one = rng.integers(classes, size=40)
            other = np.where(rng.random(40) < 0.6, one, rng.integers(classes, size=40))
            assert cohen_kappa(one.tolist(), other.tolist()) == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)
    assert math.isnan(cohen_kappa([1, 1], [1, 1])) and math.isnan(cohen_kappa([], []))


def test_agreement_of_pairs() -> None:
    from sklearn.metrics import cohen_kappa_score

    learner = make(initial={0: 0, 1: 1})
    ids = learner.ask(20, people=3)
    rng = np.random.default_rng(0)
    given = {person: np.where(rng.random(20) < 0.8, TRUTH[ids], 1 - TRUTH[ids]) for person in ("ann", "ben", "cid")}
    for person, labels in given.items():
        learner.tell(ids, labels, by=person)
    found = learner.agreement()
    for (one, other), kappa in found.kappa.items():
        assert kappa == pytest.approx(cohen_kappa_score(given[one], given[other]))
        assert found.counts[one, other] == 20
    assert len(found.kappa) == 3 and not len(learner.pending) and not found.ties
    majority = (sum(given.values()) >= 2).astype(int)
    assert {id: learner.labels[id] for id in ids.tolist()} == dict(zip(ids.tolist(), majority.tolist(), strict=True))
    assert "ann and ben: κ = " in str(found)
