"""The loop with lists of labels: what trains is given rows of 0 and 1, what predicts gives a probability to each label."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

import badge
from badge.errors import InputError
from badge.training.linear import fit_linear

NAMES = ["red", "big", "old"]
X = np.random.default_rng(0).normal(size=(120, 5)).astype(np.float32)
TRUTH = X[:, :3] > 0.3


def tags(ids: Any) -> list[list[str]]:
    return [[name for name, there in zip(NAMES, TRUTH[i], strict=True) if there] for i in ids]


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))


def trainers(folder: Path) -> dict[str, Any]:
    return {
        "Trainer": badge.Trainer(net, lr=1e-2, max_epochs=200),
        "OneVsRest": OneVsRestClassifier(LogisticRegression()),
        "Frozen": badge.training.Frozen(nn.Identity(), keep=folder / "kept"),
    }


@pytest.mark.filterwarnings("ignore:Label not .* is present:UserWarning")
@pytest.mark.parametrize("name", ["Trainer", "OneVsRest", "Frozen"])
def test_the_loop(name: str, tmp_path: Path) -> None:
    def opened() -> badge.ActiveLearner:
        return badge.ActiveLearner(
            torch.from_numpy(X), trainers(tmp_path)[name], classes=NAMES, multilabel=True, journal=tmp_path / "j.jsonl"
        )

    with opened() as learner:
        for k in (20, 10, 10):
            ids = learner.ask(k)
            learner.tell(ids, tags(ids))
        learner.relabel(ids[0], ["old"])
        learner.relabel(ids[0], tags(ids)[0])
        assert learner.labels[int(ids[1])] == tags(ids)[1]
        out = learner.outputs
        assert out.multilabel and out.probabilities.shape == (120, 3)
        right = (out.probabilities.numpy() > 0.5) == TRUTH
        assert right.mean() > 0.85
        assert learner.explain(ids).label.shape == (10, 3)
        following = learner.ask(5)
    with opened() as again:
        assert again.pending.tolist() == following.tolist()
        assert again.labels == learner.labels


def test_a_network_is_trained_on_the_sum_of_binary_cross_entropies() -> None:
    seen: list[torch.Tensor] = []

    class Watching(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = super().forward(x)
            seen.append(out)
            out.register_hook(seen.append)
            return out

    y = TRUTH[:8].astype(np.int64)
    badge.Trainer(lambda: Watching(5, 3), lr=1e-2, batch_size=8, max_epochs=1).fit(X[:8], y, np.random.default_rng(0))
    scores, gradient = seen[0].detach().requires_grad_(), seen[1]
    # the order of the minibatch is random: rows are told by the gradient's sign, p − y
    targets = (gradient < 0).double()
    loss = binary_cross_entropy_with_logits(scores, targets.float(), reduction="sum") / 8
    torch.testing.assert_close(torch.autograd.grad(loss, scores)[0], gradient)
    assert sorted(map(tuple, targets.int().tolist())) == sorted(map(tuple, y.tolist()))


def test_a_head_for_each_label_is_logistic_regression_of_each() -> None:
    y = TRUTH.astype(np.int64)
    head, _, accuracy = fit_linear(X, y)
    singles = [fit_linear(X, y[:, [label, label]])[0] for label in range(3)]
    for label, single in enumerate(singles):
        torch.testing.assert_close(head.weight[label], single.weight[0], rtol=1e-2, atol=1e-3)
    assert accuracy > 0.9
    with pytest.raises(InputError, match="rows of labels hold 0 and 1"):
        fit_linear(X, y * 2)


def test_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="rows of labels hold 0 and 1"):
        badge.Trainer(net, lr=1e-2).fit(X, TRUTH.astype(int) * 2, np.random.default_rng(0))
    with pytest.raises(badge.errors.ModelError, match="3 outputs for 2 labels"):
        badge.Trainer(net, lr=1e-2).fit(X, TRUTH[:, :2].astype(int), np.random.default_rng(0))
    initial = {i: tags([i])[0] for i in range(12)}
    options: dict[str, Any] = {"classes": NAMES, "multilabel": True, "initial": initial}
    learner = badge.ActiveLearner(X, badge.Trainer(net, lr=1e-2, max_epochs=5), strategy="albl", **options)
    with pytest.raises(InputError, match="albl is for one label per example"):
        learner.ask(3)
    wrong = partial(badge.predict, multilabel=False)
    learner = badge.ActiveLearner(
        X, OneVsRestClassifier(LogisticRegression()), predict=lambda m, p: wrong(m, p), **options
    )
    with pytest.raises(badge.errors.ModelError, match="fitted on several labels"):
        learner.ask(3)
    own = lambda model, pool: badge.Outputs.from_logits(X[:, :3], X)  # noqa: E731
    learner = badge.ActiveLearner(X, badge.Trainer(net, lr=1e-2, max_epochs=5), predict=own, **options)
    with pytest.raises(InputError, match="gives one label per example, and the classes are for any number"):
        learner.ask(3)


def test_initial_labels_as_a_series() -> None:
    truth = pd.Series((X[:, 0] > 0).astype(int), index=range(120))
    learner = badge.ActiveLearner(X, LogisticRegression(), classes=2, initial=truth.iloc[[7, 3, 50, 51, 52]])
    assert learner.labels == {i: int(truth[i]) for i in (7, 3, 50, 51, 52)}
    own = badge.ActiveLearner(
        X,
        LogisticRegression(),
        classes=2,
        ids=[f"x{i}" for i in range(120)],
        initial=pd.Series([1, 0], index=["x4", "x9"]),
    )
    assert own.labels == {"x4": 1, "x9": 0}
    assert len(learner.ask(4)) == 4
