"""Labels from export files of other tools, made by hand after their documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.errors import DataError
from badge.labelling.foreign import given_in

DOCCANO = [
    {"id": 1, "text": "fine", "label": ["good"], "Comments": [], "key": "t1"},
    {"id": 2, "text": "dull", "label": ["bad"], "Comments": ["sure?"], "key": "t2"},
    {"id": 3, "text": "open", "label": [], "Comments": [], "key": "t3"},
]
ARGILLA = [
    {"id": "a1", "status": "completed", "fields": {"text": "fine"}, "metadata": {"key": "t1"}, "suggestions": {},
     "responses": {"sentiment": [{"value": "good", "user_id": "u1"}, {"value": "good", "user_id": "u2"}]}, "vectors": {}},
    {"id": "a2", "status": "completed", "fields": {"text": "dull"}, "metadata": {"key": "t2"}, "suggestions": {},
     "responses": {"sentiment": [{"value": "bad", "user_id": "u1"}, {"value": "bad", "user_id": "u2"}]}, "vectors": {}},
]  # fmt: skip
LABEL_STUDIO = [
    {"id": 11, "data": {"text": "fine", "key": "t1"}, "annotations": [
        {"id": 5, "completed_by": {"id": 1, "email": "ann@example.org"}, "was_cancelled": False, "ground_truth": False,
         "result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["good"]}}]}]},
    {"id": 12, "data": {"text": "dull", "key": "t2"}, "annotations": [
        {"id": 6, "completed_by": 1, "was_cancelled": True, "result": []},
        {"id": 7, "completed_by": 2, "was_cancelled": False,
         "result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["bad"]}}]}]},
]  # fmt: skip
PRODIGY = [
    {"text": "fine", "_input_hash": 1, "_task_hash": 2, "label": "good", "answer": "accept", "meta": {"key": "t1"},
     "_annotator_id": "ann", "_session_id": "reviews-ann", "_timestamp": 1700000000},
    {"text": "fine", "_input_hash": 1, "_task_hash": 3, "label": "bad", "answer": "reject", "meta": {"key": "t1"}},
    {"text": "dull", "_input_hash": 4, "_task_hash": 5, "options": [{"id": "good"}, {"id": "bad"}], "accept": ["bad"],
     "answer": "accept", "meta": {"key": "t2"}, "_annotator_id": "ann"},
    {"text": "open", "options": [], "accept": [], "answer": "ignore", "meta": {"key": "t3"}},
]  # fmt: skip
FILES: dict[str, tuple[list[Any], bool]] = {
    "doccano": (DOCCANO, True),
    "argilla": (ARGILLA, False),
    "label-studio": (LABEL_STUDIO, False),
    "prodigy": (PRODIGY, True),
}


@pytest.mark.parametrize("tool", FILES)
def test_labels_of_another_tool_go_into_a_journal(tmp_path: Path, tool: str) -> None:
    records, lines = FILES[tool]
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    (tmp_path / "export").write_text(text + "\n")

    class Nothing:
        def fit(self, *given: Any) -> None: ...

    pool: dict[str, Any] = {"classes": ["good", "bad"], "ids": ["t1", "t2", "t3"], "journal": tmp_path / "j.jsonl"}
    badge.ActiveLearner(["fine", "dull", "open"], Nothing(), **pool).close()
    command = ["journal", "import", str(tmp_path / "j.jsonl"), str(tmp_path / "export"), "--from", tool, "--id", "key"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and f"{4 if tool == 'argilla' else 2} labels taken" in done.output
    with badge.ActiveLearner(["fine", "dull", "open"], Nothing(), **pool) as learner:
        assert learner.labels == {"t1": "good", "t2": "bad"}
        assert learner.votes == ({} if tool != "argilla" else {
            "t1": {"u1": "good", "u2": "good"}, "t2": {"u1": "bad", "u2": "bad"}
        })  # fmt: skip
    assert "0 labels taken" in CliRunner().invoke(app, command).output


def test_what_is_no_export_says_so(tmp_path: Path) -> None:
    for text, message in (("{", "cannot be read"), ('[{"annotations": [{"result": 5}]}]', "is not what"), ("", "")):
        (tmp_path / "x").write_text(text)
        if message:
            with pytest.raises(DataError, match=message):
                given_in(tmp_path / "x", "label-studio")
    (tmp_path / "x").write_text('{"text": "a", "label": ["good"]}')
    with pytest.raises(DataError, match="no field 'id'"):
        given_in(tmp_path / "x", "doccano")
