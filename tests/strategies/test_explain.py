"""`explain`: worked by hand, and its log-determinant against numpy's."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import badge
from badge.errors import InputError
from badge.features.kinds import unit_rows
from badge.strategies.coverage import pure_radius


def example(n: int = 30, c: int = 3, d: int = 4, seed: int = 0) -> badge.Outputs:
    rng = np.random.default_rng(seed)
    return badge.Outputs.from_logits(rng.normal(size=(n, c)), rng.normal(size=(n, d)))


def test_by_hand() -> None:
    """g = ±(1, −1) a h: rows 0 to 3 lie at 0.5, 0.1, −0.4 and 0.45 times √2 along one line (h of width 1)."""
    out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.4, 0.6], [0.55, 0.45]], [[1.0], [1.0], [1.0], [1.0]])
    why = badge.explain(out, [0, 2, 3])
    root = np.sqrt(2)
    assert why.ids.tolist() == [0, 2, 3]
    assert why.label.tolist() == [0, 1, 0]
    np.testing.assert_allclose(why.confidence, [0.5, 0.6, 0.55])
    np.testing.assert_allclose(why.norm, [0.5 * root, 0.4 * root, 0.45 * root])
    np.testing.assert_allclose(why.nearest, [np.inf, 0.9 * root, 0.05 * root], rtol=1e-6)
    assert why.coverage.tolist() == [1, 1, 2]  # row 1, at 0.1, is nearest to row 3
    assert why.mean_norm == pytest.approx(0.45 * root)
    assert why.log_det == -np.inf  # three rows of a kernel of rank 1
    assert badge.explain(out, [0]).log_det == pytest.approx(np.log(0.5))


def test_binary_column() -> None:
    out = badge.Outputs([[0.5], [0.8], [0.1]], [[1.0], [2.0], [3.0]])
    why = badge.explain(out, [0, 1, 2])
    assert why.label.tolist() == [0, 1, 0]
    np.testing.assert_allclose(why.confidence, [0.5, 0.8, 0.9])
    np.testing.assert_allclose(why.norm, [0.5, 0.4, 0.3])


@pytest.mark.parametrize("k", [1, 3, 8])
def test_log_det_against_numpy(k: int) -> None:
    out = example()
    ids = badge.select_from(out, k, seed=k)
    x = badge.gradient_embedding(out).as_matrix().numpy()[ids]
    sign, log_det = np.linalg.slogdet(x @ x.T)
    assert sign == 1
    assert badge.explain(out, ids).log_det == pytest.approx(log_det, rel=1e-9)


def test_log_det_of_lengths_over_many_decades() -> None:
    out = badge.Outputs(np.tile([[0.5, 0.5]], (3, 1)), np.diag([1e-9, 1.0, 1e9]))
    assert badge.explain(out, [0, 1, 2]).log_det == pytest.approx(3 * np.log(0.5), rel=1e-9)


def test_minus_infinity() -> None:
    """Where k exceeds the rank bound (C−1)·D, where a pick is there twice, and where a gradient is 0."""
    out = example(30, 3, 4)
    assert np.isfinite(badge.explain(out, range(8)).log_det)
    assert badge.explain(out, range(9)).log_det == -np.inf
    half = badge.Outputs(out.probabilities.half(), out.embeddings.half())  # rounded rows of a do not quite sum to 0
    assert badge.explain(half, range(9)).log_det == -np.inf
    assert badge.explain(out, [4, 5, 4]).log_det == -np.inf
    twins = badge.Outputs(out.probabilities[[1, 2, 1]], out.embeddings[[1, 2, 1]])
    assert badge.explain(twins, [0, 1, 2]).log_det == -np.inf
    assert badge.explain(twins, [0, 1, 2]).nearest[2] == 0
    sure = badge.Outputs([[1.0, 0.0], [0.5, 0.5]], [[1.0, 2.0], [2.0, 1.0]])
    assert badge.explain(sure, [0, 1]).log_det == -np.inf


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_coverage(dtype: str) -> None:
    """Every pool point counts once, for the nearest pick; a distinct pick covers itself at least."""
    rng = np.random.default_rng(1)
    p = np.full((500, 2), 0.5)
    p[:, 0] = rng.uniform(0.1, 0.9, size=500)
    p[:, 1] = 1 - p[:, 0]
    out = badge.Outputs(p.astype(dtype), rng.normal(size=(500, 3)).astype(dtype))
    ids = badge.select_from(out, 20)
    why = badge.explain(out, ids)
    assert why.coverage.sum() == 500
    assert why.coverage.min() >= 1
    x = badge.gradient_embedding(out).as_matrix().double().numpy()
    nearest = ((x[:, None] - x[ids][None]) ** 2).sum(axis=2).argmin(axis=1)
    assert np.abs(np.bincount(nearest, minlength=20) - why.coverage).sum() <= 2  # but for ties within rounding
    earlier = [((x[ids[t]] - x[ids[:t]]) ** 2).sum(axis=1).min() ** 0.5 for t in range(1, 20)]
    np.testing.assert_allclose(why.nearest[1:], earlier, rtol=1e-4)


def test_rows_for_tables() -> None:
    rows = badge.explain(example(), [3, 5]).rows()
    assert [row["position"] for row in rows] == [3, 5]
    assert set(rows[0]) == {"position", "norm", "label", "confidence", "nearest", "coverage"}
    assert json.loads(json.dumps(rows)) == rows


def test_bad_ids() -> None:
    with pytest.raises(InputError, match="ids is empty"):
        badge.explain(example(), [])
    with pytest.raises(InputError, match="ids go from 2 to 30: positions go from 0 to 29"):
        badge.explain(example(), [2, 30])
    with pytest.raises(InputError, match="flat list of integers"):
        badge.explain(example(), [0.5])


def test_what_each_pick_added_to_the_objective() -> None:
    """The gains of greedy picks fall, and they sum to the value of the batch."""
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(2 * rng.normal(size=(120, 3)), rng.normal(size=(120, 5)))
    done, pool = out[:10], out[10:]
    x, given = (
        z.embeddings.numpy() / np.linalg.norm(z.embeddings.numpy(), axis=1, keepdims=True) for z in (pool, done)
    )
    picks = badge.select_from(pool, 8, "maxherding", labeled=done)
    why = badge.explain(pool, picks, strategy="maxherding", labeled=done)
    kernel = np.exp(-((x[:, None] - np.concatenate([given, x[picks]])[None]) ** 2).sum(axis=2))
    value = kernel.max(axis=1).sum() - kernel[:, :10].max(axis=1).sum()
    assert why.gain is not None and why.gain.sum() == pytest.approx(value, rel=1e-5)
    assert (np.diff(why.gain) <= 1e-9).all() and why.rows()[0]["gain"] == why.gain[0]
    p, h = pool.probabilities.double().numpy(), pool.embeddings.double().numpy()
    z = np.sqrt(p.max(axis=1) * (1 - p.max(axis=1)))[:, None] * h
    penalty = 0.01 * (h**2).sum(axis=1).mean() * np.eye(5)
    left = [np.trace(np.linalg.inv(penalty + z[picks[:i]].T @ z[picks[:i]]) @ z.T @ z / 110) for i in range(9)]
    added = badge.explain(pool, picks, strategy="bait-binary").gain
    np.testing.assert_allclose(added, -np.diff(left), rtol=1e-4)  # type: ignore[arg-type]
    a = np.sqrt(p)[:, :, None] * (np.eye(3) - p[:, None, :])
    v = np.einsum("nyc,nd->nycd", a, h).reshape(110, 3, 15)
    penalty = 0.01 * (h**2).sum(axis=1).mean() * np.eye(15)
    gram = [np.einsum("nya,nyb->ab", v[rows], v[rows]) for rows in (picks[:i] for i in range(9))]
    left = [np.trace(np.linalg.inv(penalty + g) @ np.einsum("nya,nyb->ab", v, v) / 110) for g in gram]
    added = badge.explain(pool, picks, strategy="bait").gain
    np.testing.assert_allclose(added, -np.diff(left), rtol=1e-4)  # type: ignore[arg-type]
    assert badge.explain(pool, picks).gain is None and "gain" not in badge.explain(pool, picks).rows()[0]
    with pytest.raises(InputError, match="maxherding, uherding, probcover, bait and bait-binary, not for 'badge'"):
        badge.explain(pool, picks, strategy="badge")


def test_the_share_of_the_pool_that_each_pick_of_probcover_newly_covers() -> None:
    """With seed 0 the radius is that of the picks: shares fall as they are greedy, and they sum to what the balls hold."""
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(2 * rng.normal(size=(120, 3)), rng.normal(size=(120, 5)))
    done, pool = out[:10], out[10:]
    picks = badge.select_from(pool, 8, "probcover", labeled=done, seed=0)
    added = badge.explain(pool, picks, strategy="probcover", labeled=done).gain
    x, given = unit_rows(pool.embeddings), unit_rows(done.embeddings)
    delta = pure_radius(x, 3, np.random.default_rng(0))
    held = torch.cdist(x.as_matrix(), torch.cat([given.as_matrix(), x.as_matrix()[picks]])) < delta
    shares = [float(held[:, : 10 + i].any(dim=1).double().mean()) for i in range(9)]
    np.testing.assert_allclose(added, np.diff(shares), atol=1e-12)  # type: ignore[arg-type]
    assert added is not None and (np.diff(added) <= 1e-12).all() and 0 < added.sum() < 1
