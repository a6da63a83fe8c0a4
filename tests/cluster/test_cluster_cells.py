"""Experiments on a cluster: the journals of one machine, written here, whatever becomes of the nodes."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from badge import journal
from badge.cli import app
from badge.cluster.cells import RayCells, _Tasks
from badge.experiment import Cell, Display, Serial, run_cells
from badge.journal import Journal

CELLS = [
    Cell("own_parts:blobs", "own_parts:held", strategy, batch_size=10, initial=12, labels=42, seed=1, max_epochs=20)
    for strategy in ("badge", "rand")
]


def content(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """All journals, without seconds and times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            path.name: [
                {k: v for k, v in e.items() if not k.endswith("seconds") and k != "at"} for e in journal.read(path)
            ]
            for path in sorted(folder.glob("*.jsonl"))
        }


def run(folder: Path, executor: Any) -> None:
    failed = run_cells(CELLS, folder, executor, Display(CELLS, Console(file=io.StringIO())))
    assert not failed, failed


class Killing(RayCells):
    """Kills two of three nodes when both cells have told of a round and wait: at least one of the two runs there."""

    def __init__(self, folder: Path, nodes: Any) -> None:
        super().__init__(folder)
        self.nodes = nodes

    def map(self, run: Any, cells: Any, on_round: Any) -> Any:
        told: set[Cell] = set()

        def rounds(cell: Cell, labels: int, total: int, accuracy: float) -> None:
            on_round(cell, labels, total, accuracy)
            told.add(cell)
            while self.nodes.others and len(told) == len(CELLS):
                self.nodes.kill(0)

        return super().map(run, cells, rounds)


@pytest.fixture
def started_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines the journals had each time a cell was started. Once one is started again, none waits any more."""
    lines: list[int] = []
    start = _Tasks.start

    def noted(self: _Tasks, cell: Cell, journal: Journal) -> None:
        lines.append(len(journal.records))
        if len(lines) > len(CELLS):
            Path("shut").unlink(missing_ok=True)
        start(self, cell, journal)

    monkeypatch.setattr(_Tasks, "start", noted)
    return lines


def test_a_cell_that_fails_is_told_and_the_command_says_so(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BADGE_TEST_PARENT", str(os.getpid()))
    command = ["run", "--data", "own_parts:broken", "--model", "own_parts:small", "--labels", "30", "--initial", "12"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path), "--on", "ray"])
    assert done.exit_code == 1
    assert (
        "failed: own_parts_broken-own_parts_small-b100-badge-s0: ZeroDivisionError: the data are broken" in done.output
    )
    done = CliRunner().invoke(app, [*command, "--on", "slurm"])
    assert done.exit_code == 2 and "'ray'" in done.output


def test_the_journals_of_one_machine_after_nodes_died_and_a_rerun(
    nodes: Any, tmp_path: Path, started_at: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # tasks run in the folder that this process is in
    run(tmp_path / "here", Serial())
    (tmp_path / "shut").touch()
    run(tmp_path / "there", Killing(tmp_path / "there", nodes))
    assert started_at[:2] == [0, 0] and len(started_at) > 2 and not nodes.others
    assert max(started_at[2:]) > 1  # no more than the rounds in flight were lost
    assert content(tmp_path / "there") == content(tmp_path / "here")
    # taken up in the middle, as after the death of this process
    for path in (tmp_path / "there").glob("*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) // 2]))
    run(tmp_path / "there", RayCells(tmp_path / "there", workers=1))
    assert content(tmp_path / "there") == content(tmp_path / "here")
