"""One cell: what a round records, where a run ends, pairing by seed."""

from __future__ import annotations

import itertools
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from badge import journal, predict
from badge.core.catalog import ONE_PASS
from badge.experiment import Cell, Serial, journal_path, run_cell, run_cells
from badge.journal.events import RunSettings
from small_cells import CELL, content, quiet, rounds, variants


def test_a_journal_holds_every_setting() -> None:
    hints = [get_type_hints(kind) for kind in (Cell, RunSettings)]
    cell, recorded = [
        {field.name: (types[field.name], field.default) for field in fields(kind)}
        for kind, types in zip((Cell, RunSettings), hints, strict=True)
    ]
    assert list(cell.items()) == list(recorded.items())


def test_a_cell_of_rand_makes_no_pass_over_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test set is predicted, and the batches, whose figures a round records."""
    from badge.experiment import cell as module
    from badge.learner import learner

    seen: list[int] = []
    plain = predict

    def counting(model: Any, pool: Any) -> Any:
        seen.append(len(pool))
        return plain(model, pool)

    monkeypatch.setattr(module, "predict", counting)
    monkeypatch.setattr(learner.ActiveLearner, "outputs", property(lambda self: pytest.fail("a pass over the pool")))
    (cell,) = variants("rand")
    run_cell(cell, tmp_path)
    tested = len(np.asarray(module.dataset_of(cell).y_test))
    assert seen == [tested, 10, tested, 10, tested, 10, tested, 3, tested]
    assert all(event["mean_norm"] > 0 for event in rounds(cell, tmp_path)[:-1])


def test_every_round_records_what_the_report_reads(reference: Path) -> None:
    start, *rest = journal.read(journal_path(CELL, reference))
    assert start["event"] == "start" and start["format"] == journal.FORMAT
    assert start["cell"] == CELL.__dict__ and start["cell"]["threads"] == 1
    assert len(start["data"].pop("digest")) == 32 and set(start["code"]) == {"data", "model"}
    assert start["data"] == {
        "name": "blobs",
        "rows": 150,
        "total": 1000,
        "complete": False,
        "text": "150 of 1,000",
    }
    assert {"badge", "python", "torch", "numpy"} <= set(start["versions"]) and "git" in start
    assert rest[-1] == {"event": "end", "reason": "labels reached", "labels": 45}
    recorded = [event for event in rest if event["event"] == "round"]
    assert [event["round"] for event in recorded] == [0, 1, 2, 3, 4]
    assert [event["labels"] for event in recorded] == [12, 22, 32, 42, 45]  # the last batch is smaller
    for event in recorded:
        assert 0 <= event["test_accuracy"] <= 1 and 0 <= event["train_accuracy"] <= 1
        assert event["epochs"] >= 1 and event["restarts"] >= 0
        assert event["train_seconds"] > 0 and event["predict_seconds"] > 0
    for event, following in itertools.pairwise(recorded):
        assert len(event["picked"]) == following["labels"] - event["labels"]
        assert event["select_seconds"] > 0 and event["mean_norm"] > 0
        assert event["log_det"] is None or isinstance(event["log_det"], float)
    last = recorded[-1]
    assert all(last[key] is None for key in ("picked", "select_seconds", "mean_norm", "log_det"))


def test_picks_are_distinct_and_never_labelled_before(reference: Path) -> None:
    for cell in variants(seeds=2):
        asked = [e for e in journal.read(journal_path(cell, reference)) if e["event"] == "ask"]
        ids = [id for event in asked for id in event["ids"]]
        assert len(set(ids)) == len(ids) == 45
        assert [event["picked"] for event in rounds(cell, reference)[:-1]] == [event["ids"] for event in asked[1:]]


@pytest.mark.parametrize(
    ("settings", "labels", "reason"),
    [
        ({"labels": None}, [12, 52, 90], "pool exhausted"),
        ({"labels": 1000}, [12, 52, 90], "pool exhausted"),
        ({"labels": 12}, [12], "labels reached"),
        ({"labels": None, "initial": 500}, [90], "pool exhausted"),
    ],
)
def test_where_a_run_ends(settings: dict[str, Any], labels: list[int], reason: str, tmp_path: Path) -> None:
    (cell,) = variants("rand", batch_size=40, **settings)
    run_cell(cell, tmp_path)
    assert [event["labels"] for event in rounds(cell, tmp_path)] == labels
    assert content(cell, tmp_path)[-1] == {"event": "end", "reason": reason, "labels": cell.labels}


def test_without_labels_a_run_ends_at_fifty_thousand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.experiment import cell as module

    assert module.MOST_LABELS == 50_000
    monkeypatch.setattr(module, "MOST_LABELS", 30)
    (cell,) = variants("rand", labels=None)
    run_cell(cell, tmp_path)
    assert [event["labels"] for event in rounds(cell, tmp_path)] == [12, 22, 30]
    assert content(cell, tmp_path)[-1]["reason"] == "50,000 labels"


def test_the_same_seed_is_the_same_start_for_every_strategy(tmp_path: Path) -> None:
    cells = variants(*ONE_PASS, seeds=2, labels=22)
    assert run_cells(cells, tmp_path, Serial(), quiet(cells)) == []
    for seed in range(2):
        firsts, models = set(), set()
        for cell in cells:
            if cell.seed == seed:
                first = next(e for e in journal.read(journal_path(cell, tmp_path)) if e["event"] == "ask")
                zero = rounds(cell, tmp_path)[0]
                firsts.add(tuple(first["ids"]))
                models.add((zero["test_accuracy"], zero["train_accuracy"], zero["epochs"]))
        assert len(firsts) == len(models) == 1
    assert len({tuple(rounds(cell, tmp_path)[0]["picked"]) for cell in cells}) > len(cells) / 2
    initial = {tuple(next(e for e in content(c, tmp_path) if e["event"] == "ask")["ids"]) for c in cells}
    assert len(initial) == 2


def test_journals_of_experiments_are_plain_json_lines(reference: Path) -> None:
    for line in journal_path(CELL, reference).read_text(encoding="utf-8").splitlines():
        assert "event" in json.loads(line)


def test_the_cost_of_a_cell_is_measured() -> None:
    from benchmarks.cell_cost import measure

    found = measure(repeats=1, labels=100)
    assert found["whole"] > found["parts"] > 0 and found["ratio"] == found["whole"] / found["parts"]
