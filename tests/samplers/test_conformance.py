"""One suite that every sampler and every strategy passes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import badge
from badge.errors import InputError, RankError
from badge.samplers.plain import plain_kcenter, plain_kmeanspp

Pick = Callable[[badge.Outputs, int, int], NDArray[np.int64]]


def by_sampler(function: Any, **options: Any) -> Pick:
    return lambda out, k, seed: function(badge.gradient_embedding(out), k, np.random.default_rng(seed), **options)


def by_name(name: str) -> Pick:
    return lambda out, k, seed: badge.select_from(out, k, name, seed=seed, labeled=out[:1])


EVERYONE: dict[str, Pick] = {
    **{f"strategy {name}": by_name(name) for name in badge.strategies.NAMES},
    "kmeanspp": by_sampler(badge.samplers.kmeanspp),
    "kmeanspp max-norm": by_sampler(badge.samplers.kmeanspp, first="max-norm"),
    "kmeanspp given": lambda out, k, seed: badge.samplers.kmeanspp(
        badge.gradient_embedding(out), k, np.random.default_rng(seed), given=badge.gradient_embedding(out)[:1]
    ),
    "kcenter": by_sampler(badge.samplers.kcenter),
    "kdpp mcmc": by_sampler(badge.samplers.kdpp),
    "kdpp exact": by_sampler(badge.samplers.kdpp, method="exact"),
    "topk": lambda out, k, seed: badge.samplers.topk(
        badge.gradient_embedding(out).sq_norms.double().numpy(), k, np.random.default_rng(seed)
    ),
    "plain kmeanspp": by_sampler(plain_kmeanspp),
    "plain kcenter": by_sampler(plain_kcenter),
}


def outputs(n: int, c: int = 4, d: int = 6, seed: int = 0, dtype: Any = np.float32) -> badge.Outputs:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, c))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return badge.Outputs(p.astype(dtype), rng.normal(size=(n, d)).astype(dtype))


def rank(out: badge.Outputs) -> int:
    return int(np.linalg.matrix_rank(badge.gradient_embedding(out).as_matrix().double().numpy(), tol=1e-5))


def passes(name: str, out: badge.Outputs, k: int) -> None:
    """k distinct int64 positions, the same again; for the k-DPP above the rank (below N), the error that says so."""
    pick = EVERYONE[name]
    if "kdpp" in name and rank(out) < k < len(out):
        with pytest.raises(RankError, match=rf"asked for {k} points? of a kernel of rank"):
            pick(out, k, 0)
        return
    if name == "strategy bait" and out.classes == 1000:
        with pytest.raises(InputError, match="use bait-binary"):
            pick(out, k, 0)
        return
    picks = pick(out, k, 0)
    assert isinstance(picks, np.ndarray) and picks.dtype == np.int64 and picks.shape == (k,)
    assert len(set(picks.tolist())) == k
    assert picks.min() >= 0 and picks.max() < len(out)
    assert pick(out, k, 0).tolist() == picks.tolist()


CASES: dict[str, tuple[Callable[[], badge.Outputs], int]] = {
    "ordinary": (lambda: outputs(50), 7),
    "float64": (lambda: outputs(50, dtype=np.float64), 7),
    "float16": (lambda: outputs(50, dtype=np.float16), 7),
    "one": (lambda: outputs(1), 1),
    "k = N": (lambda: outputs(15), 15),
    "k = N above the rank": (lambda: outputs(30), 30),
    "C = 2": (lambda: outputs(40, c=2), 5),
    "one column": (lambda: badge.Outputs(outputs(40, c=2).probabilities[:, :1], outputs(40, c=2).embeddings), 5),
    "C = 1000": (lambda: outputs(60, c=1000, d=8), 20),
    "C = 1000, k = N": (lambda: outputs(60, c=1000, d=8), 60),
    "duplicates": (lambda: outputs(10)[np.repeat(np.arange(10), 6)], 12),
    "all the same": (lambda: outputs(1)[np.zeros(20, dtype=int)], 6),
    "zero gradients": (lambda: badge.Outputs(np.tile([[1.0, 0.0, 0.0]], (12, 1)), np.ones((12, 3))), 5),
    "zero embeddings": (lambda: badge.Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 11),
    "zero embeddings, k = N": (lambda: badge.Outputs(np.full((12, 4), 0.25), np.zeros((12, 3))), 12),
    "one gradient is not zero": (
        lambda: badge.Outputs(np.concatenate([np.tile([[1.0, 0.0]], (9, 1)), [[0.5, 0.5]]]), np.ones((10, 3))),
        4,
    ),
    "wide": (lambda: outputs(20, c=3, d=300), 20),
}


@pytest.mark.parametrize("name", EVERYONE)
@pytest.mark.parametrize("case", CASES)
def test_conforms(name: str, case: str) -> None:
    make, k = CASES[case]
    passes(name, make(), k)


@pytest.mark.parametrize("name", EVERYONE)
def test_numpy_integers_for_k(name: str) -> None:
    assert len(EVERYONE[name](outputs(20), np.int64(3), 0)) == 3  # type: ignore[arg-type]


def everyone_once() -> dict[str, list[int]]:
    return {name: pick(outputs(300), 15, 11).tolist() for name, pick in EVERYONE.items()}


def test_same_seed_same_answer_in_a_fresh_process() -> None:
    code = "import json, test_conformance; print(json.dumps(test_conformance.everyone_once()))"
    paths = f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}; "
    done = subprocess.run([sys.executable, "-c", paths + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == everyone_once()


@pytest.mark.parametrize("name", ["strategy badge", "kmeanspp", "kmeanspp given", "kdpp mcmc", "strategy kdpp"])
def test_one_call_does_not_change_the_next(name: str) -> None:
    out = outputs(40)
    first = EVERYONE[name](out, 6, 3).tolist()
    EVERYONE[name](out, 9, 4)
    assert EVERYONE[name](out, 6, 3).tolist() == first
