"""Cells that were run one after another, for the tests of this folder to compare with; workers that start at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from badge.experiment import Serial, run_cells
from forks import FORKS
from small_cells import quiet, variants


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three strategies, two seeds, one after another."""
    folder = tmp_path_factory.mktemp("serial")
    cells = variants(seeds=2)
    assert run_cells(cells, folder, Serial(), quiet(cells)) == []
    return folder


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forked, not spawned: for tests of what workers do, not of how they start."""
    monkeypatch.setattr("badge.experiment.executor.multiprocessing.get_context", lambda method: FORKS)
