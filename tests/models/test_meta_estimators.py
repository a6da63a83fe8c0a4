"""Meta-estimators around a pipeline: the embedding is what the final step inside sees, not the raw rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import badge

pytest.importorskip("sklearn")

from sklearn import model_selection
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

FrozenEstimator = pytest.importorskip("sklearn.frozen", reason="needs scikit-learn ≥ 1.6").FrozenEstimator
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
SCALED = StandardScaler().fit(X[:200]).transform(X)


def pipeline() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


META: dict[str, Any] = {
    "calibrated": CalibratedClassifierCV(pipeline(), ensemble=False),
    "calibrated folds": CalibratedClassifierCV(pipeline(), cv=3),
    "frozen": CalibratedClassifierCV(FrozenEstimator(pipeline().fit(X[:200], Y[:200]))),
    "vote": VotingClassifier([("a", pipeline()), ("b", pipeline())], voting="soft"),
    "vote with a forest": VotingClassifier(
        [("a", pipeline()), ("b", RandomForestClassifier(3, random_state=0))], voting="soft"
    ),
    "one against rest": OneVsRestClassifier(pipeline()),
    "fixed threshold": model_selection.FixedThresholdClassifier(pipeline()),
    "tuned threshold": model_selection.TunedThresholdClassifierCV(pipeline(), cv=3),
    "search": model_selection.GridSearchCV(CalibratedClassifierCV(pipeline(), ensemble=False), {"cv": [2, 3]}, cv=2),
    "stack": StackingClassifier([("a", pipeline())], cv=2),
    "bag": BaggingClassifier(pipeline(), n_estimators=3, random_state=0),
    "in a pipeline": make_pipeline(CalibratedClassifierCV(pipeline(), ensemble=False)),
    "twice": CalibratedClassifierCV(VotingClassifier([("a", pipeline())], voting="soft"), ensemble=False),
}


@pytest.mark.parametrize("name", META)
def test_the_unit_of_a_column_changes_no_pick(name: str) -> None:
    metres = X * [1000.0, 1, 1, 1]
    kilo, metre = (clone(META[name]).fit(x[:200], Y[:200]) for x in (X, metres))
    if name == "frozen":
        metre = CalibratedClassifierCV(FrozenEstimator(pipeline().fit(metres[:200], Y[:200]))).fit(
            metres[:200], Y[:200]
        )
    outputs = [badge.predict(model, x) for model, x in ((kilo, X), (metre, metres))]
    np.testing.assert_allclose(outputs[0].probabilities, kilo.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(outputs[0].embeddings, outputs[1].embeddings, atol=1e-3)
    picks = [badge.select_from(out, 100, seed=0) for out in outputs]
    assert len(set(picks[0].tolist()) & set(picks[1].tolist())) > 90


@pytest.mark.parametrize("name", ["calibrated", "vote", "one against rest", "fixed threshold", "stack"])
def test_pipelines_that_agree_count_once(name: str) -> None:
    out = badge.predict(clone(META[name]).fit(X[:200], Y[:200]), X)
    np.testing.assert_allclose(out.embeddings, SCALED, rtol=1e-4, atol=1e-5)


def test_pipelines_that_differ_stand_side_by_side() -> None:
    model = clone(META["calibrated folds"]).fit(X[:200], Y[:200])
    seen = [one.estimator[:-1].transform(X) for one in model.calibrated_classifiers_]
    np.testing.assert_allclose(badge.predict(model, X).embeddings, np.hstack(seen) / np.sqrt(3), rtol=1e-4, atol=1e-5)


def test_a_table_is_encoded_by_what_is_inside() -> None:
    table = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "size": X[:, 1]})
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]))
    model = CalibratedClassifierCV(make_pipeline(encode, LogisticRegression()), ensemble=False).fit(
        table[:200], Y[:200]
    )
    out = badge.predict(model, table)
    assert out.embeddings.shape == (600, 3)
    bag = BaggingClassifier(pipeline(), n_estimators=2, random_state=0).fit(table[["size"]][:200], Y[:200])
    assert badge.predict(bag, table[["size"]]).embeddings.shape == (600, 2)


def test_a_perceptron_inside_gives_its_hidden_layer() -> None:
    perceptron = MLPClassifier((5,), max_iter=20, random_state=0)
    model = model_selection.FixedThresholdClassifier(make_pipeline(StandardScaler(), perceptron))
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(X[:200], Y[:200])
    assert badge.predict(model, X).embeddings.shape == (600, 5)


def test_members_without_a_pipeline_are_left_alone() -> None:
    forest = RandomForestClassifier(3, random_state=0).fit(X[:200], Y[:200])
    for model in (forest, CalibratedClassifierCV(LogisticRegression()).fit(X[:200], Y[:200])):
        np.testing.assert_allclose(badge.predict(model, X).embeddings, X, rtol=1e-6)
