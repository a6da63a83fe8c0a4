"""Labels from export files of other tools, made by hand after their documentation and source."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import badge
from badge.cli import app
from badge.errors import DataError
from badge.labelling.foreign import given_in

# github.com/doccano/doccano, backend/data_export: `ExportedExample.to_dict` puts the columns of the upload beside id and
# text; a project that people label together is one all.jsonl, any other an archive of a <user>.jsonl per person
DOCCANO = [
    {"id": 1, "text": "fine\u2028and more", "key": "t1", "label": ["good"], "Comments": []},
    {"id": 2, "text": "dull", "key": "t2", "label": ["bad"], "Comments": ["sure?"]},
    {"id": 3, "text": "open", "key": "t3", "label": [], "Comments": []},
]
# docs.argilla.io/latest/reference/argilla/records/records (`Record.to_dict`) and `dataset.records.to_json`: one list, answers
# by question; a response that was discarded has no value
ARGILLA = [
    {"id": "a1", "fields": {"text": "fine"}, "metadata": {"key": "t1"},
     "suggestions": {"sentiment": {"value": "bad", "score": 0.9, "agent": "model"}},
     "responses": {"sentiment": [{"value": "good", "user_id": "u1"}, {"value": "good", "user_id": "u2"}]},
     "vectors": {}, "_server_id": "0b1c"},
    {"id": "a2", "fields": {"text": "dull"}, "metadata": {"key": "t2"}, "suggestions": {},
     "responses": {"sentiment": [{"value": "bad", "user_id": "u1"}, {"value": "bad", "user_id": "u2"}]},
     "vectors": {}, "_server_id": "0b1d"},
    {"id": "a3", "fields": {"text": "open"}, "metadata": {"key": "t3"}, "suggestions": {},
     "responses": {"sentiment": [{"value": None, "user_id": "u1"}]}, "vectors": {}, "_server_id": "0b1e"},
]  # fmt: skip
# labelstud.io/guide/task_format: `completed_by` is a number; the serializer of exports can also give id, email and names
LABEL_STUDIO: list[dict[str, Any]] = [
    {"id": 11, "created_at": "2021-03-09T21:52:49.513742Z", "updated_at": "2021-03-09T22:16:08.746926Z", "project": 83,
     "data": {"text": "fine", "key": "t1"}, "predictions": [{"model_version": "m", "result": [
         {"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["bad"]}}]}],
     "annotations": [
        {"id": 5, "completed_by": {"id": 1, "email": "ann@example.org", "first_name": "", "last_name": ""}, "task": 11,
         "was_cancelled": False, "ground_truth": False, "lead_time": 4.288, "result_count": 1, "result": [
             {"id": "Dx_aB91ISN", "from_name": "c", "to_name": "t", "type": "choices", "origin": "manual",
              "value": {"choices": ["good"]}}]}]},
    {"id": 12, "project": 83, "data": {"text": "dull", "key": "t2"}, "predictions": [], "annotations": [
        {"id": 6, "completed_by": 1, "was_cancelled": True, "result": []},
        {"id": 7, "completed_by": 2, "was_cancelled": False,
         "result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["bad"]}}]}]},
    {"id": 13, "project": 83, "data": {"text": "open", "key": "t3"}, "predictions": [], "annotations": []},
]  # fmt: skip
# prodi.gy/docs/api-interfaces: `classification` has a label, `choice` the ids of the accepted options; `answer` is accept,
# reject or ignore; db-out adds hashes, the person, the session and the time
PRODIGY = [
    {"text": "fine", "_input_hash": 1, "_task_hash": 2, "label": "good", "_view_id": "classification", "answer": "accept",
     "meta": {"key": "t1"}, "_timestamp": 1690289516, "_annotator_id": "ann", "_session_id": "reviews-ann"},
    {"text": "fine", "_input_hash": 1, "_task_hash": 3, "label": "bad", "answer": "reject", "meta": {"key": "t1"}},
    {"text": "dull", "_input_hash": 4, "_task_hash": 5, "options": [{"id": "good", "text": "good"}, {"id": "bad",
     "text": "bad"}], "_view_id": "choice", "config": {"choice_style": "single"}, "accept": ["bad"], "answer": "accept",
     "meta": {"key": "t2"}, "_timestamp": 1690289519, "_annotator_id": "ann", "_session_id": "reviews-ann"},
    {"text": "open", "options": [], "accept": [], "answer": "ignore", "meta": {"key": "t3"}},
]  # fmt: skip
BOTH = {"t1": {"u1": "good", "u2": "good"}, "t2": {"u1": "bad", "u2": "bad"}}


def lines(records: list[Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write(path: Path, case: str) -> None:
    """An export file as the tool writes it."""
    if case == "doccano, a file per person":
        with zipfile.ZipFile(path, "w") as archive:
            for person in ("u1", "u2"):
                archive.writestr(f"{person}.jsonl", lines(DOCCANO))
        return
    whole = {"argilla": ARGILLA, "label-studio": LABEL_STUDIO}
    text = json.dumps(whole[case]) if case in whole else lines(DOCCANO if case == "doccano" else PRODIGY)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "votes"),
    [
        ("doccano", {}),
        ("doccano, a file per person", BOTH),
        ("argilla", BOTH),
        ("label-studio", {}),
        ("prodigy", {}),
    ],
)
def test_labels_of_another_tool_go_into_a_journal(tmp_path: Path, case: str, votes: dict[str, Any]) -> None:
    write(tmp_path / "export", case)

    class Nothing:
        def fit(self, *given: Any) -> None: ...

    pool: dict[str, Any] = {"classes": ["good", "bad"], "ids": ["t1", "t2", "t3"], "journal": tmp_path / "j.jsonl"}
    badge.ActiveLearner(["fine", "dull", "open"], Nothing(), **pool).close()
    files, tool = [str(tmp_path / "j.jsonl"), str(tmp_path / "export")], case.split(",")[0]
    command = ["journal", "import", *files, "--from", tool, "--id", "key"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0 and f"{4 if votes else 2} labels taken" in done.output, done.output
    with badge.ActiveLearner(["fine", "dull", "open"], Nothing(), **pool) as learner:
        assert learner.labels == {"t1": "good", "t2": "bad"} and learner.votes == votes
    assert "0 labels taken" in CliRunner().invoke(app, command).output


@pytest.mark.parametrize("own", [["7", "8", "9"], [7, 8, 9], None])
@pytest.mark.parametrize("given", ["7", 7])
def test_ids_are_those_of_the_pool_whatever_their_type_in_the_file(tmp_path: Path, own: Any, given: Any) -> None:
    """7 and "7" are one id, also if the pool is not at hand."""

    class Nothing:
        def fit(self, *given: Any) -> None: ...

    pool: dict[str, Any] = {"classes": ["good", "bad"], "ids": own, "journal": tmp_path / "j.jsonl"}
    texts = ["a", "b", "c"] if own else ["x"] * 9
    badge.ActiveLearner(texts, Nothing(), **pool).close()
    (tmp_path / "x").write_text(json.dumps({"id": given, "label": ["good"]}))
    done = CliRunner().invoke(
        app, ["journal", "import", str(tmp_path / "j.jsonl"), str(tmp_path / "x"), "--from", "doccano"]
    )
    assert "1 labels taken" in done.output
    with badge.ActiveLearner(texts, Nothing(), **pool) as learner:
        assert learner.labels == {own[0] if own else 7: "good"}


def test_who_answered_what(tmp_path: Path) -> None:
    """Drafts do not count; people without a name have a number; two questions are not mixed."""

    def given(tool: str, record: dict[str, Any]) -> list[Any]:
        (tmp_path / "x").write_text(json.dumps(record))
        return given_in(tmp_path / "x", tool)

    def answer(*names: str) -> dict[str, Any]:
        result = [{"from_name": name, "type": "choices", "value": {"choices": ["good"]}} for name in names]
        return {"id": 7, "data": {}, "annotations": [{"completed_by": {"id": 3}, "result": result}]}

    drafts = [{"value": "bad", "user_id": 1, "status": s} for s in ("draft", "discarded", "submitted")]
    assert given("argilla", {"id": 7, "responses": {"q": drafts}}) == [(7, ["bad"], "1")]
    assert given("label-studio", answer("tone")) == [(7, ["good"], "3")]
    with pytest.raises(DataError, match=r"item 1: it answers 2 questions \(other, tone\)"):
        given("label-studio", answer("tone", "other"))
    prodigy = {"id": 7, "label": "good", "answer": "accept"}
    assert given("prodigy", {**prodigy, "_session_id": "ann"})[0][2] == "ann"
    assert given("prodigy", {**prodigy, "_annotator_id": 5})[0][2] == "5"


# the last is what Label Studio calls JSON-MIN: it has no annotations, and is not the format to export
@pytest.mark.parametrize(
    ("tool", "text", "message"),
    [
        ("label-studio", "{", "cannot be read"),
        ("label-studio", '[{"annotations": [{"result": 5}]}]', "item 1 is not what label-studio exports"),
        ("doccano", '{"text": "a", "label": ["good"]}', "no field 'id'"),
        ("doccano", '{"id": [7], "label": ["good"]}', r"item 1: the id \[7\] is neither a text nor a whole number"),
        ("label-studio", '[{"id": 1, "text": "a", "c": "good", "annotator": 1, "annotation_id": 5}]', "is not what"),
    ],
)
def test_what_is_no_export_says_so(tmp_path: Path, tool: str, text: str, message: str) -> None:
    (tmp_path / "x").write_text(text)
    with pytest.raises(DataError, match=message):
        given_in(tmp_path / "x", tool)
