"""Models that cannot be trained yet, that fail, or that are of another kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from badge import journal
from badge.errors import InputError
from sixty import TRUTH, X, make
from small_loop import Trainer


def estimators() -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    return {
        "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=5),
        "knn": KNeighborsClassifier(n_neighbors=15),
        "early stopping": MLPClassifier((4,), early_stopping=True, max_iter=300, learning_rate_init=0.1),
    }


@pytest.mark.parametrize("kind", ["calibrated", "knn", "early stopping"])
def test_too_few_labels_for_a_model_fall_back_to_uniform_picks(kind: str, tmp_path: Path) -> None:
    def embed(model: Any, pool: Any) -> badge.Outputs:
        return badge.Outputs(model.predict_proba(pool), pool)

    path = tmp_path / "j.jsonl"
    options: dict[str, Any] = {"trainer": estimators()[kind], "predict": embed}
    learner = make(path, initial={int(np.argmax(c == TRUTH)): c for c in (0, 1)}, **options)
    with pytest.warns(
        UserWarning, match=r"no model can be trained on 2 labels, the batch is drawn uniformly: ValueError"
    ):
        ids = learner.ask(30)
    assert len(set(ids.tolist())) == 30
    assert learner.uniform_because is not None and learner.uniform_because.startswith("ValueError: ")
    assert journal.read(path)[-1]["uniform"] == learner.uniform_because
    learner.tell(ids, TRUTH[ids])
    learner.ask(3)  # enough now
    assert learner.uniform_because is None
    learner.close()
    with make(path, **options) as again:
        assert len(again.pending) == 3


def test_too_few_labels_for_a_model_fall_back_to_the_first_strategy() -> None:
    options: dict[str, Any] = {"trainer": estimators()["calibrated"], "first": "kmeanspp", "embeddings": X}
    learner = make(initial={int(np.argmax(c == TRUTH)): c for c in (0, 1)}, **options)
    with pytest.warns(UserWarning, match="2 labels, the batch is picked by embeddings alone: ValueError"):
        assert len(learner.ask(5)) == 5


def test_xgboost_that_lacks_a_class() -> None:
    xgboost = pytest.importorskip("xgboost")
    learner = make(
        classes=3,
        initial={0: 0, 1: 2, 2: 0, 3: 2},
        trainer=xgboost.XGBClassifier(n_estimators=2, n_jobs=1),
        predict=lambda model, pool: badge.Outputs(model.predict_proba(pool), pool),
    )
    with pytest.warns(UserWarning, match="Invalid classes inferred"):
        ids = learner.ask(5)
    learner.tell(ids, [0, 1, 2, 1, 0])
    learner.ask(3)
    assert learner.uniform_because is None


def test_other_failures_are_not_hidden() -> None:
    class Broken(Trainer):
        error: Exception = RuntimeError("out of memory")

        def fit(self, *arguments: Any) -> Any:
            raise self.error

    trainer = Broken()
    learner = make(trainer=trainer, initial={0: 0, 1: 1})
    for error in (RuntimeError("out of memory"), TypeError("a bug"), InputError("the model gives 3 probabilities")):
        trainer.error = error
        with pytest.raises(type(error), match=str(error)):
            learner.ask(2)
    assert not len(learner.pending)
    learner.trainer = Trainer(0.0)
    learner.tell(ids := learner.ask(2), TRUTH[ids])
    trainer.error, learner.trainer = ValueError("after a fit has succeeded"), trainer
    with pytest.raises(ValueError, match="after a fit has succeeded"):
        learner.ask(2)


def test_a_model_of_the_other_kind_is_refused() -> None:
    learner = make(initial={0: [0], 1: [1]}, multilabel=True)
    with pytest.raises(InputError, match="the model gives one label per example, and the classes are for any number"):
        _ = learner.outputs


def test_labels_of_one_class_only_are_said(tmp_path: Path) -> None:
    with make(tmp_path / "j.jsonl", classes=["no", "yes"]) as learner:
        learner.ask(20)
        assert learner.uniform_because is None  # no labels yet: a uniform draw is what one expects
        learner.tell(learner.pending, ["no"] * 20)
        assert "All 20 labels so far are 'no': a model needs two classes" in str(learner.advice())
        learner.ask(5)
        said = "all 20 labels so far are 'no': there is nothing to learn yet, and the batch was drawn uniformly"
        assert learner.uniform_because == said
        learner.tell(learner.pending, ["no", "no", "yes", "no", "no"])
        learner.ask(2)
        assert learner.uniform_because is None and "one class" not in str(learner.advice())
    with make(classes=["no", "yes"], strategy="rand", initial={0: "no"}) as learner:
        learner.ask(2)
        assert learner.uniform_because is None  # drawn uniformly because that is the strategy


def test_labels_of_one_class_only_of_several() -> None:
    learner = make(classes=["red", "big"], multilabel=True, initial={0: ["red", "big"], 1: ["big", "red"]})
    assert "All 2 labels so far are ['red', 'big']" in str(learner.advice())


@pytest.mark.parametrize("way", ["first", "frozen"])
def test_with_labels_of_one_class_embeddings_are_covered(way: str) -> None:
    """One example in a hundred lies far from the others: k-means++ on the embeddings goes there first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4)).astype(np.float32) * 0.1
    x[::100] += 50
    initial = dict.fromkeys(range(1, 30), 0)
    if way == "frozen":
        from badge.training import Frozen

        learner = badge.ActiveLearner(x, Frozen(lambda batch: batch), classes=2, initial=initial)
    else:
        learner = badge.ActiveLearner(
            x,
            Trainer(0.0),
            classes=2,
            initial=initial,
            first="kmeanspp",
            embeddings=x,
            predict=lambda m, p: None,  # type: ignore[return-value]
        )
    ids = learner.ask(3)
    assert int(ids[0]) % 100 == 0
    assert str(learner.uniform_because).endswith("and the batch was picked by embeddings alone")
