"""Folders of runs with foreign, half-written and hostile files: left out with a note, or one clear error; never a hang."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import stats
from badge.errors import BadgeError
from journal_lines import write_journal

CELL = {"data": "letter", "model": "mlp", "strategy": "rand", "batch_size": 10, "seed": 0, "labels": 20}
START: dict[str, Any] = {"event": "start", "cell": CELL, "data": {"rows": 5, "total": 5}}
ROUND: dict[str, Any] = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_journal(tmp_path / "good.jsonl", START, ROUND, {"event": "end"})
    return tmp_path


def test_what_is_no_journal_is_left_out_with_a_note(folder: Path) -> None:
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "nowhere.jsonl").symlink_to(folder / "gone")
    (folder / "loop").symlink_to(folder)
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "bytes.jsonl").write_bytes(bytes(range(256)) * 50)
    (folder / "deep.jsonl").write_text("[" * 100_000)
    (folder / "theirs.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    (folder / "lists.jsonl").write_text('[1, 2]\n"text"\nnull\n')
    results = stats.load(folder)
    assert len(results) == 1
    left = {note.text.split(":")[0] for note in results.notes if note.topic == "files left out"}
    named = {
        "folder",
        "nowhere",
        "empty",
        "bytes",
        "deep",
        "theirs",
        "lists",
        *(["pipe"] if hasattr(os, "mkfifo") else []),
    }
    assert left == {f"{name}.jsonl" for name in named}


@pytest.mark.parametrize(
    "events",
    [
        [{"event": "start", "cell": None}, ROUND],
        [{"event": "start", "cell": []}, ROUND],
        [{"event": "start", "cell": {}}, ROUND],
        *([{**START, "cell": {**CELL, field: value}}, ROUND] for field, value in [
            ("data", 5), ("data", None), ("data", "a\x00b"), ("data", "\ud800"), ("data", "x" * 301), ("model", ["mlp"]),
            ("batch_size", "10"), ("batch_size", 1e300), ("batch_size", -1), ("seed", None), ("seed", 2**70), ("seed", True),
        ]),
        *([START, {**ROUND, field: value}] for field, value in [
            ("round", None), ("round", "0"), ("round", 1.5), ("labels", "many"), ("labels", None), ("labels", 2**80),
            ("test_accuracy", "high"), ("test_accuracy", 7), ("test_accuracy", [0.5]),
            ("epochs", dict[str, int]()), ("log_det", "x"),
        ]),
        [{**START, "data": {"rows": "all", "total": 5}}, ROUND],
        [START, {"event": "round"}],
        [START, ROUND, {"event": 5}],
        [START, ROUND, {}],
    ],
)  # fmt: skip
def test_a_journal_that_means_nothing_is_one_line(events: list[Any], folder: Path) -> None:
    (folder / "good.jsonl").unlink()
    write_journal(folder / "bad.jsonl", *events)
    with pytest.raises(BadgeError) as caught:
        stats.load(folder)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_bytes_flipped_in_a_journal(folder: Path) -> None:
    """Any answer is that of the rounds as they were, or they are said to be damaged."""
    rng = np.random.default_rng(0)
    whole = (folder / "good.jsonl").read_bytes()
    for trial in range(150):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), size=rng.integers(1, 5)):
            content[at] = int(rng.integers(256))
        (folder / "good.jsonl").write_bytes(content[: rng.integers(len(content))] if trial % 3 == 0 else content)
        try:
            stats.load(folder)
        except BadgeError as error:
            assert "\n" not in str(error) and len(str(error)) < 600, error
