"""Sketches: lower bounds that are never above a distance, and are used only where they rule out most pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from badge.features import Rows
from badge.samplers.nearest import Lens
from badge.samplers.nearest.lowest import Lowest
from badge.samplers.nearest.sketch import Sketch, useful_sketch
from badge.testing.laws import sq_dists


def pools(dtype: torch.dtype) -> dict[str, Rows]:
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    flat = normal(60, 3) @ normal(3, 40)
    found = {
        "isotropic": (normal(60, 40),),
        "flat": (flat,),  # nothing is outside: the last number of a sketch is all rounding
        "nearly flat": (flat + 1e-3 * normal(60, 40),),
        "far from the origin": (1000 + normal(60, 40),),
        "duplicates": (normal(6, 40)[torch.arange(60) % 6],),
        "skewed": (normal(60, 40) * 10 ** normal(60, 1),),
        "zeros": (torch.zeros(60, 40, dtype=torch.float64),),
        "factored": (normal(60, 5), normal(60, 3) @ normal(3, 40)),
        "factored, signs mixed": (normal(60, 5), normal(60, 40)),
    }
    return {name: Rows(tuple(f.to(dtype) for f in factors)) for name, factors in found.items()}


@pytest.mark.parametrize("rank", [1, 4, 16, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", pools(torch.float32))
@pytest.mark.parametrize("shifted", [False, True])
def test_never_above_a_distance(name: str, dtype: torch.dtype, rank: int | None, shifted: bool) -> None:
    """Estimates through any lens, with rounding and all: what they rule out is out. At full rank they are the distance."""
    rows = pools(dtype)[name]
    if shifted and len(rows.factors) > 1:
        pytest.skip("products of factors have no other origin")
    origin = rows.factors[0].mean(dim=0) if shifted else None
    lens = Lens(None if rank is None else Sketch.of(Lens(origin=origin)(rows).rows, rank), origin)
    view = lens(rows)
    d = sq_dists(rows.double().as_matrix().numpy())
    estimates = lens.estimates(lens.probe(view), view)
    for i in range(60):  # each pair's own distance as the goal of its row: the pair must not be missed
        goals = lens.probe(view[torch.full((60,), i)]).limits(torch.from_numpy(d[i]))
        assert (estimates[i] < goals).all()
    if rank is None:
        assert (lens.nearest(view, view[:9]) >= torch.from_numpy(d[:, :9].min(axis=1))).all()


def test_the_subspace_holds_what_it_can() -> None:
    """All of a flat pool, with its dimensions given to the factor that needs them."""
    rows = pools(torch.float64)["factored"]
    sketch = Sketch.of(rows, 16)
    assert [b.shape[1] for b in sketch.bases] == [5, 3]
    np.testing.assert_allclose(sketch(rows)[:, -1], 0, atol=1e-4)
    for basis in sketch.bases:
        np.testing.assert_allclose(basis.T @ basis, torch.eye(basis.shape[1]), atol=1e-12)
    s = sketch(rows)
    np.testing.assert_allclose(s @ s.T, rows.gram(rows), atol=1e-5)


def test_useful_where_features_are_nearly_flat_only() -> None:
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(600, 256, generator=random)
    flat = torch.randn(600, 12, generator=random) @ torch.randn(12, 256, generator=random)
    assert useful_sketch(Rows((noise,))) is None
    assert useful_sketch(Rows((flat + 0.3 * noise,))) is not None
    assert useful_sketch(Rows((flat[:, :128],))) is None  # narrow already


@settings(deadline=None)
@given(rows=st.integers(1, 5), columns=st.integers(1, 70), seed=st.integers(0, 99))
def test_lowest_entries(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, limit = rng.integers(0, 9, size=(rows, columns)).astype(np.float32), rng.integers(0, 9, size=rows)
    low, every = Lowest(torch.from_numpy(d.copy())), torch.arange(rows)
    assert low.columns == columns
    assert low.values.tolist() == d.min(axis=1).tolist()
    assert d[every.numpy(), low.places(every).numpy()].tolist() == d.min(axis=1).tolist()
    i, j = low.below(every, torch.from_numpy(limit).float())
    assert sorted(zip(i.tolist(), j.tolist(), strict=True)) == sorted(zip(*np.nonzero(d < limit[:, None]), strict=True))
    chosen = torch.from_numpy(rng.permutation(rows)[: rows // 2 + 1])
    i, j = low.below(chosen, torch.from_numpy(limit).float()[chosen])
    assert len(i) == (d < limit[:, None])[chosen.numpy()].sum()
