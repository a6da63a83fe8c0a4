"""What fails: one cell, with its reason and traceback, and never the others."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from badge import stats
from badge.cli import app
from badge.errors import InputError, ModelError
from badge.experiment import Cell, Processes, Serial, finished, run_cell, run_cells
from badge.experiment.executor import failure
from small_cells import CELL, quiet, variants

pytestmark = pytest.mark.usefixtures("forked_workers")


def test_tracebacks_are_kept_beside_the_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line on the terminal, where it came from in failures.log; --verbose prints it too."""
    call = [
        "run",
        "--data",
        "own_parts:broken",
        "--model",
        "own_parts:small",
        "--out",
        str(tmp_path),
        "--labels",
        "200",
    ]
    for verbose in (False, True):
        done = CliRunner().invoke(app, [*call, *["--verbose"] * verbose])
        assert done.exit_code == 1 and "ZeroDivisionError: the data are broken" in done.output
        assert ("Traceback" in done.output) == verbose
        assert f"tracebacks: {tmp_path / 'failures.log'}" in done.output.replace("\n", "")
    log = (tmp_path / "failures.log").read_text()
    assert log.count("own_parts_broken-own_parts_small-b100-badge-s0: ZeroDivisionError") == 2
    assert log.count("Traceback (most recent call last)") == 2 and "in broken" in log


@pytest.mark.parametrize("executor", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_a_failed_cell_does_not_stop_the_others(executor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_TEST_PARENT", str(os.getpid()) if isinstance(executor, Processes) else "")
    bad = variants("rand", data="own_parts:broken")
    (good,) = variants("rand")
    (lost,) = variants("rand", data="nowhere:load")
    cells = [*bad, lost, good]
    failed = {outcome.cell: outcome for outcome in run_cells(cells, tmp_path, executor, quiet(cells))}
    assert set(failed) == {bad[0], lost}
    assert failed[bad[0]].error == "ZeroDivisionError: the data are broken"
    assert "no module 'nowhere'" in str(failed[lost].error)
    assert finished(good, tmp_path)


def test_a_failure_is_said_without_arguments_of_a_function() -> None:
    """`badge run` prints it, and has no such arguments."""
    (cell,) = variants("rand")
    outcome = failure(cell, ModelError("no memory left", in_python="pass a smaller batch_size="))
    assert outcome.error == "no memory left" and "batch_size=" in outcome.details


def test_a_worker_that_dies_takes_one_cell_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BADGE_TEST_PARENT", str(os.getpid()))
    (deadly,) = variants("rand", data="own_parts:deadly")
    good = variants("rand", seeds=2)
    cells = [deadly, *good]
    failed = run_cells(cells, tmp_path, Processes(1), quiet(cells))
    assert [(outcome.cell, outcome.error) for outcome in failed] == [
        (deadly, "its process died (exit code 7); out of memory?")
    ]
    assert all(finished(cell, tmp_path) for cell in good)


def test_a_worker_that_dies_idle_takes_nothing_with_it(tmp_path: Path) -> None:
    outcomes = []
    for outcome in Processes(1).map(In(tmp_path), variants("rand", seeds=2), lambda *numbers: None):
        outcomes.append(outcome.error)
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
    assert outcomes == [None, None]


class In:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, cell: Cell, notify: Any) -> None:
        run_cell(cell, self.folder, notify)


def test_a_batch_that_cannot_be_chosen_is_a_failed_cell(tmp_path: Path) -> None:
    """A k-DPP cannot draw more points than its kernel has rank: here at most 8 · 3."""
    cells = variants("kdpp", "rand", batch_size=60, labels=None)
    failed = run_cells(cells, tmp_path, Serial(), quiet(cells))
    assert [outcome.cell.strategy for outcome in failed] == ["kdpp"]
    assert "rank" in str(failed[0].error) and "RankError" in failed[0].details
    again = run_cells(cells, tmp_path, Serial(), quiet(cells))
    assert [outcome.error for outcome in again] == [failed[0].error]
    notes = [note.text for note in stats.load(tmp_path).notes if note.topic == "failed runs"]
    assert notes[1].endswith(f"failed before its first round: {failed[0].error}") and len(notes) == 2


def test_names_are_checked_before_anything_runs(tmp_path: Path) -> None:
    for wrong in ({"strategy": "bagde"}, {"model": "mpl"}, {"data": "lettre"}):
        cells = [CELL, Cell(**{**CELL.__dict__, **wrong})]
        with pytest.raises(InputError, match="unknown"):
            run_cells(cells, tmp_path, Serial(), quiet(cells))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number ≥ 1, not 0"),
        ({"initial": 1.5}, "initial must be a whole number ≥ 1, not 1.5"),
        ({"labels": 5}, r"labels \(5\) must be at least the initial ones \(12\)"),
        ({"seed": -1}, "seed must be a whole number ≥ 0, not -1"),
        ({"lr": 0.0}, "lr must be a number above 0"),
        ({"lr": "x"}, "lr must be a number above 0, not 'x'"),
        ({"strategy": 5}, "strategy must be a name, not 5"),
        ({"width": 0}, "width must be a whole number ≥ 1"),
    ],
)
def test_settings_that_cannot_mean_anything(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Cell(**{**CELL.__dict__, **settings})


def test_no_workers_is_refused() -> None:
    with pytest.raises(InputError, match="workers must be a whole number ≥ 1, not 0"):
        Processes(0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_the_place_of_a_journal_is_that_cells_failure(tmp_path: Path) -> None:
    """Read like a file it would be waited for without end."""
    cell = Cell("digits", "mlp", "rand", batch_size=20, initial=20, labels=40)
    os.mkfifo(tmp_path / f"{cell.name}.jsonl")
    assert not finished(cell, tmp_path)
    (failed,) = run_cells([cell], tmp_path)
    assert "it is not a file" in str(failed.error)
