"""Strategies that look at no embeddings work with models that have none: NaN, categories, hashed texts, odd networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import InputError, ModelError
from badge.models import one_pass, sinks

sklearn = pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.feature_extraction.text import HashingVectorizer  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)
HOLES = X.copy()
HOLES[::7, 1] = np.nan
TABLE = pd.DataFrame({"a": X[:, 0], "colour": pd.Categorical(np.where(X[:, 2] > 0, "red", "blue"))})
BY_PROBABILITY = ("conf", "marg", "entropy")


def boosters() -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = [("hist, NaN", HistGradientBoostingClassifier(max_iter=5), HOLES)]
    if not sklearn.__version__.startswith("1.3."):  # which does not know categories by their dtype
        by_dtype = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
        found.append(("hist, categories", by_dtype, TABLE))
    try:
        from lightgbm import LGBMClassifier

        found += [("lightgbm", LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1), data) for data in (HOLES, TABLE)]
    except ImportError:
        pass
    try:
        from xgboost import XGBClassifier

        made: dict[str, Any] = {"n_estimators": 3, "n_jobs": 1, "enable_categorical": True, "tree_method": "hist"}
        found += [("xgboost", XGBClassifier(**made), data) for data in (HOLES, TABLE)]
    except ImportError:
        pass
    try:
        from catboost import CatBoostClassifier

        made = {"iterations": 3, "verbose": False, "allow_writing_files": False, "thread_count": 1}
        found += [("catboost", CatBoostClassifier(**made), HOLES)]
        found += [("catboost", CatBoostClassifier(**made, cat_features=["colour"]), TABLE)]
    except ImportError:
        pass
    return found


@pytest.mark.parametrize(
    ("name", "model", "pool"), boosters(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_models_that_take_holes_and_categories(name: str, model: Any, pool: Any) -> None:
    model.fit(pool[:100], Y[:100])
    out = badge.predict(model, pool)
    np.testing.assert_allclose(out.probabilities, model.predict_proba(pool), atol=1e-6)
    assert not out.has_embeddings
    for strategy in (*BY_PROBABILITY, "rand"):
        ids = badge.select(model, pool, k=7, strategy=strategy, exclude=range(100))
        assert (ids == badge.select_from(out, 7, strategy, exclude=range(100))).all() and ids.min() >= 100
    for call in (lambda: badge.select(model, pool, k=7), lambda: badge.select_from(out, 7)):
        with pytest.raises(
            (InputError, ModelError), match=r"use conf, marg, entropy, rand, .*, or put an? .* before it"
        ) as e:
            call()
        assert "drop or repair" not in str(e.value) and type(model).__name__ in str(e.value)


def test_an_embedding_is_used_where_there_is_one() -> None:
    for model in (HistGradientBoostingClassifier(max_iter=5), make_pipeline(SimpleImputer(), LogisticRegression())):
        pool = X if isinstance(model, HistGradientBoostingClassifier) else HOLES
        out = badge.predict(model.fit(pool[:100], Y[:100]), pool)
        assert out.embeddings.shape == (300, 3) and len(badge.select(model, pool, k=5)) == 5


def test_holes_that_come_late_and_outputs_on_disk(tmp_path: Path) -> None:
    """The first batches may have embeddings: the whole has them, or has not."""
    late = np.concatenate([np.tile(X, (20, 1)), HOLES])
    model = HistGradientBoostingClassifier(max_iter=5).fit(HOLES, Y)
    assert not badge.predict(model, late).has_embeddings
    for name, pool in (("all", HOLES), ("late", late)):
        expected = badge.predict(model, pool)
        for _ in range(2):  # written, then read again
            out = badge.predict(model, pool, out=tmp_path / name)
            assert torch.equal(out.probabilities, expected.probabilities) and not out.has_embeddings
        for strategy in (*BY_PROBABILITY, "rand"):
            ids = badge.select(model, pool, k=7, strategy=strategy, out=tmp_path / name)
            assert (ids == badge.select_from(expected, 7, strategy)).all()
        with pytest.raises(InputError, match=r"hold no embeddings: .* NaN or inf .* which it takes as they are"):
            badge.select_from(badge.Outputs.load(tmp_path / name), 7)


def test_a_pass_without_embeddings_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embeddings at first, then holes, then the end: what was done before is kept, and is what it would have been."""
    pool = np.concatenate([np.tile(X, (20, 1)), np.tile(HOLES, (20, 1)), X])
    model = HistGradientBoostingClassifier(max_iter=5).fit(HOLES, Y)
    monkeypatch.setattr(sinks, "CHECK_BYTES", 1)
    monkeypatch.setattr(one_pass, "ESTIMATOR_ROWS", 1)  # that is 4,096
    calls, whole = [], HistGradientBoostingClassifier.predict_proba

    def stops(self: Any, x: Any) -> Any:
        calls.append(len(x))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(self, x)

    monkeypatch.setattr(HistGradientBoostingClassifier, "predict_proba", stops)
    with pytest.raises(KeyboardInterrupt):
        badge.predict(model, pool, out=tmp_path / "o")
    monkeypatch.setattr(HistGradientBoostingClassifier, "predict_proba", whole)
    with pytest.raises(InputError, match="holds 8,192 of 12,300 rows"):
        badge.Outputs.load(tmp_path / "o")
    out = badge.predict(model, pool, out=tmp_path / "o")
    assert torch.equal(out.probabilities, badge.predict(model, pool).probabilities) and not out.has_embeddings


def test_a_network_without_embeddings_on_disk(tmp_path: Path) -> None:
    pool, net = torch.from_numpy(X).float(), Convolved()
    out = badge.predict(net, pool, embeddings=False, out=tmp_path / "o")
    assert torch.equal(out.probabilities, badge.predict(net, pool, embeddings=False).probabilities)
    with pytest.raises(InputError, match="hold no embeddings: the pass was made with embeddings=False"):
        _ = badge.Outputs.load(tmp_path / "o").embeddings
    linear = nn.Linear(3, 2)
    badge.predict(linear, pool, out=tmp_path / "both")
    with pytest.raises(InputError, match="another set of options"):
        badge.predict(linear, pool, embeddings=False, out=tmp_path / "both")
    with pytest.raises(InputError, match="embeddings must be True, False, 'only' or None, not 'no'"):
        badge.predict(linear, pool, embeddings="no")  # type: ignore[arg-type]
    for wrong, why in ((5, "given by its path, not by int"), ("a\0b", "no file can be called")):
        with pytest.raises(InputError, match=why):
            badge.predict(linear, pool, out=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "model", "pool"), boosters(), ids=lambda x: x if isinstance(x, str) else "")
def test_the_learner_with_models_that_take_holes_and_categories(name: str, model: Any, pool: Any) -> None:
    """Also those that scikit-learn cannot clone: CatBoost with a list of its categories."""
    for strategy in ("entropy", "rand", "conf"):
        if strategy == "conf":
            model.fit(pool[:50], Y[:50])  # one that was fitted before starts from scratch like any other
        learner = badge.ActiveLearner(pool, model, classes=2, strategy=strategy, seed=0)
        for k in (40, 5):
            ids = learner.ask(k)
            learner.tell(ids, Y[ids])
        learner.ask(1)
        assert learner.model is not model and learner.uniform_because is None
        assert learner.outputs.probabilities.shape == (300, 2)


def test_an_estimator_that_cannot_be_cloned_is_copied() -> None:
    """It changes what it was given, which scikit-learn's clone refuses."""
    model = Changing([1.0, 2.0])
    learner = badge.ActiveLearner(X, model, classes=2, strategy="conf", seed=0)
    for k in (40, 5):
        ids = learner.ask(k)
        learner.tell(ids, Y[ids])
    assert learner.model is not model and not hasattr(model, "classes_") and learner.model.weights == [1.0, 2.0]


class Changing(LogisticRegression):
    def __init__(self, weights: list[float]) -> None:
        super().__init__()
        self.weights = list(weights)


def test_the_learner_goes_on_without_embeddings() -> None:
    learner = badge.ActiveLearner(
        HOLES, HistGradientBoostingClassifier(max_iter=5), classes=2, strategy="entropy", seed=0
    )
    for k in (40, 5, 5):
        ids = learner.ask(k)
        learner.tell(ids, Y[ids])
    assert len(learner.labels) == 50
    with pytest.raises(InputError, match=r"hold NaN or inf .* which it takes as they are"):
        learner.explain()


def test_hashed_texts_do_not_ask_for_gibibytes() -> None:
    texts = [f"word{i % 7} word{i % 5} number{i}" for i in range(9000)]
    model = make_pipeline(HashingVectorizer(), SGDClassifier(loss="log_loss", random_state=0))
    model.fit(texts[:50], [i % 2 for i in range(50)])
    assert len(badge.select(model, texts, k=5, strategy="entropy")) == 5
    with pytest.raises(ModelError, match=r"9,000 rows of 1,048,576 columns would take 35 GiB .* TruncatedSVD\(256\)"):
        badge.select(model, texts, k=5)


class Convolved(nn.Module):
    """Ends in a mean over a map: no linear layer makes its logits."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Conv1d(1, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.map(x[:, None])).mean(dim=2)


def test_networks_without_an_output_layer() -> None:
    pool, net = torch.from_numpy(X).float(), Convolved()
    with pytest.raises(ModelError):
        badge.select(net, pool, k=5)
    expected = torch.softmax(net(pool), dim=1).detach()
    out = badge.predict(net, pool, embeddings=False)
    torch.testing.assert_close(out.probabilities, expected)
    with pytest.raises(InputError, match="hold no embeddings: the pass was made with embeddings=False"):
        _ = out.embeddings
    for strategy in (*BY_PROBABILITY, "rand"):
        ids = badge.select(net, pool, k=5, strategy=strategy)
        assert (ids == badge.select_from(badge.Outputs(expected), 5, strategy)).all()


def test_rand_does_not_run_the_model() -> None:
    class Never(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise AssertionError("nothing of it is read")

    ids = badge.select(Never(), torch.zeros(50, 2), k=5, strategy="rand", exclude=[0])
    assert (ids == badge.select_from(badge.Outputs(np.full((50, 1), 0.5)), 5, "rand", exclude=[0])).all()


# -- precision ---------------------------------------------------------------------------------------------------------

TIMES = 1.7e9 + np.arange(300.0)[:, None]


def distinct(out: badge.Outputs) -> int:
    return len(torch.unique(out.embeddings))


def test_times_do_not_become_one_value() -> None:
    """In float32 the steps between numbers near 1.7e9 are 128."""
    model = LogisticRegression().fit((TIMES - 1.7e9)[:50] / 300, Y[:50])
    assert distinct(badge.predict(model, TIMES)) == 300
    assert distinct(badge.Outputs(np.full((300, 2), 0.5), TIMES.astype(np.int64))) == 300
    assert distinct(badge.Outputs(embeddings=torch.from_numpy(TIMES))) == 300
    assert len(torch.unique(badge.Dense(TIMES.astype(np.int64)).as_matrix())) == 300
    net = nn.Linear(1, 2).double()
    assert distinct(badge.predict(net, torch.from_numpy(TIMES))) == 300
    late = np.concatenate([np.zeros((6000, 1)), TIMES])  # the first batches fit float32
    assert distinct(badge.predict(model, late)) == 301
    # what float32 holds well stays in it
    assert badge.predict(model, X[:, :1]).embeddings.dtype == torch.float32
    assert badge.Outputs(embeddings=np.arange(9)[:, None]).embeddings.dtype == torch.float32


def test_times_on_disk(tmp_path: Path) -> None:
    model = LogisticRegression().fit((TIMES - 1.7e9)[:50] / 300, Y[:50])
    assert distinct(badge.predict(model, TIMES, out=tmp_path / "o")) == 300


def test_without_embeddings_no_layer_is_watched_once_the_logits_are_found() -> None:
    watched: list[int] = []

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> Any:
            watched.append(len(self.head._forward_hooks))
            return self.head(x)

    net, pool = Net(), torch.randn(30, 4)
    p = badge.predict(net, pool, embeddings=False, batch_size=10).probabilities
    assert watched == [1, 0, 0]
    assert torch.equal(p, badge.predict(net, pool, batch_size=10).probabilities) and watched[3:] == [1, 1, 1]
