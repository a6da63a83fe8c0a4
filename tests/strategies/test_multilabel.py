"""Multi-label outputs: one logistic output per label, appendix B of the paper in each column."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

import badge
from badge.errors import InputError, RankError

N, L, D = 40, 4, 6
RNG = np.random.default_rng(0)
Z, H = torch.from_numpy(RNG.normal(size=(N, L)) * 2), torch.from_numpy(RNG.normal(size=(N, D)))
OUT = badge.Outputs.from_logits(Z, H, multilabel=True)
P = OUT.probabilities


def gradient(h: torch.Tensor, w: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Of the summed binary cross-entropy with respect to the output weights [L, D], by autograd, flat."""
    w = w.clone().requires_grad_()
    binary_cross_entropy_with_logits(w @ h, y, reduction="sum").backward()
    assert w.grad is not None
    return w.grad.flatten()


def test_the_gradient_is_that_of_the_summed_binary_cross_entropy() -> None:
    w = torch.from_numpy(RNG.normal(size=(L, D)))
    out = badge.Outputs.from_logits(H @ w.T, H, multilabel=True)
    g = badge.gradient_embedding(out).as_matrix()
    for i in range(N):
        predicted = (out.probabilities[i] > 0.5).double()
        torch.testing.assert_close(g[i], gradient(H[i], w, predicted))
    for i in range(5):  # proposition 1: no labels give a smaller gradient
        norms = [gradient(H[i], w, torch.tensor(y)).norm() for y in product([0.0, 1.0], repeat=L)]
        torch.testing.assert_close(g[i].norm(), min(norms))


def test_it_is_no_softmax() -> None:
    with pytest.raises(InputError, match="multilabel=True for independent labels"):
        badge.Outputs(P, H)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        badge.Outputs(Z, H, multilabel=True)
    single = badge.Outputs(P / P.sum(dim=1, keepdim=True), H)
    assert OUT.multilabel and not single.multilabel
    assert OUT.classes == L and badge.Outputs(P[:, :1], H, multilabel=True).classes == 1
    assert OUT[[1, 2]].multilabel and OUT[3:5].multilabel
    assert "4 label columns" in repr(OUT)


def test_one_label_is_the_binary_problem() -> None:
    one, binary = badge.Outputs(P[:, :1], H, multilabel=True), badge.Outputs(P[:, :1], H)
    torch.testing.assert_close(badge.gradient_embedding(one).as_matrix(), badge.gradient_embedding(binary).as_matrix())
    for strategy in ("badge", "conf", "marg", "entropy", "kcenter-grad"):
        picks = [badge.select_from(out, k=7, strategy=strategy).tolist() for out in (one, binary)]
        assert picks[0] == picks[1], strategy


def test_the_rank_is_that_of_all_columns() -> None:
    g = badge.gradient_embedding(OUT)
    assert g.rank_bound == L * D == int(torch.linalg.matrix_rank(g.as_matrix()))
    assert g[:30].rank_bound == L * D
    assert badge.gradient_embedding(OUT, bias=True).rank_bound == L * (D + 1)
    assert len(set(badge.samplers.kdpp(g, L * D, np.random.default_rng(0)).tolist())) == L * D
    with pytest.raises(RankError):
        badge.samplers.kdpp(g, L * D + 1, np.random.default_rng(0))


@pytest.mark.parametrize("strategy", ["badge", "coreset", "conf", "marg", "entropy", "rand", "kdpp", "kcenter-grad"])
def test_every_strategy_that_makes_sense(strategy: str) -> None:
    ids = badge.select_from(OUT, k=8, strategy=strategy, exclude=[0, 1])
    assert len(set(ids.tolist())) == 8 and ids.min() > 1


def test_albl_is_refused() -> None:
    with pytest.raises(InputError, match="albl is for one label per example"):
        badge.select_from(OUT, k=2, strategy="albl", exclude=[0])


def label_sets(p: torch.Tensor) -> torch.Tensor:
    """The probabilities of all 2^L sets of labels, labels being independent, [N, 2^L]."""
    return torch.stack(
        [torch.where(torch.tensor(y, dtype=torch.bool), p, 1 - p).prod(dim=1) for y in product([0, 1], repeat=L)], dim=1
    )


def test_uncertainty_of_sets_of_labels() -> None:
    sets = label_sets(P)
    torch.testing.assert_close(sets.sum(dim=1), torch.ones(N, dtype=torch.float64))
    orders = {
        "conf": sets.amax(dim=1).argsort(),
        "entropy": torch.special.entr(sets).sum(dim=1).argsort(descending=True),
        "marg": (2 * P - 1).abs().amin(dim=1).argsort(),
    }
    for strategy, order in orders.items():
        assert badge.select_from(OUT, k=9, strategy=strategy).tolist() == order[:9].tolist(), strategy


def test_half_is_the_negative_label_and_certainty_has_no_gradient() -> None:
    out = badge.Outputs([[0.5, 0.0, 1.0]], [[1.0]], multilabel=True)
    assert badge.gradient_embedding(out).a.tolist() == [[0.5, 0.0, 0.0]]
    certain = badge.Outputs([[0.0, 1.0]] * 3, [[1.0]] * 3, multilabel=True)
    for strategy in ("badge", "conf", "marg", "entropy"):
        assert len(badge.select_from(certain, k=2, strategy=strategy)) == 2


def test_explain() -> None:
    ids = badge.select_from(OUT, k=5)
    why = badge.explain(OUT, ids)
    assert why.label.tolist() == (P[ids] > 0.5).long().tolist()
    np.testing.assert_allclose(why.confidence, label_sets(P[ids]).amax(dim=1))
    np.testing.assert_allclose(why.norm, badge.gradient_embedding(OUT).as_matrix()[ids].norm(dim=1))
    row = why.rows()[0]
    assert row["position"] == ids[0] and row["label"] == np.flatnonzero(P[ids[0]] > 0.5).tolist()


def test_blocks_of_a_large_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views and half precision, as on disk."""
    small = {s: badge.select_from(OUT, k=5, strategy=s, exclude=[3]).tolist() for s in ("badge", "conf", "entropy")}
    monkeypatch.setattr("badge.core.rows.CHUNK_BYTES", 16)
    for strategy, picks in small.items():
        assert badge.select_from(OUT, k=5, strategy=strategy, exclude=[3]).tolist() == picks


def models() -> dict[str, Any]:
    from torch import nn

    torch.manual_seed(0)
    head = nn.Linear(D, L).double()
    return {"sigmoid": nn.Sequential(head, nn.Sigmoid()), "logits": nn.Sequential(head)}


@pytest.mark.parametrize("name", ["sigmoid", "logits"])
def test_predict_and_its_round_trip(name: str, tmp_path: Path) -> None:
    net = models()[name]
    option = None if name == "sigmoid" else True  # a sigmoid at the end of each column says it
    out = badge.predict(net, H, multilabel=option)
    with torch.no_grad():
        expected = models()["sigmoid"](H).float()
    torch.testing.assert_close(out.probabilities, expected)
    stored = badge.predict(net, H, multilabel=option, out=tmp_path / "out")
    loaded = badge.Outputs.load(tmp_path / "out")
    assert out.multilabel and stored.multilabel and loaded.multilabel
    torch.testing.assert_close(loaded.probabilities, out.probabilities)
    assert badge.select_from(loaded, k=3).tolist() == badge.select(net, H, k=3, multilabel=option).tolist()


def test_what_a_network_says_is_not_overruled() -> None:
    from torch import nn

    with pytest.raises(badge.errors.ModelError, match="returns a sigmoid of each score"):
        badge.predict(models()["sigmoid"], H, multilabel=False)
    with pytest.raises(badge.errors.ModelError, match="returns a softmax over classes"):
        badge.predict(nn.Sequential(models()["logits"], nn.Softmax(dim=1)), H, multilabel=True)
    assert not badge.predict(models()["logits"], H).multilabel


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_that_were_fitted_on_several_labels() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = H.numpy()
    y = (x[:, :L] > 0).astype(int)
    for estimator in (
        OneVsRestClassifier(LogisticRegression()),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        KNeighborsClassifier(),
        MLPClassifier((5,), max_iter=20, random_state=0),
    ):
        model = estimator.fit(x, y)
        said = model.predict_proba(x)
        expected = np.stack([p[:, 1] for p in said], axis=1) if isinstance(said, list) else said
        out = badge.predict(model, x)
        assert out.multilabel, estimator
        np.testing.assert_allclose(out.probabilities, expected, atol=1e-6)
        assert len(badge.select(model, x, k=4)) == 4
    assert not badge.predict(OneVsRestClassifier(LogisticRegression()).fit(x, y[:, 0]), x).multilabel
    y[:, 2] = 0  # a label that no row has
    assert (badge.predict(KNeighborsClassifier().fit(x, y), x).probabilities[:, 2] == 0).all()
    with pytest.raises(badge.errors.ModelError, match="was fitted on one label per row"):
        badge.predict(LogisticRegression().fit(x, y[:, 0]), x, multilabel=True)
