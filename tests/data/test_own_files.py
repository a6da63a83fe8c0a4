"""One's own table as a data set: texts or numbers, with a column of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from badge import data, journal
from badge.cli import app
from badge.errors import DataError, InputError
from badge.experiment import Cell

WORDS = {"good": "a fine and moving film", "bad": "a dull and endless bore"}


def reviews(path: Path, n: int = 80, **more: Any) -> Path:
    rows = [
        {"review": f"{WORDS[kind]} number {i}", "stars": kind, **more}
        for i, kind in enumerate(["good", "bad"] * (n // 2))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_texts_of_a_file(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.jsonl")
    found = data.load_file(str(file), 0, "review", "stars")
    assert (found.classes, found.class_names, found.name) == (2, ("bad", "good"), "reviews.jsonl")
    assert len(found.y_train) == 64 and len(found.y_test) == 16 and found.X_train.ndim == 2
    other = data.load_file(str(file), 1, "review", "stars")
    assert (found.y_train != other.y_train).any()  # split by the seed
    seen: list[str] = []

    def encode(texts: list[str]) -> Any:
        seen.extend(texts)
        return np.array([[float("fine" in text), 1.0] for text in texts])

    encoded = data.load_file(str(file), 0, "review", "stars", encode, standardise=False)
    assert len(seen) == 80 and ((encoded.X_train[:, 0] == 1) == (encoded.y_train == 1)).all()


def test_a_split_that_the_file_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y;label;split\n" + "1,5;2;a;train\n3;4;b;train\n" * 3 + "5;6;b;test\n")
    found = data.load_file(str(tmp_path / "a.csv"), standardise=False)
    assert found.X_test.tolist() == [[5.0, 6.0]] and found.X_train[0].tolist() == [1.5, 2.0] and found.shape == (2,)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\n3,4\n", {}, "--label label: .* has no such column; it has 'a', 'b'"),
        ("a,label\n1,x\n2,y\n", {"text": "t"}, "--text t: .* has no such column"),
        (
            "a,label\nred,x\nblue,y\n",
            {},
            "column 'a' of .* does not hold numbers: name the column of texts with --text",
        ),
        ("a,label\n1,x\n2,\n", {}, r"has no 'label' in row 1 \(counted from 0\)"),
        ("a,label,split\n1,x,train\n2,y,train\n", {}, "says train or test; both are needed"),
        (
            "a,label,split\n1,x,train\n2,y,test\n3,x,dev\n",
            {},
            r"row 2 \(counted from 0\): split is dev: write train or test",
        ),
        (
            "a,label,split\n1,x,train\n2,y,\n3,x,test\n",
            {},
            r"row 1 \(counted from 0\): split is empty: write train or test",
        ),
        (
            "text,label\n" + "a,x\n!,y\n" * 10,
            {},
            "no text to train on has a word of two or more letters.*: give --encoder",
        ),
    ],
)
def test_files_that_cannot_be_run(content: str, options: dict[str, str], message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        data.load_file(str(tmp_path / "a.csv"), 0, **options)


def test_a_text_that_is_missing_is_no_word(tmp_path: Path) -> None:
    rows = [{"text": "good film", "label": "a"}, {"text": "dull film", "label": "b"}] * 10
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"text": None, "label": "a"}])))
    with pytest.raises(DataError, match=r"has no 'text' in row 20 \(counted from 0\): a run needs the text"):
        data.load_file(str(tmp_path / "a.jsonl"))


def test_a_class_may_be_called_none(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("a,label\n" + "1,None\n9,Some\n" * 10)
    assert data.resolve(str(path)).class_names == ("None", "Some")
    with pytest.raises(DataError, match=r"sizes.csv is for badge.data.resolve"):
        data.load(str(path))


def test_columns_are_for_files() -> None:
    with pytest.raises(InputError, match="text, label and encoder are for data in a file; digits is none"):
        Cell("digits", "mlp", "badge", 10, text="review")


def test_badge_run_on_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and texts by name, a linear head, a cold start; the same command again does nothing."""
    monkeypatch.chdir(tmp_path)
    reviews(Path("reviews.jsonl"))
    call = ["run", "--data", "reviews.jsonl", "--text", "review", "--label", "stars", "--model", "linear", "--first",
            "typiclust", "--strategy", "badge", "--batch-size", "6", "--initial", "8", "--labels", "20",
            "--workers", "1"]  # fmt: skip
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    (path,) = Path("runs").glob("*.jsonl")
    assert path.name == "reviews.jsonl-linear-b6-badge-first_typiclust-s0.jsonl"
    events = journal.read(path)
    assert [event["first"] for event in events if event["event"] == "learner"] == ["typiclust"]
    assert [event["test_accuracy"] for event in events if event["event"] == "round"][-1] == 1.0
    assert CliRunner().invoke(app, call).exit_code == 0 and journal.read(path) == events
    plain = CliRunner().invoke(app, [*call[:9], "--strategy", "badge", *call[13:], "--out", "other"])
    assert plain.exit_code == 0, plain.output
    drawn = journal.read(next(Path("other").glob("*.jsonl")))
    first = [next(event["ids"] for event in found if event["event"] == "ask") for found in (events, drawn)]
    assert first[0] != first[1]


def test_badge_run_with_an_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *sorted({w for text in WORDS.values() for w in text.split()}),
    ]
    Path("bert").mkdir()
    Path("bert/vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    transformers.BertTokenizer("bert/vocab.txt").save_pretrained("bert")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained("bert")
    reviews(Path("reviews.jsonl"), 40)
    call = ["run", "--data", "reviews.jsonl", "--text", "review", "--label", "stars", "--encoder", "hf:bert",
            "--batch-size", "4", "--initial", "6", "--labels", "14", "--workers", "1"]  # fmt: skip
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    (path,) = Path("runs").glob("*.jsonl")
    assert "-linear-" in path.name and journal.read(path)[-1]["event"] == "end"
