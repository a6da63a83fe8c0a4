"""Embeddings of any scale: the picks do not depend on it, or the scale is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError

RNG = np.random.default_rng(0)
LOGITS, H = RNG.normal(size=(600, 4)), RNG.normal(size=(600, 6))


@pytest.mark.parametrize("strategy", ["badge", "kmeanspp", "kcenter-grad"])
@pytest.mark.parametrize(("dtype", "exponents"), [("float32", range(-145, 50, 5)), ("float64", range(-1070, 480, 50))])
def test_picks_do_not_depend_on_the_scale_or_it_is_refused(strategy: str, dtype: str, exponents: range) -> None:
    wanted = badge.select_from(badge.Outputs.from_logits(LOGITS, H.astype(dtype)), 60, strategy=strategy, seed=1)
    refused = 0
    for exponent in exponents:
        scaled = np.ldexp(H.astype(dtype), exponent).astype(dtype)
        try:
            out = badge.Outputs.from_logits(LOGITS, scaled)
        except InputError as error:
            assert "squares underflow: multiply them by" in str(error)
            refused += 1
            continue
        assert (badge.select_from(out, 60, strategy=strategy, seed=1) == wanted).all(), exponent
    assert 0 < refused < len(exponents) / 2 + 2


def test_a_few_small_rows_and_zeros_are_welcome() -> None:
    h = np.full((700, 3), 1e-310)
    h[-1] = 1.0
    assert len(badge.Outputs(embeddings=h)) == 700
    assert len(badge.Outputs(embeddings=np.zeros((700, 3)))) == 700


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_model_whose_embeddings_underflow_is_named(tmp_path: Path, on_disk: bool) -> None:
    net = torch.nn.Linear(4, 3)
    with pytest.raises(InputError, match="squares underflow"):
        badge.predict(net, torch.full((90, 4), 1e-30), out=tmp_path / "out" if on_disk else None)


def test_plain_vectors_too() -> None:
    for matrix in (np.full((5, 3), 1e-310), np.full((5, 3), 1e-30, dtype=np.float32)):
        with pytest.raises(
            InputError, match=r"the features are at most .* and their squares underflow: multiply them by"
        ):
            badge.Dense(matrix)
    assert len(badge.Dense(np.zeros((5, 3)))) == 5
