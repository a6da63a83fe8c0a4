"""`explain`: worked by hand, and its log-determinant against numpy's."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.core.rng import derive
from badge.errors import InputError
from badge.features.kinds import unit_rows
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.plain import plain_covered, plain_variance
from badge.strategies.bait import bait_binary
from badge.strategies.coverage import probcover, pure_radius
from badge.strategies.uncertainty import doubt
from badge.strategies.wkmeans import wkmeans
from badge.training import Frozen


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


def blocks(out: badge.Outputs, binary: bool) -> np.ndarray:
    """The rows V of the last layer's Fisher information, as in BAIT's paper."""
    p, h = out.probabilities.double().numpy(), out.embeddings.double().numpy()
    if binary:
        return (np.sqrt(p.max(axis=1) * (1 - p.max(axis=1)))[:, None] * h)[:, None]
    a = np.sqrt(p)[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])
    return np.einsum("nyc,nd->nycd", a, h).reshape(len(p), p.shape[1], -1)


def by_hand(
    name: str, pool: badge.Outputs, done: badge.Outputs | None, picks: Any, seed: Any = 0, strength: float = 0.01
) -> np.ndarray:
    """By how much each pick raises the objective of its strategy, from the objective's value before and after."""
    picks = np.asarray(picks)
    if "bait" in name:
        binary, penalty = name == "bait-binary", strength * float(pool.embeddings.double().square().sum(dim=1).mean())
        v, known = blocks(pool, binary), None if done is None else blocks(done, binary)
        return -np.diff([plain_variance(v, known, picks[:i], len(picks), penalty) for i in range(len(picks) + 1)])
    x, given = unit_rows(pool.embeddings), None if done is None else unit_rows(done.embeddings)
    kernel: Gauss | Ball = Gauss(1.0)
    weights = None
    if name == "probcover":
        kernel = Ball(pure_radius(x, pool.classes, np.random.default_rng(seed)))
        weights = torch.full((len(x),), 1 / len(x))
    elif name in ("uherding", "auto") and given is not None:
        kernel, weights = Gauss(float(torch.pdist(given.as_matrix().double()).min())), doubt(pool)
    return np.diff([plain_covered(x, picks[:i], kernel, weights, given) for i in range(len(picks) + 1)])


WITH_GAINS = ["maxherding", "uherding", "probcover", "bait", "bait-binary", "auto"]


@pytest.fixture
def parts() -> tuple[badge.Outputs, badge.Outputs]:
    """Labelled examples and a pool."""
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(2 * rng.normal(size=(120, 3)), rng.normal(size=(120, 5)))
    return out[:10], out[10:]


@pytest.mark.parametrize("name", WITH_GAINS)
@pytest.mark.parametrize("known", ["labeled", "exclude", "none"])
@pytest.mark.parametrize("seed", [0, 5])
def test_what_each_pick_added_to_the_objective(
    name: str, known: str, seed: int, parts: tuple[badge.Outputs, badge.Outputs]
) -> None:
    """Of the pool that the strategy saw: without the excluded rows, which count as labelled."""
    done, pool = parts
    options: dict[str, Any] = {"strategy": name, "seed": seed}
    if known == "none":
        if name == "auto":
            return
        picks = badge.select_from(pool, 8, **options)
        why, expected = badge.explain(pool, picks, **options), by_hand(name, pool, None, picks, seed)
    elif known == "labeled":
        picks = badge.select_from(pool, 8, labeled=done, **options)
        why = badge.explain(pool, picks, labeled=done, **options)
        expected = by_hand(name, pool, done, picks, seed)
    else:
        gone = np.arange(0, 110, 11)
        left = np.setdiff1d(np.arange(110), gone)
        picks = badge.select_from(pool, 8, exclude=gone, **options)
        why = badge.explain(pool, picks, exclude=gone, **options)
        expected = by_hand(name, pool[left], pool[gone], np.searchsorted(left, picks), seed)
    assert why.gain is not None
    np.testing.assert_allclose(why.gain, expected, rtol=1e-4, atol=1e-6)
    assert why.rows()[0]["gain"] == why.gain[0] and (expected > 0).all()
    if "bait" not in name:  # backward steps leave no order by gain
        assert (np.diff(why.gain) <= 1e-9).all()


def test_gains_by_options_of_the_strategy(parts: tuple[badge.Outputs, badge.Outputs]) -> None:
    done, pool = parts
    strategy = partial(bait_binary, strength=0.5)
    picks = badge.select_from(pool, 8, strategy, labeled=done)
    added = badge.explain(pool, picks, strategy, done).gain
    np.testing.assert_allclose(added, by_hand("bait-binary", pool, done, picks, strength=0.5), rtol=1e-4)  # type: ignore[arg-type]
    wide = badge.explain(pool, [0, 1, 2], partial(probcover, delta=3.0)).gain
    assert wide is not None and wide.tolist() == [1, 0, 0]  # the first ball holds everything


def test_strategies_without_an_objective_are_named(parts: tuple[badge.Outputs, badge.Outputs]) -> None:
    done, pool = parts
    assert badge.explain(pool, [1]).gain is None and "gain" not in badge.explain(pool, [1]).rows()[0]
    for strategy, name in (("badge", "badge"), ("coreset", "coreset"), (partial(wkmeans, beta=2), "wkmeans")):
        with pytest.raises(InputError, match=rf"^{name} has no objective that each pick adds to: leave strategy out$"):
            badge.explain(pool, [1], strategy)
    first = "auto picks the first batch by typiclust, which has no objective that each pick adds to: leave strategy out"
    with pytest.raises(InputError, match=f"{first}, or give the labelled examples"):
        badge.explain(pool, [1], "auto")
    assert badge.explain(pool, [1], "auto", done).gain is not None
    with pytest.raises(InputError, match="id 3 is excluded: gains are of examples that could be picked"):
        badge.explain(pool, [1, 3], "uherding", exclude=[3, 4])
    with pytest.raises(InputError, match=r"labeled must be badge\.Outputs of the labelled examples, not list"):
        badge.explain(pool, [1], "uherding", labeled=[1])  # type: ignore[arg-type]


def test_a_learner_knows_the_gains_of_its_last_batch() -> None:
    """By the model, the labels and the strategy that picked it, whatever came since."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(90, 4)).astype(np.float32)
    strategies = [*WITH_GAINS, partial(bait_binary, strength=0.5)]
    for strategy in strategies:
        name = strategy if isinstance(strategy, str) else "bait-binary"
        with badge.ActiveLearner(z, Frozen(torch.nn.Identity()), classes=3, seed=3, strategy=strategy) as learner:
            learner.tell(range(12), [0, 1, 2] * 4, unasked=True)
            out, left = learner.outputs, learner.candidates
            picks = learner.ask(6)
            places = np.searchsorted(left, picks)
            options: dict[str, Any] = {"seed": derive(3, "ask", 0)} if name == "probcover" else {}
            options |= {} if isinstance(strategy, str) else {"strength": 0.5}
            expected = by_hand(name, out[left], out[np.arange(12)], places, **options)
            learner.tell(picks, [0, 1, 2] * 2)
            assert (learner.explain([40, 41]).gain is not None) and learner.explain([40, 2]).gain is not None
            if isinstance(strategy, str):  # an object that is not there any more is not asked
                learner.use("marg")
                assert learner.explain([40, 41]).gain is None  # marg has no objective
            np.testing.assert_allclose(learner.explain().gain, expected, rtol=1e-3, atol=1e-5)  # type: ignore[arg-type]
            learner.use("marg")
            learner._explained = None
            assert (learner.explain().gain is not None) == isinstance(strategy, str)


def test_gains_are_by_the_labels_that_the_model_was_trained_on() -> None:
    """A label that is told while the model looks at the pool belongs to the next model."""
    told: list[Any] = []
    z = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)

    def predict(model: Any, pool: Any) -> badge.Outputs:
        if not told:
            told.append(learner.tell([60], [1], unasked=True))
        return badge.predict(model, pool)

    options: dict[str, Any] = {"classes": 3, "seed": 3, "strategy": "uherding", "predict": predict}
    with badge.ActiveLearner(z, Frozen(torch.nn.Identity()), **options) as learner:
        learner.tell(range(12), [0, 1, 2] * 4, unasked=True)
        model = learner.model
        gain = learner.explain([40, 41]).gain
        assert told and len(learner.labels) == 13 and gain is not None
        out = badge.predict(model, z)
    np.testing.assert_allclose(gain, by_hand("uherding", out[12:], out[:12], [28, 29]), rtol=1e-3, atol=1e-5)
