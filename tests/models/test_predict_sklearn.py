"""`badge.predict` on scikit-learn estimators, pipelines and skorch nets."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import badge
from badge.errors import InputError, ModelError
from badge.models import estimator, one_pass
from badge.outputs.sparse import SparseRows

pytest.importorskip("sklearn")
pl = pytest.importorskip("polars")

from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 4))  # more than one chunk
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_pass, "ESTIMATOR_ROWS", 1)  # at least 4,096


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(5, random_state=0), GaussianNB()])
def test_estimators(estimator: Any) -> None:
    estimator.fit(X[:200], Y[:200])
    out = badge.predict(estimator, X)
    np.testing.assert_allclose(out.probabilities, estimator.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(out.embeddings, X, rtol=1e-6)


def test_pipelines_give_the_final_steps_inputs() -> None:
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:200], Y[:200])
    search = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X[:200], Y[:200])
    nested = make_pipeline(StandardScaler(), pipe).fit(X[:200], Y[:200])
    for model, inner in ((pipe, pipe), (search, search.best_estimator_)):
        out = badge.predict(model, X)
        np.testing.assert_allclose(out.embeddings, inner[:-1].transform(X), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(out.probabilities, model.predict_proba(X), atol=1e-6)
    out = badge.predict(nested, X)
    np.testing.assert_allclose(out.probabilities, nested.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(out.embeddings, nested[1][0].transform(nested[0].transform(X)), rtol=1e-5, atol=1e-6)


def test_texts_through_a_vectorizer() -> None:
    texts = ["good film", "bad film", "long and dull", "bright and short"] * 5
    for final in (LogisticRegression(), make_pipeline(TruncatedSVD(2), LogisticRegression())):
        pipe = make_pipeline(TfidfVectorizer(), final).fit(texts, [1, 0, 0, 1] * 5)
        out = badge.predict(pipe, texts)
        np.testing.assert_allclose(out.probabilities, pipe.predict_proba(texts), atol=1e-6)
        assert out.embeddings.shape[1] == (2 if final is not pipe[-1] or hasattr(final, "steps") else 8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("labels", [Y, Y > 0])
def test_mlp_gives_its_last_hidden_layer(activation: str, labels: Any) -> None:
    mlp = MLPClassifier((7, 6), activation=activation, max_iter=5, random_state=0).fit(X[:200], labels[:200])
    pipe = make_pipeline(StandardScaler(), mlp).fit(X[:200], labels[:200])
    out = badge.predict(pipe, X)
    assert out.embeddings.shape == (len(X), 6)
    z = out.embeddings.numpy() @ mlp.coefs_[-1] + mlp.intercepts_[-1]  # the head applied to the embedding
    rebuilt = torch.softmax(torch.from_numpy(z), 1) if z.shape[1] > 1 else torch.sigmoid(torch.from_numpy(z))
    np.testing.assert_allclose(rebuilt, pipe.predict_proba(X)[:, -z.shape[1] :], atol=1e-5)
    np.testing.assert_allclose(out.probabilities, pipe.predict_proba(X), atol=1e-6)


def test_pools() -> None:
    import pandas as pd
    from scipy import sparse

    frame = pd.DataFrame(X[:200], columns=list("abcd"))
    model = LogisticRegression().fit(frame, Y[:200])  # warns if it is given an array without these names
    np.testing.assert_allclose(badge.predict(model, frame).embeddings, frame, rtol=1e-6)
    model = LogisticRegression().fit(X[:200], Y[:200])
    labelled = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    loader = torch.utils.data.DataLoader(labelled, batch_size=999)
    for pool in (X, X.tolist(), sparse.csr_matrix(X), sparse.coo_matrix(X), torch.from_numpy(X), labelled, loader):
        np.testing.assert_allclose(badge.predict(model, pool).probabilities, model.predict_proba(X), atol=1e-6)


def test_what_is_refused() -> None:
    svc = LinearSVC(dual=True).fit(X[:200], Y[:200])
    with pytest.raises(ModelError, match=r"LinearSVC has no predict_proba.* sklearn\.calibration\.Calibrated"):
        badge.predict(svc, X)
    calibrated = CalibratedClassifierCV(svc, cv=2).fit(X[:200], Y[:200])
    np.testing.assert_allclose(badge.predict(calibrated, X).probabilities, calibrated.predict_proba(X), atol=1e-6)
    model = LogisticRegression().fit(X[:200], Y[:200])
    with pytest.raises(InputError, match="for PyTorch models, not for LogisticRegression"):
        badge.predict(model, X, head="fc")
    many = RandomForestClassifier(2).fit(X[:200], np.c_[Y, Y][:200])
    with pytest.raises(ModelError, match=r"has an output with the classes .*0 and 1 are needed"):
        badge.predict(many, X)


class Module(nn.Module):
    def __init__(self, softmax: bool = True, classes: int = 3) -> None:
        super().__init__()
        self.hidden, self.out, self.softmax = nn.Linear(4, 6), nn.Linear(6, classes), softmax

    def forward(self, x: Any) -> Any:
        z = self.out(torch.relu(self.hidden(x)))
        return torch.softmax(z, dim=-1) if self.softmax else z


@pytest.mark.parametrize("names", [[0, 1, 3], ["a", "b", "c"]])
def test_an_ensemble_of_other_classes_is_refused(names: list[Any]) -> None:
    """Its members have as many columns, which stand for something else."""
    rows, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    a, b, c = (LogisticRegression().fit(rows, np.array(which)[y]) for which in ([0, 1, 2], names, [0.0, 1.0, 2.0]))
    says = f"were fitted on [0, 1, 2] and on {names}: fit all of them on the same classes"
    with pytest.raises(ModelError) as caught:
        badge.predict([a, c, b], rows)
    assert says in str(caught.value)
    assert badge.predict([a, c], rows).classes == 3
    trees = [RandomForestClassifier(3).fit(rows, np.stack([y == 0, y == 1], axis=1)) for _ in range(2)]
    assert badge.predict(trees, rows).multilabel


def test_skorch() -> None:
    skorch = pytest.importorskip("skorch")
    x, y = X[:300].astype(np.float32), Y[:300]
    quiet = {"max_epochs": 1, "verbose": 0, "train_split": None}
    nets = [
        skorch.NeuralNetClassifier(Module, **quiet),  # NLLLoss: the module returns probabilities
        skorch.NeuralNetClassifier(Module, module__softmax=False, criterion=nn.CrossEntropyLoss, **quiet),
    ]
    for net in nets:
        with pytest.raises(ModelError, match="call fit"):
            badge.predict(net, x)
        net.fit(x, y)
        out = badge.predict(net, x)
        np.testing.assert_allclose(out.probabilities, net.predict_proba(x), atol=1e-6)
        with torch.no_grad():
            torch.testing.assert_close(out.embeddings, torch.relu(net.module_.hidden(torch.from_numpy(x))))
    binary = skorch.NeuralNetBinaryClassifier(Module, module__softmax=False, module__classes=1, **quiet)
    binary.fit(x, (y > 0).astype(np.float32))
    np.testing.assert_allclose(badge.predict(binary, x).probabilities[:, 0], binary.predict_proba(x)[:, 1], atol=1e-6)


def test_skorch_at_the_end_of_a_pipeline_and_in_a_search() -> None:
    skorch = pytest.importorskip("skorch")
    from sklearn.preprocessing import FunctionTransformer

    net = skorch.NeuralNetClassifier(Module, max_epochs=1, verbose=0, train_split=None)
    pipe = make_pipeline(StandardScaler(), FunctionTransformer(np.float32), net).fit(X[:300], Y[:300])
    np.testing.assert_allclose(badge.predict(pipe, X).probabilities, pipe.predict_proba(X), atol=1e-6)
    x = X[:300].astype(np.float32)
    search = GridSearchCV(net, {"lr": [0.1]}, cv=2).fit(x, Y[:300])
    np.testing.assert_allclose(badge.predict(search, x).probabilities, search.predict_proba(x), atol=1e-6)


@pytest.mark.parametrize(
    ("model", "pool", "says"),
    [
        (LogisticRegression().fit(X, Y), np.zeros((9, 3)), r"ndarray \[9, 3\]\): ValueError: X has 3 features"),
        (LogisticRegression().fit(X, Y), np.full((9, X.shape[1]), np.nan), "Input X contains NaN"),
        (LogisticRegression().fit(X, Y), ["a text"] * 9, r"\(list\): ValueError"),
        (LogisticRegression().fit(X, Y), [{"a": 1.0}] * 9, r"\(list\): ValueError"),
        (LogisticRegression(), X, "NotFittedError"),
    ],
)
def test_what_an_estimator_cannot_take_is_one_line(model: Any, pool: Any, says: str) -> None:
    with pytest.raises(ModelError, match=f"LogisticRegression cannot run on a batch of the pool .*{says}") as caught:
        badge.select(model, pool, k=3)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 600 and caught.value.__cause__ is not None
    if hasattr(model, "classes_"):
        learner = badge.ActiveLearner(pool, LogisticRegression(), classes=2, initial={0: 0, 1: 1})
        if isinstance(pool, list) and isinstance(pool[0], dict):  # no number of labels would help
            with pytest.raises(
                ModelError, match=r"LogisticRegression cannot be trained on 2 labelled examples: TypeError"
            ):
                learner.ask(3)


def test_one_number_an_example_is_a_column() -> None:
    """scikit-learn asks whether it is one row or one column: here rows are examples."""
    x = np.linspace(-1, 1, 40)
    y = (x > 0).astype(int)
    model = LogisticRegression().fit(x[:, None], y)
    expected = badge.select(model, x[:, None], k=5).tolist()
    pools: list[Any] = [x, torch.from_numpy(x), x.tolist(), pd.Series(x), pl.Series(x), {"x": x}]
    for pool in pools:
        assert badge.select(model, pool, k=5).tolist() == expected
        learner = badge.ActiveLearner(pool, LogisticRegression(), classes=2, initial={0: 0, 39: 1})
        learner.ask(3)
        assert learner.uniform_because is None


def test_a_feature_may_be_called_y_or_target() -> None:
    """What the fitted model lists as its features are features."""
    table = pd.DataFrame({"x1": X[:, 0], "y": X[:, 1], "target": X[:, 2]})
    model = LogisticRegression().fit(table[:200], Y[:200])
    out = badge.predict(model, table.assign(label=0))
    np.testing.assert_allclose(out.embeddings, X[:, :3], rtol=1e-6)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[["x1"]][:200], Y[:200])
    assert badge.predict(model, table).embeddings.shape == (5000, 1)  # here they are labels


def test_the_words_of_many_texts_stay_sparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(3000)])
    texts = [" ".join(words[rng.integers(3000, size=8)]) for _ in range(9000)]
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[:200], rng.integers(3, size=200))
    monkeypatch.setattr(estimator, "SPARSE_BYTES", 2**40)
    dense = badge.predict(pipe, texts)
    assert isinstance(dense.embeddings, torch.Tensor)
    monkeypatch.setattr(estimator, "SPARSE_BYTES", 2**20)
    out = badge.predict(pipe, texts)
    assert isinstance(out.embeddings, SparseRows) and repr(out) == repr(dense)
    np.testing.assert_array_equal(out.embeddings, dense.embeddings)
    np.testing.assert_array_equal(out.probabilities, dense.probabilities)
    labeled = list(range(5))
    for strategy in ("badge", "coreset", "kmeanspp", "conf", "rand"):
        picks = [badge.select_from(o, 20, strategy=strategy, exclude=labeled).tolist() for o in (out, dense)]
        assert picks[0] == picks[1], strategy
    assert torch.equal(out[[7, 3]].embeddings, dense[[7, 3]].embeddings)
    on_disk = badge.predict(pipe, texts, out=tmp_path / "out")
    assert torch.equal(on_disk.embeddings, dense.embeddings)
    again = pickle.loads(pickle.dumps(out))
    np.testing.assert_array_equal(again.embeddings, dense.embeddings)
