"""Grid files: those of the repository, the order of cells, and files that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from badge import strategies
from badge.errors import InputError
from badge.experiment import cells_of, read_grid

GRIDS = Path(__file__).parents[2] / "grids"


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
        (
            {**BASE, "batchsize": 3},
            r"unknown key 'batchsize': did you mean batch_size\? Known: pairs, data, model, batch_size",
        ),
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
