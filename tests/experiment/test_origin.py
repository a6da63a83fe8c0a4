"""What a run was made of: code and data that changed are noticed, versions are noted."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import journal, stats
from badge.errors import JournalError
from badge.experiment import Cell, Serial, finished, journal_path, run_cell, run_cells
from small_cells import CELL, content, quiet

cell_module = importlib.import_module("badge.experiment.cell")
origin = importlib.import_module("badge.experiment.origin")


OWN = """
import numpy as np
from torch import nn
from badge.data import Dataset
import {helper}

def load(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(80, 2)).astype("float32") * {helper}.SCALE
    return Dataset(x[:60], (x[:60, 0] > 0).astype(int), x[60:], (x[60:, 0] > 0).astype(int), classes=2, lr=0.02)

def build(shape, classes):
    return nn.Linear(shape[0], classes)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Writes a module of one's own and its helper, and forgets what was loaded of them before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(source: str = OWN, scale: str = "1.0") -> Cell:
        (tmp_path / "edited.py").write_text(source.format(helper="edited_helper"))
        (tmp_path / "edited_helper.py").write_text(f"SCALE = {scale}\n")
        forget()
        return Cell("edited:load", "edited:build", "rand", batch_size=10, initial=10, labels=30, max_epochs=5)

    def forget() -> None:
        for name in ("edited", "edited_helper"):
            sys.modules.pop(name, None)
            for cached in (tmp_path / "__pycache__").glob(f"{name}.*"):
                cached.unlink()
        importlib.invalidate_caches()
        origin.code_digest.cache_clear()
        cell_module.load.cache_clear()

    yield write
    forget()


def test_an_edit_of_ones_own_code_is_noticed(own: Any, tmp_path: Path) -> None:
    cell = own()
    run_cell(cell, tmp_path)
    assert finished(own(), tmp_path)
    assert finished(own(OWN + "\n# a remark\n"), tmp_path), "what does not run does not count"
    for edited in (own(OWN.replace("x[:60, 0] > 0", "x[:60, 1] > 0")), own(scale="2.0")):
        message = (
            r"was made by another version of the code of edited:load \(data\): put the old one back, or use another"
        )
        with pytest.raises(JournalError, match=message):
            finished(edited, tmp_path)
        failed = run_cells([edited], tmp_path, Serial(), quiet([edited]))
        assert "another version of the code of edited:load" in str(failed[0].error)


def test_other_data_under_the_same_name_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_DATA", str(tmp_path))
    cell = Cell("mine", "mlp", "rand", batch_size=10, initial=10, labels=30, max_epochs=3, width=8)
    x, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % 2
    np.savez(tmp_path / "mine.npz", X=x, y=y)
    run_cell(cell, tmp_path)
    whole = journal_path(cell, tmp_path).read_bytes().splitlines(keepends=True)
    journal_path(cell, tmp_path).write_bytes(b"".join(whole[:-3]))
    x[0, 0] += 1
    np.savez(tmp_path / "mine.npz", X=x, y=y)
    cell_module.load.cache_clear()
    with pytest.raises(JournalError, match="was made on other data of the name mine: put the old one back"):
        run_cell(cell, tmp_path)


def test_the_report_says_where_runs_of_different_code_are_compared(own: Any, tmp_path: Path) -> None:
    run_cell(own(), tmp_path / "a")
    edited = own(OWN.replace("x[60:, 0] > 0", "x[60:, 1] > 0"))
    run_cell(Cell(**{**edited.__dict__, "strategy": "conf"}), tmp_path / "b")
    topics = {note.topic: note.text for note in stats.load([tmp_path / "a", tmp_path / "b"]).notes}
    assert "edited:load (data)" in topics["runs of different code"]
    assert "edited:load" in topics["runs on different data"]


def test_other_versions_are_noted_once(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = journal_path(CELL, reference).read_bytes().splitlines(keepends=True)
    journal_path(CELL, tmp_path).write_bytes(b"".join(whole[:5]))
    monkeypatch.setattr(origin, "versions", lambda: {"torch": "99"})
    run_cell(CELL, tmp_path)
    resumed = [e for e in journal.read(journal_path(CELL, tmp_path)) if e["event"] == "resume"]
    assert [event["versions"] for event in resumed] == [{"torch": "99"}]
    assert content(CELL, tmp_path) == content(CELL, reference)
