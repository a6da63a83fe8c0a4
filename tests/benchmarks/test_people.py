"""The benchmark of what a person waits for runs, on a small pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import people
from benchmarks.people import first_model, write_texts

pytest.importorskip("uvicorn", reason="uvicorn is not installed")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "RATE", 30.0)


def test_a_simulated_person_gets_typical_texts_and_then_picks_of_a_model() -> None:
    found = first_model(400)
    assert 0 < found.page <= found.typical < found.model and found.answers > 40 and found.peak > 50 * 10**6


def test_where_the_file_holds_labels_a_model_picks_at_once() -> None:
    found = first_model(400, 100)
    assert found.typical == 0 < found.page < found.model


def test_the_generated_texts_tell_their_class(tmp_path: Path) -> None:
    write_texts(tmp_path / "a.csv", 16)
    write_texts(tmp_path / "b.csv", 16)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert (tmp_path / "b.csv").read_text().splitlines() == lines and len(lines) == 17
    assert [int(line.rsplit(" c", 1)[1].rstrip(",")) // 20 for line in lines[1:]] == [*range(8), *range(8)]
    write_texts(tmp_path / "c.csv", 16, 2)
    labels = [line.split(",")[1] for line in (tmp_path / "c.csv").read_text().splitlines()[1:]]
    assert labels == ["class 0", *[""] * 14, "class 7"]
