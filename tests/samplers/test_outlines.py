"""Outlines and lengths: what they rule out is out, and it is most of what has another label or another length."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from badge.features import Rows
from badge.samplers.nearest import Centres, Tuning
from badge.samplers.nearest.outlines import label_blocks
from badge.testing.laws import sq_dists

N = 24


def pools(dtype: torch.dtype) -> dict[str, Rows]:
    random = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    a, h = normal(N, 3), normal(N, 40)
    sign = torch.where(torch.arange(N) % 2 == 0, 1.0, -1.0)[:, None]
    found = {
        "signs mixed": (a, h),
        "one direction": (a, normal(1, 40) * normal(N, 1)),  # |⟨h, g⟩| = ‖h‖ ‖g‖: nothing to spare but rounding
        "the same rows from negated factors": (a[torch.arange(N) // 2] * sign, h[torch.arange(N) // 2] * sign),
        "skewed": (a, h * 10 ** (3 * normal(N, 1))),
        "zeros": (a * (sign > 0), h),
        "vanishing": (1e-22 * a, 1e-3 * h),
        "vectors": (h,),
        "vectors, skewed": (h * 10 ** (3 * normal(N, 1)),),
        "vectors, on a line": (h[:1] * (1 - 10 ** (-8 * torch.rand(N, 1, generator=random, dtype=torch.float64))),),
        "vectors, vanishing": (h * 10 ** (-20 - 4 * torch.rand(N, 1, generator=random, dtype=torch.float64)),),
    }
    return {name: Rows(tuple(f.to(dtype) for f in factors)) for name, factors in found.items()}


def left(rows: Rows, centres: Centres, goal: torch.Tensor) -> torch.Tensor:
    view, every = centres.lens(rows), torch.arange(centres.count)
    found = centres.possible(view, centres.lens.probe(view), goal, 0, len(every), view.sq_norms.new_empty(100))
    return torch.cat([every[part] for part in found]) if found else every[:0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", pools(torch.float32))
def test_no_centre_that_could_be_as_near_is_ruled_out(name: str, dtype: torch.dtype) -> None:
    rows = pools(dtype)[name]
    centres = Centres(Tuning())
    for part in (slice(0, 10), slice(10, N)):
        centres.add(rows[part], np.full(len(rows[part]), -1))
    d = torch.from_numpy(sq_dists(rows.double().as_matrix().numpy()))
    for i in range(N):
        for j in range(N):  # each pair's own distance as the goal of its row: the pair must not be missed
            assert j in left(rows[i : i + 1], centres, d[i, j : j + 1]).tolist()
    goal = d.median(dim=1).values
    kept = left(rows, centres, goal).tolist()
    assert set((d <= goal[:, None]).any(dim=0).nonzero()[:, 0].tolist()) <= set(kept)


def test_other_lengths_are_ruled_out() -> None:
    random = torch.Generator().manual_seed(0)
    lengths = 2.0 ** torch.arange(40)
    rows = Rows((torch.nn.functional.normalize(torch.randn(40, 16, generator=random)) * lengths[:, None],))
    centres = Centres(Tuning())
    centres.add(rows, np.full(len(rows), -1))
    for i in (0, 7, 39):
        goal = rows[i : i + 1].sq_norms().double() / 9
        assert left(rows[i : i + 1], centres, goal).tolist() == [i]


def test_other_labels_are_ruled_out() -> None:
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(200) % 5
    a = torch.nn.functional.one_hot(labels, 5) + 0.02 * torch.randn(200, 5, generator=random)
    rows = Rows((a, torch.randn(200, 64, generator=random)))
    centres = Centres(Tuning())
    centres.add(rows, np.full(len(rows), -1))
    blocks = label_blocks(rows, size=32)
    assert [labels[block].unique().tolist() for block in blocks] == [[0], [1], [2], [3], [4]]
    for label, block in enumerate(blocks):
        assert labels[left(rows[block], centres, rows[block].sq_norms().double())].unique().tolist() == [label]


def test_small_labels_share_a_block() -> None:
    a = torch.eye(6)[torch.tensor([0, 1, 2, 2, 2, 3, 4, 5])]
    assert [block.tolist() for block in label_blocks(Rows((a, a)), size=3)] == [[0, 1, 2, 3, 4], [5], [6, 7]]
