"""`grids/products.py` keeps products of pairs: fewer products are made, and the picks stay."""

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import badge
from badge.samplers import cover
from grids import products

coverage = importlib.import_module("badge.samplers.coverage")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for owner, name in ((cover.Cover, "_read"), (cover.Cover, "rows"), (coverage, "sketched")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back afterwards
    products.keep_products()
    yield
    products._kept.clear()


def batches(strategy: str, n: int, width: int) -> list[np.ndarray]:
    """Three batches, each with the picks before it as labelled rows; some rows are there twice."""
    rng = np.random.default_rng(n)
    h = rng.normal(size=(n, width)).astype(np.float32)
    h[n // 2 : n // 2 + 20] = h[:20]
    p = rng.dirichlet(np.ones(4), size=n).astype(np.float32)
    out, labeled, found = badge.Outputs(p, h), np.arange(5), []
    for _ in range(3):
        found.append(badge.select_from(out, 8, strategy, labeled=out[torch.from_numpy(labeled)], exclude=labeled))
        labeled = np.concatenate([labeled, found[-1]])
    return found


POOLS = (("uherding", 300, 6), ("uherding", 2_500, 300), ("maxherding", 700, 40), ("probcover", 700, 4))


def test_picks_are_those_of_badge_grid(request: pytest.FixtureRequest) -> None:
    before = [batches(*pool) for pool in POOLS]
    request.getfixturevalue("kept")
    for pool, expected in zip(POOLS, before, strict=True):
        assert np.array_equal(batches(*pool), expected), pool
        assert len(products._kept[0].products) == pool[1] - 5  # of the first batch: later pools are parts of it


def test_products_in_a_file_give_the_same_picks(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = batches("uherding", 300, 6)
    products._kept.clear()
    monkeypatch.setattr(products, "IN_MEMORY", 100)
    assert np.array_equal(batches("uherding", 300, 6), expected)
    assert products._kept[0].products.untyped_storage().filename is not None


def test_larger_pools_and_other_rows_are_left_alone(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MOST", 100)
    batches("uherding", 300, 6)
    assert not products._kept
    monkeypatch.setattr(products, "MOST", 1_000)
    first = products.Pairs(torch.eye(12))
    assert first.places(torch.eye(12)[[3, 0]]).tolist() == [3, 0]  # type: ignore[union-attr]
    assert first.places(torch.ones(1, 12)) is None
