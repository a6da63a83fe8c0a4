"""Cells and grids: what a round records, pairing, the same bits serial, parallel and resumed, and what fails."""

from __future__ import annotations

import importlib
import io
import itertools
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from badge import journal, stats, strategies
from badge.cli import app
from badge.errors import InputError, JournalError
from badge.experiment import (
    Cell,
    Display,
    Outcome,
    Processes,
    Serial,
    cells_of,
    finished,
    journal_path,
    read_grid,
    run_cell,
    run_cells,
)

cell_module = importlib.import_module("badge.experiment.cell")
origin = importlib.import_module("badge.experiment.origin")
GRIDS = Path(__file__).parents[2] / "grids"
CELL = Cell("own_parts:blobs", "own_parts:small", "badge", batch_size=10, initial=12, labels=45, max_epochs=30)


def variants(*strategies: str, seeds: int = 1, **settings: Any) -> list[Cell]:
    names = strategies or ("badge", "albl", "rand")
    return [Cell(**{**CELL.__dict__, "strategy": s, "seed": i, **settings}) for i in range(seeds) for s in names]


def quiet(cells: Sequence[Cell]) -> Display:
    return Display(cells, Console(file=io.StringIO()))


def content(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    """The journal of a cell without what may differ: seconds, and that it was taken up again."""
    events = [event for event in journal.read(journal_path(cell, folder)) if event["event"] != "resume"]
    return [{key: value for key, value in event.items() if not key.endswith("seconds")} for event in events]


def rounds(cell: Cell, folder: Path) -> list[dict[str, Any]]:
    return [event for event in journal.read(journal_path(cell, folder)) if event["event"] == "round"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three strategies, two seeds, one after another."""
    folder = tmp_path_factory.mktemp("serial")
    cells = variants(seeds=2)
    assert run_cells(cells, folder, Serial(), quiet(cells)) == []
    return folder


# -- one cell ----------------------------------------------------------------------------------------------------------


def test_a_cell_of_rand_makes_no_pass_over_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test set is predicted, and the batches, whose figures a round records."""
    from badge.experiment import cell as module
    from badge.learner import learner

    seen: list[int] = []
    plain = module.predict

    def counting(model: Any, pool: Any) -> Any:
        seen.append(len(pool))
        return plain(model, pool)

    monkeypatch.setattr(module, "predict", counting)
    monkeypatch.setattr(learner.ActiveLearner, "outputs", property(lambda self: pytest.fail("a pass over the pool")))
    (cell,) = variants("rand")
    run_cell(cell, tmp_path)
    tested = len(np.asarray(module.load(cell.data, cell.seed, cell.raw).y_test))
    assert seen == [tested, 10, tested, 10, tested, 10, tested, 3, tested]
    assert all(event["mean_norm"] > 0 for event in rounds(cell, tmp_path)[:-1])


def test_every_round_records_what_the_report_reads(reference: Path) -> None:
    start, *rest = journal.read(journal_path(CELL, reference))
    assert start["event"] == "start" and start["format"] == journal.FORMAT
    assert start["cell"] == CELL.__dict__ and start["cell"]["threads"] == 1
    assert len(start["data"].pop("digest")) == 32 and set(start["code"]) == {"data", "model"}
    assert start["data"] == {
        "name": "own_parts:blobs",
        "rows": 150,
        "total": 1000,
        "complete": False,
        "text": "150 of 1,000",
    }
    assert {"badge", "python", "torch", "numpy"} <= set(start["versions"]) and "git" in start
    assert rest[-1] == {"event": "end", "reason": "labels reached", "labels": 45}
    recorded = [event for event in rest if event["event"] == "round"]
    assert [event["round"] for event in recorded] == [0, 1, 2, 3, 4]
    assert [event["labels"] for event in recorded] == [12, 22, 32, 42, 45]  # the last batch is smaller
    for event in recorded:
        assert 0 <= event["test_accuracy"] <= 1 and 0 <= event["train_accuracy"] <= 1
        assert event["epochs"] >= 1 and event["restarts"] >= 0
        assert event["train_seconds"] > 0 and event["predict_seconds"] > 0
    for event, following in itertools.pairwise(recorded):
        assert len(event["picked"]) == following["labels"] - event["labels"]
        assert event["select_seconds"] > 0 and event["mean_norm"] > 0
        assert event["log_det"] is None or isinstance(event["log_det"], float)
    last = recorded[-1]
    assert all(last[key] is None for key in ("picked", "select_seconds", "mean_norm", "log_det"))


def test_picks_are_distinct_and_never_labelled_before(reference: Path) -> None:
    for cell in variants(seeds=2):
        asked = [e for e in journal.read(journal_path(cell, reference)) if e["event"] == "ask"]
        ids = [id for event in asked for id in event["ids"]]
        assert len(set(ids)) == len(ids) == 45
        assert [event["picked"] for event in rounds(cell, reference)[:-1]] == [event["ids"] for event in asked[1:]]


@pytest.mark.parametrize(
    ("settings", "labels", "reason"),
    [
        ({"labels": None}, [12, 52, 90], "pool exhausted"),
        ({"labels": 1000}, [12, 52, 90], "pool exhausted"),
        ({"labels": 12}, [12], "labels reached"),
        ({"labels": None, "initial": 500}, [90], "pool exhausted"),
    ],
)
def test_where_a_run_ends(settings: dict[str, Any], labels: list[int], reason: str, tmp_path: Path) -> None:
    (cell,) = variants("rand", batch_size=40, **settings)
    run_cell(cell, tmp_path)
    assert [event["labels"] for event in rounds(cell, tmp_path)] == labels
    assert content(cell, tmp_path)[-1] == {"event": "end", "reason": reason, "labels": cell.labels}


def test_without_labels_a_run_ends_at_fifty_thousand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.experiment import cell as module

    assert module.MOST_LABELS == 50_000
    monkeypatch.setattr(module, "MOST_LABELS", 30)
    (cell,) = variants("rand", labels=None)
    run_cell(cell, tmp_path)
    assert [event["labels"] for event in rounds(cell, tmp_path)] == [12, 22, 30]
    assert content(cell, tmp_path)[-1]["reason"] == "50,000 labels"


def test_the_same_seed_is_the_same_start_for_every_strategy(tmp_path: Path) -> None:
    cells = variants(*strategies.NAMES, seeds=2, labels=22)
    assert run_cells(cells, tmp_path, Serial(), quiet(cells)) == []
    for seed in range(2):
        firsts, models = set(), set()
        for cell in cells:
            if cell.seed == seed:
                first = next(e for e in journal.read(journal_path(cell, tmp_path)) if e["event"] == "ask")
                zero = rounds(cell, tmp_path)[0]
                firsts.add(tuple(first["ids"]))
                models.add((zero["test_accuracy"], zero["train_accuracy"], zero["epochs"]))
        assert len(firsts) == len(models) == 1
    assert len({tuple(rounds(cell, tmp_path)[0]["picked"]) for cell in cells}) > len(cells) / 2
    initial = {tuple(next(e for e in content(c, tmp_path) if e["event"] == "ask")["ids"]) for c in cells}
    assert len(initial) == 2


# -- the same bits -----------------------------------------------------------------------------------------------------


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


# -- what it ran on ----------------------------------------------------------------------------------------------------

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
    from badge.experiment import cell as module

    whole = journal_path(CELL, reference).read_bytes().splitlines(keepends=True)
    journal_path(CELL, tmp_path).write_bytes(b"".join(whole[:5]))
    monkeypatch.setattr(module, "versions", lambda: {"torch": "99"})
    run_cell(CELL, tmp_path)
    resumed = [e for e in journal.read(journal_path(CELL, tmp_path)) if e["event"] == "resume"]
    assert [event["versions"] for event in resumed] == [{"torch": "99"}]
    assert content(CELL, tmp_path) == content(CELL, reference)


# -- what fails --------------------------------------------------------------------------------------------------------


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


# -- grids -------------------------------------------------------------------------------------------------------------


def test_the_papers_grid() -> None:
    cells = read_grid(GRIDS / "paper.toml")
    assert len(cells) == 11 * 3 * 7 * 5 == 1155
    assert len({cell.name for cell in cells}) == 1155
    assert {(c.initial, c.labels, c.width, c.lr, c.raw, c.threads) for c in cells} == {
        (100, None, None, None, False, 1)
    }
    assert {c.strategy for c in cells} == set(strategies.PAPER)
    pairs = {(c.data, c.model) for c in cells}
    assert len(pairs) == 11 and {d for d, m in pairs if m == "vgg11"} == {"svhn", "cifar10"}


def test_the_papers_ablations() -> None:
    cells = read_grid(GRIDS / "paper-ablation.toml")
    assert len(cells) == 9 * 2 * 2 * 5 + 2 * 2 * 5 == 200
    assert {c.model for c in cells} == {"mlp", "resnet18"}
    for pair in ("letter", "mlp", 100), ("svhn", "resnet18", 1000):
        found = {c.strategy for c in cells if (c.data, c.model, c.batch_size) == pair}
        assert found == {"badge", "kdpp", "kcenter-grad", "conf"}


def test_the_small_grid() -> None:
    cells = read_grid(GRIDS / "small.toml")
    assert {c.strategy for c in cells} == set(strategies.PAPER)
    assert len(cells) == 63 and all(c.labels is not None for c in cells)


def test_the_grid_for_two_cores() -> None:
    """Every setting by itself has all seven strategies; seeds are outermost, so that it can be stopped anywhere."""
    cells = read_grid(GRIDS / "cpu.toml")
    assert len(cells) == 622 and all(c.labels is not None for c in cells)
    assert [c.seed for c in cells] == sorted(c.seed for c in cells)
    settings: dict[tuple[str, str, int, int], set[str]] = {}
    for c in cells:
        settings.setdefault((c.data, c.model, c.batch_size, c.seed), set()).add(c.strategy)
    assert all(found >= set(strategies.PAPER) for found in settings.values())
    mlp = {(data, size) for data, model, size, _ in settings if model == "mlp"}
    tables = {"mnist", "svhn", "cifar10", "letter", "pokerhand", "randomrbf", "kropt"}
    assert mlp == {(data, size) for data in tables for size in (100, 1000)} | {("trec", 100), ("banking77", 100)}
    ablation = {c.data for c in cells if c.strategy == "kdpp"}
    assert ablation == {c.data for c in cells if c.strategy == "kcenter-grad"} == {"letter", "mnist"}
    assert {(c.data, c.model, c.width) for c in cells if c.model != "mlp"} == {
        ("svhn", "resnet18", 16), ("cifar10", "vgg11", 16)
    }  # fmt: skip


def test_seeds_are_the_outermost_loop() -> None:
    blocks = [{"batch_size": 10}, {"batch_size": 20, "seeds": 1}]
    cells = cells_of({**BASE, "strategy": ["rand", "badge"], "seeds": [1, 0], "block": blocks})
    assert [(c.seed, c.batch_size, c.strategy) for c in cells] == [
        *((0, size, name) for size in (10, 20) for name in ("rand", "badge")),
        (1, 10, "rand"),
        (1, 10, "badge"),
    ]


BASE: dict[str, Any] = {"data": "digits", "model": "mlp", "batch_size": 10, "strategy": "rand"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**BASE, "batchsize": 3}, "unknown key 'batchsize'; known: pairs, data, model, batch_size"),
        ({k: v for k, v in BASE.items() if k != "model"}, "the key 'model' is missing"),
        ({**BASE, "pairs": ["digits/mlp"]}, "give pairs, or data and model, not both"),
        ({"pairs": ["digits"], "batch_size": 1, "strategy": "rand"}, "a pair is written data/model"),
        ({**BASE, "strategy": []}, "strategy is an empty list"),
        ({**BASE, "batch_size": "10"}, "batch_size must be a whole number ≥ 1, not '10'"),
        ({**BASE, "block": [{"labels": 200}, {"labels": 300}]}, "is there twice with different settings"),
        ({**BASE, "block": {"labels": 200}}, "two brackets"),
    ],
)
def test_grids_that_cannot_be_read(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cells_of(settings)


def test_grid_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no grid file"):
        read_grid(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_grid(tmp_path)
    (tmp_path / "bad.toml").write_text("a = ", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.toml is not TOML"):
        read_grid(tmp_path / "bad.toml")
    (tmp_path / "key.toml").write_text("key = 1", encoding="utf-8")
    with pytest.raises(InputError, match=r"key\.toml: unknown key 'key'"):
        read_grid(tmp_path / "key.toml")


def test_seeds_are_a_number_or_a_list() -> None:
    assert [cell.seed for cell in cells_of({**BASE, "seeds": 3})] == [0, 1, 2]
    assert [cell.seed for cell in cells_of({**BASE, "seeds": [7, 9]})] == [7, 9]


# -- commands ----------------------------------------------------------------------------------------------------------

OPTIONS = ["--data", "own_parts:blobs", "--model", "own_parts:small", "--batch-size", "10", "--initial", "12"]


def test_badge_run(tmp_path: Path) -> None:
    arguments = ["run", *OPTIONS, "--labels", "22", "--strategy", "badge", "--strategy", "rand", "--seeds", "2"]
    arguments += ["--max-epochs", "30", "--workers", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert len(list(tmp_path.glob("*.jsonl"))) == 4
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["data", "model", "batch", "strategy", "seeds", "labels", "test", "accuracy"]
    assert lines[1].split()[:6] == ["own_parts:blobs", "own_parts:small", "10", "badge", "2", "22"]
    assert "[4/4]" in result.stderr
    again = CliRunner().invoke(app, arguments)
    assert again.stdout == result.stdout and "[4/4]" not in again.stderr


def test_badge_grid_and_its_exit_code(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'data = ["own_parts:blobs", "nowhere:load"]\nmodel = "own_parts:small"\nstrategy = "rand"\n'
        "initial = 12\nbatch_size = 10\nlabels = 22\nmax_epochs = 30\n",
        encoding="utf-8",
    )
    out = str(tmp_path / "runs")
    dry = CliRunner().invoke(app, ["grid", str(grid), "--out", out, "--dry-run"])
    assert dry.stdout.splitlines()[-1] == "2 of 2 cells left" and not Path(out).exists()
    result = CliRunner().invoke(app, ["grid", str(grid), "--out", out, "--workers", "1"])
    assert result.exit_code == 1
    assert "failed: nowhere_load-own_parts_small-b10-rand-s0: the data set 'nowhere:load'" in result.stderr
    dry = CliRunner().invoke(app, ["grid", str(grid), "--out", out, "--dry-run"])
    assert dry.stdout.splitlines()[-1] == "1 of 2 cells left"


def test_several_grids_and_what_is_known_of_them(tmp_path: Path) -> None:
    """Two files are one grid; `--skip` leaves out what a table of results holds to its end, and nothing else."""
    files = []
    for name, names in (("a", '["rand", "marg"]'), ("b", '["rand", "conf"]')):
        files.append(str(tmp_path / f"{name}.toml"))
        Path(files[-1]).write_text(
            'data = "own_parts:blobs"\nmodel = "own_parts:small"\ninitial = 12\nbatch_size = 10\nlabels = 22\n'
            f"max_epochs = 3\nstrategy = {names}\n",
            encoding="utf-8",
        )
    out, table = str(tmp_path / "runs"), str(tmp_path / "all.csv.gz")
    assert CliRunner().invoke(app, ["grid", files[0], "--out", out, "--workers", "1"]).exit_code == 0
    journal_of_marg = tmp_path / "runs" / "own_parts_blobs-own_parts_small-b10-marg-s0.jsonl"
    lines = journal_of_marg.read_text(encoding="utf-8").splitlines()
    last = max(i for i, event in enumerate(journal.read(journal_of_marg)) if event["event"] == "round")
    journal_of_marg.write_text("\n".join(lines[:last]) + "\n", encoding="utf-8")  # stopped before its last round
    assert CliRunner().invoke(app, ["export", out, "-o", table]).exit_code == 0
    elsewhere = ["grid", *files, "--out", str(tmp_path / "new"), "--skip", table]
    dry = CliRunner().invoke(app, [*elsewhere, "--dry-run"])
    assert [line.rsplit("-", 2)[1] for line in dry.stdout.splitlines()[:-1]] == ["marg", "conf"]
    assert dry.stdout.splitlines()[-1] == "2 of 2 cells left" and "1 of 3 cells are in" in dry.stderr
    assert CliRunner().invoke(app, [*elsewhere, "--workers", "1"]).exit_code == 0
    assert len(list((tmp_path / "new").glob("*.jsonl"))) == 2


def test_stopping_by_hand_is_no_disaster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Serial, "map", stop)
    result = CliRunner().invoke(app, ["run", *OPTIONS, "--out", str(tmp_path), "--workers", "1"])
    assert result.exit_code == 130 and "the same command continues" in result.stderr


def test_badge_demo_ends_in_a_picture_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.cli import demonstration as demo

    assert {(c.data, c.model) for c in demo.CELLS} == {("digits", "mlp")}
    assert {c.strategy for c in demo.CELLS} == set(strategies.PAPER) and {c.seed for c in demo.CELLS} == {0, 1, 2}
    few = [c for c in demo.CELLS if c.strategy in ("marg", "rand") and c.seed < 2]
    monkeypatch.setattr(demo, "CELLS", [Cell(**{**c.__dict__, "labels": 150}) for c in few])
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--workers", "1"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines.pop(0).startswith("what this run shows at 150 labels (2 seeds, paired t-tests at 0.05): above rand ")
    assert lines[0].startswith("labels needed to reach 0.") and lines[0].endswith("of rand at 150 labels")
    assert [line.split()[0] for line in lines[1:4]] == ["strategy", "marg", "rand"]
    assert lines[3].split()[1:3] == ["150", "100%"] and int(lines[2].split()[1]) < 150
    assert lines[4] == f"learning curves: {tmp_path / 'learning-curves.png'}"
    assert (tmp_path / "learning-curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_what_its_run_shows() -> None:
    from badge.cli.demonstration import headline

    assert headline(stats.example()) == (
        "what this run shows at 500 labels (3 seeds, paired t-tests at 0.05): above rand badge; below rand none; "
        "0 of 0 pairs of the others differ"
    )


# -- the display -------------------------------------------------------------------------------------------------------


def test_plain_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from badge.experiment import display as module

    monkeypatch.setattr(module, "EVERY", 0.0)
    text = io.StringIO()
    other = Cell(**{**CELL.__dict__, "strategy": "rand"})
    with Display([CELL, other], Console(file=text, width=200)) as display:
        assert display.left() == "time left unknown"
        display.round(CELL, 22, 44, 0.5)
        display.ended(Outcome(CELL))
        display.ended(Outcome(other, "no [room]"))
    name = "own_parts_blobs-own_parts_small-b10"
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("0 of 2 cells, about 0 s left: ") and lines[0].endswith("22 of 44 labels: 0.5000")
    assert lines[1] == f"[1/2] {name}-badge-s0: 22 labels, test accuracy 0.5000"
    assert lines[2] == f"[2/2] {name}-rand-s0: failed: no [room]"


def test_a_live_table_on_a_terminal() -> None:
    text = io.StringIO()
    with Display(
        [CELL, CELL], Console(file=text, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    ) as display:
        display.ended(Outcome(CELL), skipped=True)
        display.round(CELL, 22, 45, 0.625)
        display.live.refresh()
    shown = text.getvalue()
    assert "1 of 2 cells, 1 of them before" in shown and "0.6250" in shown and "22 / 45" in shown and "left" in shown


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("badge.experiment.display.EVERY", -1.0)
    text = io.StringIO()
    with Display([CELL], Console(file=text, force_terminal=True, width=100, _environ={"TERM": "dumb"})) as display:
        display.round(CELL, 22, 45, 0.625)
        assert "22 of 45 labels: 0.6250" in text.getvalue()


def test_journals_of_experiments_are_plain_json_lines(reference: Path) -> None:
    for line in journal_path(CELL, reference).read_text(encoding="utf-8").splitlines():
        assert "event" in json.loads(line)


def test_the_cost_of_a_cell_is_measured() -> None:
    from benchmarks.cell_cost import measure

    found = measure(repeats=1, labels=100)
    assert found["whole"] > found["parts"] > 0 and found["ratio"] == found["whole"] / found["parts"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_the_place_of_a_journal_is_that_cells_failure(tmp_path: Path) -> None:
    """Read like a file it would be waited for without end."""
    cell = Cell("digits", "mlp", "rand", batch_size=20, initial=20, labels=40)
    os.mkfifo(tmp_path / f"{cell.name}.jsonl")
    assert not finished(cell, tmp_path)
    (failed,) = run_cells([cell], tmp_path)
    assert "it is not a file" in str(failed.error)
