"""`grids/embed.py`: the embeddings that `grids/frozen.toml` needs, with small encoders in place of the real ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import badge
from grids import embed

MADE = {
    *("trec-minilm", "banking77-minilm", "cifar10-efficientnet", "svhn-efficientnet"),
    *("cifar10-efficientnet-rare", "mnist-rare"),
}


class Pixels(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, :5].float() + 1


def lengths(texts: Sequence[str]) -> Tensor:
    return torch.tensor([[len(text), text.count(" ") + 1.0] for text in texts])


def test_every_set_is_made_once_and_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, y = np.random.default_rng(0), np.arange(400) % 10
    sources, made = tmp_path / "sources", tmp_path / "made"
    sources.mkdir()
    for name in ("cifar10", "svhn", "mnist"):
        x = rng.integers(0, 256, size=(400, 4, 4, 3), dtype=np.uint8)
        np.savez(sources / f"{name}.npz", X_train=x, y_train=y, X_test=x[:20], y_test=y[:20])
    rows = [{"split": s, "label": c, "text": f"{s} of {c}"} for s in ("train", "test") for c in ("b", "a", "a")]
    for name in ("trec", "banking77"):
        (sources / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setenv("BADGE_DATA", str(sources))
    monkeypatch.setattr(embed, "EfficientNet", Pixels)
    monkeypatch.setattr(embed, "minilm", lambda: lengths)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)
    embed.main(made)

    assert {path.stem for path in made.glob("*.npz")} == MADE
    texts, images = np.load(made / "trec-minilm.npz"), np.load(made / "svhn-efficientnet.npz")
    assert texts["y_train"].tolist() == [1, 0, 0] and texts["class_names"].tolist() == ["a", "b"]
    assert np.allclose(np.linalg.norm(texts["X_train"], axis=1), 1) and images["X_train"].shape == (400, 5)
    for name in ("cifar10-efficientnet-rare", "mnist-rare"):  # from 40 of the first class to 40 / 100 of the last
        counts = np.bincount(np.load(made / f"{name}.npz")["y_train"], minlength=10)
        assert counts[0] == 40 and (np.diff(counts) <= 0).all() and counts[-1] == 0
    monkeypatch.setenv("BADGE_DATA", str(made))
    assert badge.data.load("trec-minilm").X_train.shape == (3, 2)

    before = {path: path.stat().st_mtime_ns for path in made.glob("*.npz")}
    embed.main(made)
    assert before == {path: path.stat().st_mtime_ns for path in made.glob("*.npz")}
