"""The same bits serial, parallel, cut off anywhere and taken up again, and gone on with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import journal
from badge.errors import JournalError
from badge.experiment import Cell, Outcome, Processes, Serial, finished, journal_path, run_cell, run_cells
from small_cells import CELL, content, quiet, rounds, variants


@pytest.mark.usefixtures("forked_workers")
def test_parallel_gives_the_same_bits_as_serial(reference: Path, tmp_path: Path) -> None:
    cells = variants(seeds=2)
    assert run_cells(cells, tmp_path, Processes(2), quiet(cells)) == []
    for cell in cells:
        assert content(cell, tmp_path) == content(cell, reference)


@pytest.mark.parametrize(("initial", "batch", "labels", "rounds"), [(12, 10, 45, 4), (12, 33, 45, 1), (45, 10, 45, 1)])
def test_the_horizon_of_albl_is_the_batches_of_the_run(
    initial: int, batch: int, labels: int, rounds: int, tmp_path: Path
) -> None:
    """(45 − 12) / 10: four batches after the first. The journal's header tells."""
    (cell,) = variants("albl", initial=initial, batch_size=batch, labels=labels, max_epochs=1)
    run_cell(cell, tmp_path)
    header = next(event for event in journal.read(journal_path(cell, tmp_path)) if event["event"] == "learner")
    assert header["strategy"]["parameters"]["rounds"] == str(rounds)


@pytest.mark.parametrize("strategy", ["badge", "albl"])
def test_cut_off_anywhere_it_ends_in_the_same_bits(strategy: str, reference: Path, tmp_path: Path) -> None:
    (cell,) = variants(strategy)
    whole = journal_path(cell, reference).read_bytes()
    lines = np.cumsum([len(line) + 1 for line in whole.splitlines()])
    inside = np.random.default_rng(0).integers(1, len(whole), size=12)
    for cut in [0, *lines[:-1].tolist(), *inside.tolist()]:
        journal_path(cell, tmp_path).write_bytes(whole[:cut])
        assert not finished(cell, tmp_path)
        with pytest.warns(UserWarning, match="interrupted") if torn(whole, cut) else Nothing():
            run_cell(cell, tmp_path)
        assert content(cell, tmp_path) == content(cell, reference)
        assert all(event["select_seconds"] > 0 for event in rounds(cell, tmp_path)[:-1])


class Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


def torn(whole: bytes, cut: int) -> bool:
    return cut > 0 and whole[cut - 1 : cut] != b"\n" and whole[cut : cut + 1] != b"\n"


def test_finished_cells_are_not_touched(reference: Path) -> None:
    cells = variants(seeds=2)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in reference.iterdir()}

    class Never:
        def map(self, run: Any, cells: Sequence[Cell], on_round: Any) -> Iterator[Outcome]:
            assert not cells
            return iter(())

    display = quiet(cells)
    assert run_cells(cells, reference, Never(), display) == []
    assert display.done == display.skipped == len(cells)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in reference.iterdir()} == before
    run_cell(CELL, reference)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in reference.iterdir()} == before


def test_other_settings_do_not_continue_a_journal(reference: Path) -> None:
    other = Cell(**{**CELL.__dict__, "labels": 30})
    with pytest.raises(JournalError, match="was made with labels = 45, now 30: use another --out folder"):
        run_cell(other, reference)
    failed = run_cells([other], reference, Serial(), quiet([other]))
    assert [outcome.error for outcome in failed] == [
        f"{journal_path(CELL, reference)} was made with labels = 45, now 30: use another --out folder"
    ]


@pytest.mark.parametrize("strategy", ["badge", "own_parts:Counting"])
def test_more_labels_go_on_to_the_same_bits(strategy: str, tmp_path: Path) -> None:
    """A run that ended at 32 labels, or was stopped on the way there or on, is the run that was asked for 62."""
    short, long = (variants(strategy, labels=labels)[0] for labels in (32, 62))
    run_cell(long, tmp_path / "at once")
    expected = told(long, tmp_path / "at once")
    run_cell(short, tmp_path)
    ended = journal_path(short, tmp_path).read_bytes()
    assert finished(short, tmp_path) and not finished(long, tmp_path)
    run_cell(long, tmp_path)
    assert finished(long, tmp_path) and told(long, tmp_path) == expected
    whole = journal_path(long, tmp_path).read_bytes()
    with pytest.raises(JournalError, match="was made with labels = 62, now 32"):
        run_cell(short, tmp_path)
    cuts = np.cumsum([len(line) + 1 for line in whole.splitlines()]).tolist()
    for cut in cuts[3:-1]:
        journal_path(long, tmp_path).write_bytes(whole[:cut])
        run_cell(long, tmp_path)
        assert told(long, tmp_path) == expected, f"cut at {cut} (it had ended at {len(ended)})"
    forever = Cell(**{**long.__dict__, "labels": None})
    run_cell(forever, tmp_path)
    assert rounds(forever, tmp_path)[-1]["labels"] == 90
    run_cell(Cell(**{**long.__dict__, "labels": 5000}), tmp_path)  # the pool has no more


def told(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """The rounds that count (the last of each number), without seconds."""
    return [
        {key: value for key, value in event.items() if not key.endswith("seconds")}
        for event in {event["round"]: event for event in rounds(cell, folder)}.values()
    ]


@pytest.mark.parametrize(
    ("strategy", "labels", "why"),
    [("badge", 45, "its last batch was cut to 3 of 10"), ("albl", 42, "albl sets its rates by the number of batches")],
)
def test_a_run_that_would_be_another_one_does_not_go_on(strategy: str, labels: int, why: str, tmp_path: Path) -> None:
    run_cell(variants(strategy, labels=labels)[0], tmp_path)
    with pytest.raises(JournalError, match=rf"cannot go on to 60 labels \({why}\): use another --out folder"):
        run_cell(variants(strategy, labels=60)[0], tmp_path)
