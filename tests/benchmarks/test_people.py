"""The benchmark of what a person waits for runs, on a small pool."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import people
from benchmarks.people import first_model, write_texts

pytest.importorskip("uvicorn", reason="uvicorn is not installed")


def test_a_simulated_person_gets_typical_texts_and_then_picks_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "RATE", 30.0)
    typical, model, peak = first_model(400)
    assert 0 < typical < model and peak > 50 * 10**6


def test_the_generated_texts_tell_their_class(tmp_path: Path) -> None:
    write_texts(tmp_path / "a.csv", 16)
    write_texts(tmp_path / "b.csv", 16)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert (tmp_path / "b.csv").read_text().splitlines() == lines and len(lines) == 17
    assert [int(line.rsplit(" c", 1)[1]) // 20 for line in lines[1:]] == [*range(8), *range(8)]
