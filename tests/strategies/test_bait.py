"""BAIT against the loop of its authors' code, with whole matrices; its rank-one form too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from badge.samplers import fisher
from badge.samplers.plain import plain_bait
from badge.strategies.bait import bait, bait_binary

RNG = np.random.default_rng


def outputs(n: int, c: int, d: int, seed: int, dtype: type = np.float32) -> badge.Outputs:
    rng = RNG(seed)
    return badge.Outputs.from_logits((2 * rng.normal(size=(n, c))).astype(dtype), rng.normal(size=(n, d)).astype(dtype))


def blocks(out: badge.Outputs, binary: bool) -> np.ndarray:
    """V of every row as the authors' code has it, [N, r, columns]."""
    p, h = out.probabilities.double().numpy(), out.embeddings.double().numpy()
    p = np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p
    if binary:  # the two columns of dal-toolbox
        top = p.max(axis=1)
        two = np.stack([np.sqrt(top) * (1 - top), -np.sqrt(1 - top) * top], axis=1)
        return two[:, :, None] * h[:, None, :]
    a = np.sqrt(p)[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
    return np.einsum("nyc,nd->nycd", a, h).reshape(len(p), p.shape[1], -1)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("done", [0, 12])
@pytest.mark.parametrize("c", [1, 4])
def test_picks_of_the_plain_loop(binary: bool, done: int, c: int) -> None:
    out, known = outputs(90, c, 6, seed=c), outputs(done, c, 6, seed=9) if done else None
    mean = float(out.embeddings.double().square().sum(dim=1).mean())
    expected = plain_bait(blocks(out, binary), None if known is None else blocks(known, binary), 9, penalty=0.01 * mean)
    found = (bait_binary if binary else bait)(out, 9, RNG(0), labeled=known)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("binary", "n", "k", "d"), [(True, 500, 80, 24), (False, 250, 60, 8)])
def test_many_steps(binary: bool, n: int, k: int, d: int) -> None:
    """Rounding adds up over 2k steps; rows that it leaves undecided are worked out again."""
    out = outputs(n, 3, d, seed=3)
    mean = float(out.embeddings.double().square().sum(dim=1).mean())
    expected = plain_bait(blocks(out, binary), None, k, penalty=0.01 * mean)
    assert (bait_binary if binary else bait)(out, k, RNG(0)).tolist() == expected.tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_the_pool_on_several_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fisher, "ROWS", 16)
    out, before = outputs(500, 3, 24, seed=3), torch.get_num_threads()
    mean = float(out.embeddings.double().square().sum(dim=1).mean())
    torch.set_num_threads(threads)
    try:
        found = bait_binary(out, 40, RNG(0)).tolist()
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert found == plain_bait(blocks(out, True), None, 40, penalty=0.01 * mean).tolist()


@pytest.mark.parametrize("strategy", [bait, bait_binary])
def test_nearly_all(strategy: object) -> None:
    """2k forward steps of fewer than 2k rows."""
    out = outputs(10, 3, 4, seed=1)
    for k in (7, 10):
        assert len(set(strategy(out, k, RNG(0)).tolist())) == k  # type: ignore[operator]


def test_equal_rows_go_to_the_lowest_position() -> None:
    out = outputs(4, 3, 5, seed=2)[np.repeat(np.arange(4), 3)]
    for strategy in (bait, bait_binary):
        assert strategy(out, 2, RNG(0)).tolist() == strategy(out, 2, RNG(1)).tolist()
        assert strategy(out, 1, RNG(0))[0] % 3 == 0


def test_too_wide() -> None:
    out = badge.Outputs(np.full((4, 100), 0.01), np.ones((4, 512)))
    with pytest.raises(InputError, match=r"bait needs a matrix of 100 × 512 = 51,200 rows .* use bait-binary"):
        bait(out, 2, RNG(0))
    assert len(bait_binary(out, 2, RNG(0))) == 2


@pytest.mark.parametrize("strategy", [bait, bait_binary])
def test_a_very_small_strength(strategy: Any) -> None:
    """Equal rows leave M nearly singular: what is allowed gives picks, what is not is one line."""
    out = outputs(5, 4, 5, seed=0)[np.repeat(np.arange(5), 12)]
    assert len(set(strategy(out, 10, RNG(0), strength=1e-9).tolist())) == 10
    with pytest.raises(InputError, match=r"strength is 1e-12, and must be at least 1e-09: the default is 0\.01"):
        strategy(out, 10, RNG(0), strength=1e-12)


def test_multilabel() -> None:
    out = badge.Outputs(torch.rand(5, 3), torch.rand(5, 2), multilabel=True)
    for strategy in (bait, bait_binary):
        with pytest.raises(InputError, match="multi-label"):
            strategy(out, 2, RNG(0))
