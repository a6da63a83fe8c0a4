"""Macro-F1 and the recall of rare classes in rounds; the first batch as an axis of a grid and as a part of the setting."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from badge import stats
from badge.core.catalog import names
from badge.data import Dataset
from badge.errors import InputError
from badge.experiment import Cell, Serial, cells_of, run_cells
from badge.experiment.cell import _by_class, passes, run_cell
from badge.training.linear import LinearHead
from small_cells import quiet, rounds


def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 30, 3])
    means = 3 * np.eye(3, dtype=np.float32)
    x = means[y] + rng.normal(size=(93, 3)).astype(np.float32)
    test = np.repeat([0, 1, 2], 5)
    return Dataset(x, y, means[test] + rng.normal(size=(15, 3)).astype(np.float32), test, 3, "made")


def load(seed: int) -> Dataset:
    return dataset()


def test_by_hand() -> None:
    said = np.array([0] * 5 + [1] * 4 + [0] + [2] * 1 + [1] * 4)  # right: 5, 4, 1 of 5 each; told: 6, 8, 1
    found = _by_class(said, dataset())
    f1 = [2 * 5 / (5 + 6), 2 * 4 / (5 + 8), 2 * 1 / (5 + 1)]
    assert found == pytest.approx({"macro_f1": np.mean(f1), "rare_recall": 0.2})


def test_a_grid_crosses_first_batches_with_strategies() -> None:
    grid = {
        "data": "letter",
        "model": "linear",
        "batch_size": 26,
        "first": ["rand", "typiclust"],
        "strategy": ["badge", "rand"],
    }
    cells = cells_of(grid)
    assert [(cell.shown_model, cell.strategy) for cell in cells] == [
        ("linear", "badge"), ("linear", "rand"), ("linear+typiclust", "badge"), ("linear+typiclust", "rand"),
    ]  # fmt: skip
    assert len({cell.name for cell in cells}) == 4


def test_tables_tell_first_batches_apart(tmp_path: Path) -> None:
    for first in (None, "maxherding"):
        run_cell(Cell("test_rare_classes:load", "linear", "marg", 5, 5, 15, first=first), tmp_path)
    results = stats.load(tmp_path)
    assert [setting.model for setting in results.settings] == ["linear", "linear+maxherding"]
    assert not np.isnan(results.column("macro_f1")).any() and not np.isnan(results.column("rare_recall")).any()


def images(seed: int) -> Dataset:
    made = dataset()
    return Dataset(made.X_train[:, None, None], made.y_train, made.X_test[:, None, None], made.y_test, 3, "made")


def test_a_linear_head_reads_images_as_rows(tmp_path: Path) -> None:
    for name, source in (("rows", "load"), ("images", "images")):
        run_cell(Cell(f"test_rare_classes:{source}", "linear", "badge", 5, 5, 15, first="typiclust"), tmp_path / name)
    rows, seen = (stats.load(tmp_path / name).test_accuracy for name in ("rows", "images"))
    assert rows.tolist() == seen.tolist()


@pytest.mark.parametrize("strategy", names(lambda one: one.passes))
def test_a_linear_head_is_asked_twenty_times_with_dropout(tmp_path: Path, strategy: str) -> None:
    cell = Cell("test_rare_classes:load", "linear", strategy, 5, 5, 15, first="typiclust")
    run_cell(cell, tmp_path)
    picked = [record.get("picked") for record in rounds(cell, tmp_path)]
    assert [ids and len(set(ids)) for ids in picked] == [5, 5, None]


def test_its_passes_are_the_mean_of_answers_with_half_of_the_inputs() -> None:
    torch.manual_seed(0)
    x, head = torch.randn(7, 40), LinearHead(torch.randn(3, 40), torch.zeros(3), np.arange(3))
    said = passes(head.eval(), x)
    assert said.expected_entropy is not None
    torch.manual_seed(0)
    each = torch.stack([head(torch.dropout(x, 0.5, train=True)).softmax(1) for _ in range(20)]).detach()
    torch.testing.assert_close(said.probabilities, each.mean(0))
    entropies = -(each * each.log()).sum(2).mean(0)
    torch.testing.assert_close(said.expected_entropy[:][:, 0].float(), entropies)
    torch.testing.assert_close(said.embeddings, x)


def test_a_first_batch_by_a_strategy_that_needs_a_model_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bait needs a model: the first batch is picked by kmeanspp"):
        run_cells([Cell("test_rare_classes:load", "linear", "badge", 5, 5, 15, first="bait")], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_network_without_dropout_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    cell = Cell("test_rare_classes:load", "mlp", "bald", 5, 5, 15)
    with pytest.raises(InputError, match="bald compares several passes with dropout, and mlp has none"):
        run_cells([cell], tmp_path, Serial(), quiet([cell]))
    assert not list(tmp_path.iterdir())
