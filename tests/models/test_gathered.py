"""Batches of a pass are gathered: probabilities and checks come a block of rows at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import ModelError
from badge.models import sinks
from badge.models.links import softmax
from badge.models.one_pass import Pass
from badge.models.options import Options, PassOptions


@pytest.mark.parametrize("columns", [2, 3, 10, 15, 16, 40])
def test_a_softmax_depends_on_its_row_alone(columns: int) -> None:
    z = 5 * torch.randn(100, columns, generator=torch.Generator().manual_seed(0))
    p = softmax(z)
    assert torch.equal(p, torch.cat([softmax(row[None]) for row in z]))
    torch.testing.assert_close(p, torch.softmax(z.double(), dim=1).float(), rtol=4e-6, atol=0)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    net, pool = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(64, 4)
    whole = badge.predict(net, pool, batch_size=8)
    monkeypatch.setattr(sinks, "CHECK_ROWS", rows)
    parts = badge.predict(net, pool, batch_size=8)
    assert torch.equal(whole.probabilities, parts.probabilities)
    assert torch.equal(whole.embeddings, parts.embeddings)


def test_a_model_that_returns_one_buffer_again_and_again() -> None:
    class Buffered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.out = nn.Linear(4, 3), torch.empty(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out.copy_(self.fc(x))

    net, pool = Buffered(), torch.randn(64, 4)
    with torch.no_grad():
        expected = net.fc(pool).softmax(dim=1)
    torch.testing.assert_close(badge.predict(net, pool, batch_size=8).probabilities, expected)


class Bounded(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.nan_to_num(0.0).clamp(-1, 1)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_an_embedding_that_is_not_finite_is_found_behind_finite_scores(wrong: float) -> None:
    pool = torch.randn(64, 4)
    pool[50, 1] = wrong
    net = nn.Sequential(nn.Linear(4, 3), Bounded())
    with pytest.raises(ModelError, match=r"embeddings hold NaN or inf in 1 row \(first: 50\)"):
        badge.predict(net, pool, batch_size=8, head="0")
    with pytest.raises(ModelError, match=r"probabilities hold NaN or inf in 1 row \(first: 50\)"):
        badge.predict(net[0], pool, batch_size=8)


class Growing(nn.Module):
    """Twos of scores for the first batch, threes for the others."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, : 2 if x[0, 0] == 0 else 3]


@pytest.mark.parametrize("on_disk", [False, True])
def test_batches_with_other_numbers_of_classes_are_one_line(on_disk: bool, tmp_path: Path) -> None:
    pool = torch.arange(64.0).reshape(16, 4)
    with pytest.raises(ModelError, match="rows 8 to 15 of 16 have 3 classes, earlier ones 2"):
        badge.predict(Growing(), pool, batch_size=8, embeddings=False, out=tmp_path / "out" if on_disk else None)


def test_two_passes_of_one_network_share_no_memory(tmp_path: Path) -> None:
    first_layer, pool = nn.Linear(4, 8), torch.randn(64, 4)
    net = nn.Sequential(first_layer, nn.ReLU(), nn.Linear(8, 3))
    one_pass = Pass.of(net, pool, Options.of("predict", PassOptions, {"batch_size": 8}, None))
    first = one_pass.outputs()
    kept = first.embeddings.clone()
    with torch.no_grad():
        first_layer.weight.zero_()
    one_pass.outputs(tmp_path / "out")
    one_pass.outputs()
    assert torch.equal(first.embeddings, kept)
