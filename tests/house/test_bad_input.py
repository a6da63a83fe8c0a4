"""Bad input: every message states the condition, the values and the way out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.naive_bayes import GaussianNB

import badge
from badge.core.catalog import ONE_PASS
from badge.errors import BadgeError, InputError

P = np.full((6, 4), 0.25)
H = np.arange(12.0).reshape(6, 2)
OUT = badge.Outputs(P, H)


def changed(array: np.ndarray, row: int, value: Any) -> np.ndarray:
    array = array.copy()
    array[row] = value
    return array


@pytest.mark.parametrize("name", ONE_PASS)
@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "k must be a whole number ≥ 1, not 0"),
        (-3, "k must be a whole number ≥ 1, not -3"),
        (7, "asked for 7 of 6 candidates: k must be at most 6"),
        (2.0, "k must be a whole number ≥ 1, not 2.0"),
        (True, "k must be a whole number ≥ 1, not True"),
        (np.True_, "k must be a whole number ≥ 1, not "),
        ("2", "k must be a whole number ≥ 1, not '2'"),
    ],
)
def test_k(name: str, k: Any, message: str) -> None:
    for exclude in (None, [0]):
        with pytest.raises(InputError, match=re.escape(message)):
            badge.select_from(OUT, k, name, labeled=OUT, exclude=exclude)


@pytest.mark.parametrize("sampler", ["kmeanspp", "kcenter", "kdpp", "topk"])
def test_k_of_samplers(sampler: str) -> None:
    argument: Any = np.arange(6.0) if sampler == "topk" else badge.gradient_embedding(OUT)
    for k, message in ((0, "k must be a whole number ≥ 1"), (7, "asked for 7 of 6 candidates")):
        with pytest.raises(InputError, match=message):
            getattr(badge.samplers, sampler)(argument, k, np.random.default_rng(0))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_not_finite(value: float, kind: Any) -> None:
    for name, p, h in (
        ("probabilities", changed(changed(P, 4, value), 2, value), H),
        ("embeddings", P, changed(changed(H, 4, value), 2, value)),
    ):
        message = rf"{name} hold NaN or inf in 2 rows \(first: 2, 4\): drop or repair these rows"
        with pytest.raises(InputError, match=message):
            badge.Outputs(kind(p), kind(h))
    with pytest.raises(InputError, match=r"features hold NaN or inf in 1 row \(first: 1\)"):
        badge.Dense(kind(changed(H, 1, value)))
    with pytest.raises(InputError, match=r"h hold NaN or inf in 1 row \(first: 1\)"):
        badge.Factored(P, kind(changed(H, 1, value)))


def test_opposite_infinities_do_not_cancel() -> None:
    with pytest.raises(InputError, match="NaN or inf in 2 rows"):
        badge.Outputs(P, changed(changed(H, 0, np.inf), 1, -np.inf))


def test_logits_that_are_not_finite() -> None:
    with pytest.raises(InputError, match=r"logits hold NaN or inf in 1 row \(first: 3\)"):
        badge.Outputs.from_logits(changed(P, 3, np.nan), H)


def test_rows_that_do_not_sum_to_one() -> None:
    message = (
        r"do not sum to 1 \(within .*\) in 1 row \(first: 3\): row 3 sums to 0.8: normalise them, .* use Outputs.from"
    )
    with pytest.raises(InputError, match=message):
        badge.Outputs(changed(P, 3, 0.2), H)


@pytest.mark.parametrize("value", [-2.5, 4.0])
def test_logits_for_probabilities(value: float) -> None:
    with pytest.raises(
        InputError, match=r"outside \[0, 1\] in 1 row .*these look like logits \(--logits\); use Outputs.from_logits"
    ):
        badge.Outputs(changed(P, 1, [value, 1 - value, 0, 0]), H)
    with pytest.raises(InputError, match="these look like logits"):
        badge.Outputs([[value]], [[1.0]])


@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_tolerance_fits_dtype_and_classes(dtype: Any, classes: int) -> None:
    """What a softmax rounds to is taken; a row that is off by 5 % is not."""
    p = torch.softmax(torch.from_numpy(np.random.default_rng(0).normal(size=(200, classes)) * 3), dim=1).numpy()
    h = np.ones((200, 1))
    badge.Outputs(p.astype(dtype), h)
    badge.Outputs(torch.softmax(torch.from_numpy(np.log(p)).float(), dim=1).numpy().astype(dtype), h)
    with pytest.raises(InputError, match="do not sum to 1"):
        badge.Outputs((p * 0.95).astype(dtype), h)
    if dtype is not np.float16:
        with pytest.raises(InputError, match="do not sum to 1"):
            badge.Outputs((p * 0.999).astype(dtype), h)


def test_binary_column_needs_no_row_sum() -> None:
    assert badge.Outputs([0.2, 0.9], [[1.0], [2.0]]).classes == 2


@pytest.mark.parametrize(
    ("p", "h", "message"),
    [
        (P[:4], H, "probabilities have 4 rows and embeddings 6: one row each per example"),
        (P[:0], H[:0], r"probabilities must be a matrix with at least one row and column, not of shape \(0, 4\)"),
        (P, H[:, 0], r"embeddings must be a matrix with at least one row and column, not of shape \(6,\)"),
        (P, H[:, :0], r"embeddings must be a matrix with at least one row and column, not of shape \(6, 0\)"),
        (P.astype(complex), H, "probabilities have dtype complex128: float16, float32 or float64 is needed"),
        (np.array([["a"]]), H[:1], "probabilities have dtype <U1"),
    ],
)
def test_shapes(p: Any, h: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        badge.Outputs(p, h)


def test_feature_shapes() -> None:
    with pytest.raises(InputError, match=r"at least one row and column, not of shape \(0, 3\)"):
        badge.Dense(np.zeros((0, 3)))
    with pytest.raises(InputError, match=r"with the same N; got \(6, 4\) and \(5, 2\)"):
        badge.Factored(P, H[:5])


def test_exclude() -> None:
    with pytest.raises(InputError, match="exclude holds 6: positions go from 0 to 5"):
        badge.select_from(OUT, 1, exclude=[2, 6])
    with pytest.raises(InputError, match="exclude holds -1: positions go from 0 to 5"):
        badge.select_from(OUT, 1, exclude=[-1])
    with pytest.raises(InputError, match="asked for 3 of 2 candidates: 6 in the pool, 4 excluded"):
        badge.select_from(OUT, 3, exclude=[0, 1, 2, 3, 3])
    with pytest.raises(InputError, match=r"a mask of shape \(3,\) cannot index 6 rows"):
        badge.select_from(OUT, 1, exclude=[True, False, False])
    for wrong in ([0.5], ["a"], [[0, 1]], [None]):
        with pytest.raises(InputError, match="positions must be a flat list of integers"):
            badge.select_from(OUT, 1, exclude=wrong)


def test_arguments_of_the_door() -> None:
    with pytest.raises(InputError, match=r"outputs must be badge.Outputs, not ndarray; for a model use badge.select"):
        badge.select_from(P, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"labeled must be badge.Outputs of the labelled examples, not ndarray"):
        badge.select_from(OUT, 1, "coreset", labeled=H)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="labeled has 1 embedding columns and the pool 2: both must come from one model"
    ):
        badge.select_from(OUT, 1, "coreset", labeled=badge.Outputs(P, H[:, :1]))
    three = badge.Outputs([[0.2, 0.3, 0.5]], H[:1])
    for strategy in ("bait", "bait-binary", "uherding"):
        with pytest.raises(InputError, match="labeled has 3 classes and the pool 4: both must come from one model"):
            badge.select_from(OUT, 1, strategy, labeled=three)
    with pytest.raises(InputError, match="labeled has 4 labels and the pool 4 classes: both must come from one model"):
        badge.select_from(OUT, 1, "uherding", labeled=badge.Outputs(P, H, multilabel=True))
    for seed in (-1, 1.5, "0", True):
        with pytest.raises(InputError, match="seed must be a whole number ≥ 0, not"):
            badge.select_from(OUT, 1, seed=seed)  # type: ignore[arg-type]


def test_arguments_of_samplers() -> None:
    g = badge.gradient_embedding(OUT)
    with pytest.raises(InputError, match="first must be 'uniform' or 'max-norm', not 'random'"):
        badge.samplers.kmeanspp(g, 2, np.random.default_rng(0), first="random")  # type: ignore[arg-type]
    huge = badge.Dense(np.full((3, 2), 1e30, dtype=np.float32))
    for sampler in (badge.samplers.kdpp, badge.samplers.kmeanspp, badge.samplers.kcenter):
        with pytest.raises(InputError, match="overflow float32: scale the embeddings down, or pass them as float64"):
            sampler(huge, 2, np.random.default_rng(0))
    sampler(badge.Dense(huge.as_matrix().double()), 2, np.random.default_rng(0))
    for kernel in (None, 1.0, "gauss", badge.samplers.Gauss):
        with pytest.raises(InputError, match=r"kernel must be badge.samplers.Gauss\(sigma\) or Ball\(delta\), not"):
            badge.samplers.coverage(g, 2, np.random.default_rng(0), kernel)  # type: ignore[arg-type]
    for width in (0, -1.0, np.nan, "wide"):
        for make in (badge.samplers.Gauss, badge.samplers.Ball):
            with pytest.raises(InputError, match="must be a number above 0"):
                make(width)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", ["kmeanspp", "kcenter", "kdpp"])
def test_a_sampler_takes_features_and_a_generator(sampler: str) -> None:
    draw: Any = getattr(badge.samplers, sampler)
    with pytest.raises(InputError, match=r"features are badge.Dense\(vectors\) or .*, not ndarray"):
        draw(H, 2, np.random.default_rng(0))
    for rng in (0, None, np.random):
        with pytest.raises(
            InputError, match=r"rng must be a numpy.random.Generator, not .*default_rng\(seed\) makes one"
        ):
            draw(badge.Dense(H), 2, rng)
    if sampler != "kdpp":
        with pytest.raises(InputError, match="not ndarray"):
            draw(badge.Dense(H), 2, np.random.default_rng(0), given=H)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([0.1, np.nan, 0.3], r"scores hold NaN in 1 row \(first: 1\)"),
        (["a", "b"], "one number per example, not <U1"),
        ([[0.1], [0.2]], r"one number per example, not float64 of shape \(2, 1\)"),
    ],
)
def test_scores_of_topk(scores: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        badge.samplers.topk(np.array(scores), 1, np.random.default_rng(0))
    with pytest.raises(InputError, match="rng must be"):
        badge.samplers.topk(np.arange(3.0), 1, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ONE_PASS)
def test_small_integers_do_not_overflow(name: str) -> None:
    """np.int8(5) is five, also of 300."""
    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(rng.normal(size=(300, 3)), rng.normal(size=(300, 8)))
    plain = badge.select_from(out, 5, name, labeled=out[:4])
    for k in (np.int8(5), np.uint8(5), torch.tensor(5), np.array(5)):
        assert (badge.select_from(out, k, name, labeled=out[:4]) == plain).all()  # type: ignore[arg-type]
    for sampler in (badge.samplers.kmeanspp, badge.samplers.kcenter, badge.samplers.kdpp):
        assert len(sampler(badge.gradient_embedding(out), np.int8(5), rng)) == 5  # type: ignore[arg-type]
    assert len(badge.samplers.topk(np.arange(300.0), np.int8(5), rng)) == 5  # type: ignore[arg-type]


def test_one_tree() -> None:
    """Everything that badge raises on purpose is a BadgeError, and bad arguments are ValueErrors too."""
    for name in badge.errors.__all__:
        assert issubclass(getattr(badge.errors, name), BadgeError)
    assert issubclass(InputError, ValueError) and issubclass(badge.errors.RankError, ValueError)
    for name in badge.errors.__all__:
        assert name in (badge.errors.__doc__ or ""), "the tree is drawn in the docstring"


def test_probabilities_passed_as_logits_are_refused() -> None:
    """A softmax of them is flatter, and the picks are others."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    for given in (p, p.astype(np.float32), torch.from_numpy(p)):
        with pytest.raises(InputError, match="these are probabilities"):
            badge.Outputs.from_logits(given)
    expected = badge.Outputs(p).probabilities
    torch.testing.assert_close(badge.Outputs.from_logits(np.log(p)).probabilities, expected)
    for fine in (p * 2, p - 0.01, np.zeros((4, 3)), [[0.0, 1.0]], np.full((3, 1), 0.5)):
        badge.Outputs.from_logits(fine)
    badge.Outputs.from_logits(p, multilabel=True)  # of labels, rows may sum to anything


def test_what_long_runs_of_junk_found() -> None:
    """Reversed labels and a bfloat16 pool are answered; a strategy that is an array is refused in one line."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 5)).astype(np.float32), np.arange(12) % 3
    badge.Trainer(lambda: torch.nn.Linear(5, 3), lr=0.01, max_epochs=2).fit(x, y[::-1], rng)
    model, halves = GaussianNB().fit(x, y), torch.from_numpy(x).bfloat16()
    assert badge.select(model, halves, 3, seed=0).tolist() == badge.select(model, halves.float(), 3, seed=0).tolist()
    with pytest.raises(InputError, match="strategy"):
        badge.ActiveLearner(x, GaussianNB(), classes=3, strategy=np.zeros(2))  # type: ignore[arg-type]
