"""What was, and what it says: history, events, advice, explanations, progress."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge import journal
from badge.errors import InputError
from badge.learner.advice import advice, wilson
from badge.learner.history import History
from sixty import TRUTH, X, make, rounds


def test_history_says_when_by_whom_and_what_was_predicted(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1}) as learner:
        ids = learner.ask(6)
        said = learner.outputs.probabilities[ids].argmax(dim=1).tolist()
        learner.tell(ids, TRUTH[ids], by="ann")
        learner.relabel(ids[0], 1 - int(TRUTH[ids[0]]), by="ben")
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1}) as learner:
        rows = learner.history
        assert [row.kind for row in rows] == ["initial"] * 2 + ["tell"] * 6 + ["relabel"]
        told = rows.rows[2:8]
        assert [row.predicted for row in told] == said and {row.by for row in told} == {"ann"}
        assert [row.correct for row in told] == (np.array(said) == TRUTH[ids]).tolist()
        assert told[-1].prequential == pytest.approx(np.mean(np.array(said) == TRUTH[ids]))
        assert all(row.at is not None and row.at.endswith("Z") for row in rows)
        table = rows.to_pandas()
        assert len(table) == 9 and table["label"].tolist() == [row.label for row in rows]
        assert "<td>ann</td>" in rows._repr_html_() and "9 labels" in rows._repr_html_()
    assert "&lt;b&gt;" in History([told[0].__class__(**{**vars(told[0]), "by": "<b>"})])._repr_html_()


def test_every_event_is_reported_once_it_is_on_disk(tmp_path: Path) -> None:
    seen: list[tuple[int, str, int]] = []
    path = tmp_path / "j.jsonl"

    def on_event(event: journal.Event) -> None:
        seen.append((event["n"], event["event"], len(journal.read(path))))

    with make(path, on_event=on_event) as learner:
        rounds(learner, 2)
        learner.skip([int(learner.candidates[0])])
        learner.use("marg")
        learner.tell([], [])  # nothing happens
    assert seen == [(n, kind, n) for n, kind in enumerate(["ask", "tell", "ask", "tell", "skip", "use"], start=2)]


def test_a_callback_may_call_the_learner_and_its_error_loses_nothing(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")

    def on_event(event: journal.Event) -> None:
        assert threading.current_thread() is threading.main_thread() and learner.labels is not None
        if event["event"] == "tell":
            raise RuntimeError("the tracker is down")

    learner.on_event = on_event
    ids = learner.ask(3)
    with pytest.raises(RuntimeError, match="tracker is down"):
        learner.tell(ids, TRUTH[ids])
    assert len(learner.labels) == 3
    learner.close()
    assert len(make(tmp_path / "j.jsonl").labels) == 3


def test_advice_compares_models_across_restarts(tmp_path: Path) -> None:
    with make(None, initial={0: 0, 1: 1, 2: 0, 3: 1}) as whole:
        rounds(whole, 5)
        reference = whole.advice()
    for _ in range(5):
        with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1, 2: 0, 3: 1}) as learner:
            rounds(learner, 1)
    with make(tmp_path / "j.jsonl", initial={0: 0, 1: 1, 2: 0, 3: 1}) as learner:
        assert learner.advice() == reference
    assert reference.pairs == 3 and reference.changed is not None and 0 <= reference.changed <= 1
    assert reference.interval is not None and reference.predictions == 20
    assert reference.interval[0] < reference.accuracy < reference.interval[1]  # type: ignore[operator]


def test_advice_counts_what_changed() -> None:
    flips = iter([0, 3, 0, 0, 0, 0])  # predictions of the first 3 that are turned round, from model to model

    def scripted(model: Any, pool: Any) -> badge.Outputs:
        p = np.where(TRUTH[:, None] == [0, 1], 0.9, 0.1)
        count = next(flips)
        p[:count] = p[:count, ::-1]
        return badge.Outputs(p, X)

    learner = make(initial={0: 0, 1: 1}, predict=scripted)
    told = []
    for _ in range(6):
        ids = learner.ask(2)
        learner.tell(ids, TRUTH[ids])
        told.append(learner.advice())
    assert [round((each.changed or 0) * 60) for each in told] == [0, 3, 3, 0, 0, 0]
    assert told[0].changed is None and "Two models in a row are needed" in str(told[0])
    assert [each.stop for each in told] == [False, False, False, False, False, True]
    assert told[-1].kappa == 1.0 and "have stabilised" in str(told[-1]) and told[-1].accuracy == 1.0
    assert "still change" in str(told[3])
    assert advice([], History([]), 0).text.startswith("Two models")


def test_the_interval_is_wilsons() -> None:
    from scipy.stats import binomtest

    for right, n in ((0, 5), (5, 5), (90, 100), (1, 2)):
        exact = binomtest(right, n).proportion_ci(method="wilson")
        assert wilson(right, n) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_explain_after_tell_is_about_the_model_that_picked(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with make(path) as learner:
        with pytest.raises(InputError, match="nothing was asked yet"):
            learner.explain()
        ids = learner.ask(6)
        with pytest.raises(InputError, match="no model picked the last batch"):
            learner.explain()
        learner.tell(ids, TRUTH[ids])
        ids = learner.ask(4)
        before = learner.explain()
        learner.tell(ids, TRUTH[ids])
        assert learner.explain() is before
        learner._explained = None
        assert np.array_equal(learner.explain().norm, before.norm)  # the outputs are still there
        new = learner.explain(ids)  # by the model of now
        assert not np.array_equal(new.norm, before.norm)
        learner._explained = None
        assert np.array_equal(learner.explain().norm, before.norm)  # trained again
        assert np.array_equal(learner.explain(ids).norm, new.norm)
    with make(path) as learner:
        assert np.array_equal(learner.explain().norm, before.norm) and learner.explain().ids.tolist() == ids.tolist()


def test_progress_is_drawn_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    learner = make(initial={0: 0, 1: 1})
    learner.ask(2, progress=True)
    assert "train · predict · pick" in capsys.readouterr().err


def test_history_is_read_on(tmp_path: Path) -> None:
    learner = make(tmp_path / "j.jsonl")
    for n in range(1, 5):
        rounds(learner, 1)
        first = learner.history
        assert len(first) == 4 * n and [row.event for row in first] == [row.event for row in learner.history]
    learner.close()
    assert make(tmp_path / "j.jsonl").history.rows == first.rows
