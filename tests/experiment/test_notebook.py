"""Cells of a notebook: a function as the strategy, a Dataset as the data."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge import journal, stats, strategies
from badge.errors import InputError, JournalError
from badge.experiment import Cell, Processes, Serial, cells_of, finished, journal_path, run_cells
from badge.experiment.grid import check_apart
from badge.experiment.origin import code_digests
from badge.strategies.bald import compares, power_bald
from own_parts import blobs
from small_cells import quiet

OPTIONS: dict[str, Any] = {"batch_size": 10, "initial": 12, "labels": 32, "max_epochs": 10}


def last_ones(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
    return np.arange(len(outputs) - k, len(outputs))


def mine() -> badge.data.Dataset:
    given = blobs(0)
    return badge.data.Dataset(
        given.X_train, given.y_train, given.X_test, given.y_test, classes=given.classes, name="my blobs"
    )


def test_a_function_and_a_data_set_run_resume_and_are_reported(tmp_path: Path) -> None:
    data = mine()
    cells = [Cell(data, "mlp", strategy, **OPTIONS) for strategy in (last_ones, "rand")]
    assert run_cells(cells, tmp_path, Serial(), quiet(cells)) == []
    assert all(finished(cell, tmp_path) for cell in cells)
    start, *events = journal.read(journal_path(cells[0], tmp_path))
    assert start["cell"]["data"] == "my blobs" and start["cell"]["strategy"].endswith("test_notebook:last_ones")
    assert start["code"].keys() == {"strategy"}
    first = next(event for event in events if event["event"] == "round")
    assert first["picked"] == sorted(first["picked"])
    results = stats.load(tmp_path)
    assert set(results.data) == {"my blobs"} and len(set(results.strategy)) == 2
    with pytest.raises(JournalError, match="was made on other data of the name my blobs"):
        other = badge.data.Dataset(
            data.X_train + 1, data.y_train, data.X_test, data.y_test, classes=data.classes, name="my blobs"
        )
        from badge.experiment import run_cell

        run_cell(Cell(other, "mlp", "rand", **{**OPTIONS, "labels": 42}), tmp_path)


class Ahead:
    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> np.ndarray:
        return np.arange(self.by, self.by + k)


class Hidden(Ahead):
    def __init__(self, start: int) -> None:
        super().__init__(start)


def first_ones(outputs: badge.Outputs, k: int, rng: Any, labeled: Any = None, start: Any = 0) -> np.ndarray:
    return np.arange(start, start + k)


def test_partials_and_objects_with_other_parameters_are_other_strategies(tmp_path: Path) -> None:
    """They had one name, so a grid left one out and a finished journal answered for the other."""
    own: list[Any] = [partial(first_ones, start=1), partial(first_ones, start=2), Ahead(3), Ahead(4), first_ones]
    own += [Ahead(5).__call__, Ahead(6).__call__]
    cells = cells_of({"data": mine(), "model": "mlp", "strategy": own, **OPTIONS})
    assert [cell.strategy.rpartition(":")[2] for cell in cells] == [
        "first_ones(start=1)", "first_ones(start=2)", "Ahead(by=3)", "Ahead(by=4)", "first_ones",
        "Ahead.__call__(by=5)", "Ahead.__call__(by=6)",
    ]  # fmt: skip
    assert len({journal_path(cell, tmp_path) for cell in cells}) == 7
    assert cells[0] == Cell(mine(), "mlp", partial(first_ones, start=1), **OPTIONS)
    assert run_cells(cells[:2], tmp_path, Serial(), quiet(cells[:2])) == []
    assert not finished(cells[2], tmp_path)
    long = Cell(mine(), "mlp", partial(first_ones, start=list(range(99))), **OPTIONS)
    assert len(long.name) < 120 and long != Cell(mine(), "mlp", partial(first_ones, start=[*range(98), 0]), **OPTIONS)
    digests = {code_digests(cell)["strategy"] for cell in cells[:2] + cells[4:5]}
    assert len(digests) == 1  # of the function, which may change, not of functools.partial


def test_two_functions_or_data_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    """The first one's journal answered for both."""

    def made(start: int) -> Any:
        return lambda outputs, k, rng, labeled=None: np.arange(start, start + k)

    own, data = [made(1), made(2)], mine()
    for pair in (own, [Hidden(1), Hidden(2)], [partial(first_ones, start=one) for one in own]):
        refused = pytest.raises(InputError, match=r"two strategies are named .*: make each once, under another name")
        with refused:
            run_cells([Cell(data, "mlp", one, **OPTIONS) for one in pair], tmp_path)
        with refused:
            cells_of({"data": data, "model": "mlp", "strategy": pair, **OPTIONS})
    assert len(cells_of({"data": data, "model": "mlp", "strategy": [Hidden(1), Hidden(1)], **OPTIONS})) == 1
    parts = {"X_train": data.X_train, "y_train": data.y_train, "X_test": data.X_test, "y_test": data.y_test}
    smaller = {**parts, "X_test": data.X_test[:9], "y_test": data.y_test[:9], "classes": 3}
    for changed in (smaller, {**parts, "classes": 4}, {**parts, "classes": 3, "lr": 0.5}):
        twin = badge.data.Dataset(**changed, name=data.name)
        with pytest.raises(InputError, match="two data sets are named my blobs: make each once, under another name"):
            run_cells([Cell(one, "mlp", "rand", **OPTIONS) for one in (data, twin)], tmp_path)
    check_apart([Cell(one, "mlp", "rand", **OPTIONS) for one in (data, mine())])  # the same, made twice
    by_seed = [Cell(one, "mlp", own[seed], seed=seed, **OPTIONS) for seed, one in enumerate((data, twin))]
    check_apart(by_seed)  # each has its own journal
    same = Ahead(1).__call__  # a bound method is another object each time
    assert len(cells_of({"data": data, "model": "mlp", "strategy": same, "seeds": 2, **OPTIONS})) == 2


def test_cells_that_would_write_one_journal_are_refused_at_each_door(tmp_path: Path) -> None:
    """Their file names are one; the second wrote its failure into the journal of the first, which had to run again."""
    own = [partial(first_ones, start=start) for start in ("1", [1])]
    cells = [Cell(mine(), "mlp", one, **OPTIONS) for one in own]
    assert cells[0].name == cells[1].name and cells[0] != cells[1]
    for door in (
        lambda: run_cells(cells, tmp_path),
        lambda: cells_of({"data": mine(), "model": "mlp", "strategy": own, **OPTIONS}),
    ):
        with pytest.raises(InputError, match="is there twice with different settings"):
            door()


@pytest.mark.parametrize("strategy", [power_bald, partial(power_bald, beta=2.0), "badge.strategies.bald:bald"])
def test_strategies_that_compare_answers_get_several_under_any_name(strategy: Any, tmp_path: Path) -> None:
    """Only the plain names got them: a cell with a partial failed after its first batch."""
    cell = Cell(mine(), "linear", strategy, **{**OPTIONS, "max_epochs": None})
    assert run_cells([cell], tmp_path, Serial(), quiet([cell])) == [] and finished(cell, tmp_path)
    assert compares(pickle.loads(pickle.dumps(strategies.get(strategy))))  # as in another process
    with pytest.raises(InputError, match=r"^(power-)?bald compares several passes with dropout, and mlp has none"):
        run_cells([Cell(mine(), "mlp", strategy, **OPTIONS)], tmp_path / "mlp")


class Counting:
    """Picks the rows after those of its calls so far."""

    calls = 0

    def __call__(self, outputs: badge.Outputs, k: int, rng: Any, labeled: Any = None) -> np.ndarray:
        self.calls += 1
        return np.arange(k) + self.calls

    def observe(self, ids: Any, correct: Any) -> None: ...

    def picked(self, ids: Any) -> None: ...

    def state(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def restore(self, state: dict[str, Any]) -> None:
        self.calls = state["calls"]


def test_cells_that_share_an_object_with_a_memory_each_begin_without(tmp_path: Path) -> None:
    """In one process a cell went on with the memory of the one before; in several, or after a restart, it did not."""
    one = Counting()
    cells = [Cell(mine(), "mlp", one, seed=seed, **OPTIONS) for seed in (0, 1)]
    assert run_cells(cells, tmp_path, Serial(), quiet(cells)) == [] and one.calls == 0
    for cell in cells:
        asks = [event for event in journal.read(journal_path(cell, tmp_path)) if event["event"] == "ask"]
        assert [ask["memory"]["all" if i == 1 else "set"]["calls"] for i, ask in enumerate(asks) if i] == [1, 2]


def test_what_cannot_go_to_another_process_is_one_line(tmp_path: Path) -> None:
    cells = [Cell(mine(), "mlp", lambda outputs, k, rng, labeled=None: np.arange(k), **OPTIONS)]
    (failed,) = run_cells(cells, tmp_path, Processes(1), quiet(cells))
    assert "cannot be sent to a process" in str(failed.error) and "\n" not in str(failed.error)


@pytest.mark.parametrize("wrong", [5, None, [1, 2]])
def test_what_is_neither_a_name_nor_an_object(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"data must be a name, not .*; in a program also a Dataset"):
        Cell(wrong, "mlp", "rand", batch_size=5)
