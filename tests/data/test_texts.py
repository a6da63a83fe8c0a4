"""Data sets of texts: found, read, turned into vectors without labels and without chance."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge.data import texts
from badge.errors import DataError

SHARED = Path(os.environ.get("BADGE_DATA") or Path(__file__).parents[3] / "shared" / "data")
WORDS = {"money": "how much cash and money is on my account", "card": "my card was lost or stolen please block it"}


def lines(n: int = 40, seed: int = 0) -> list[dict[str, Any]]:
    """Questions of four words about money or a card, the last quarter for test."""
    rng = np.random.default_rng(seed)
    return [
        {
            "split": "train" if i < 3 * n // 4 else "test",
            "label": label,
            "text": " ".join(rng.choice(WORDS[label].split(), size=4)),
        }
        for i in range(n)
        for label in [list(WORDS)[i % 2]]
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BADGE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def write(path: Path, rows: list[Any]) -> None:
    text = "\n".join(json.dumps(row) for row in rows)
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())


@pytest.mark.parametrize("ending", ["jsonl.xz", "jsonl"])
def test_texts_become_vectors(folder: Path, ending: str) -> None:
    write(folder / f"trec.{ending}", lines())
    data = badge.data.load("trec")
    assert data.class_names == ("card", "money") and not data.complete and data.rows == 40
    assert data.X_train.shape[0] == 30 and data.X_train.dtype == np.float32 and not data.image
    nearest = ((data.X_test[:, None] - data.X_train) ** 2).sum(axis=2).argmin(axis=1)
    assert (data.y_train[nearest] == data.y_test).mean() > 0.8


def test_the_same_for_every_seed_and_call() -> None:
    train, test = [row["text"] for row in lines()], ["my card", "nothing of that kind"]
    first, again = texts.embedded(train, test, 8), texts.embedded(train, test, 8)
    for a, b in zip(first, again, strict=True):
        assert (a == b).all()
    assert first[0].shape == (40, 8) and first[1].shape == (2, 8)
    assert texts.embedded(train[:3], test)[0].shape[1] == 3  # no more columns than texts


def test_labels_are_not_looked_at(folder: Path) -> None:
    write(folder / "trec.jsonl", lines())
    before = badge.data.load("trec").X_train
    texts._arrays.cache_clear()
    write(folder / "trec.jsonl", [row | {"label": "one" if i % 3 else "two"} for i, row in enumerate(lines())])
    assert (badge.data.load("trec").X_train == before).all()
    texts._arrays.cache_clear()


def test_missing_and_damaged_files_say_so(folder: Path) -> None:
    with pytest.raises(DataError, match=r"banking77 is not at .*banking77\.jsonl\.xz and .*one JSON object a line"):
        badge.data.load("banking77")
    for content, message in (
        (b"not an archive", r"trec\.jsonl\.xz cannot be read"),
        (lzma.compress(b'{"split": "train"}\n'), "line 1: needed are split, label and text"),
        (lzma.compress(b'{"split": "train", "label": "a", "text": "b"}\n'), "has no line with split 'test'"),
        (lzma.compress(b'{"split": "dev", "label": "a", "text": "b"}\n'), "line 1: split is dev: write train or test"),
    ):
        (folder / "trec.jsonl.xz").write_bytes(content)
        with pytest.raises(DataError, match=message):
            badge.data.load("trec")


@pytest.mark.skipif(not (SHARED / "trec.jsonl.xz").is_file(), reason="no trec.jsonl.xz: set BADGE_DATA")
def test_real_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_DATA", str(SHARED))
    parts, labels = texts.read(SHARED / "trec.jsonl.xz")
    assert sum(map(len, parts.values())) == 5952
    assert labels["class_names"].tolist() == ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]
