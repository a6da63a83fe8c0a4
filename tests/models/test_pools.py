"""One place for every kind of pool: what `select` takes the learner takes, what is no pool is refused in badge's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import badge
from badge.errors import InputError
from badge.models.digest import sample_digest, sample_of
from badge.models.pools import length, open_pool, take

datasets = pytest.importorskip("datasets")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from scipy import sparse  # noqa: E402
from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

N = 30
X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
T, OTHER = torch.from_numpy(X), torch.from_numpy(X).flip(0)
TEXTS = [f"{'good' if y else 'bad'} film number {i % 7}" for i, y in enumerate(Y)]
TITLES = [f"title {i % 3}" for i in range(N)]


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(10, 2)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.out(torch.cat([self.a(left), self.b(right)], dim=1).relu())


def one() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


class Items(Dataset[Any]):
    def __init__(self, form: Any) -> None:
        self.form = form

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> Any:
        return self.form(i)


def two_texts(left: Any, right: Any) -> list[Any]:
    return list(zip(left, right, strict=True))


#: pool -> the trainer that goes with it
TABLES: dict[str, Any] = {
    "array": X,
    "DataFrame": pd.DataFrame(X, columns=list("abcd")),
    "polars DataFrame": pl.DataFrame(X, schema=list("abcd")),
    "sparse": sparse.coo_matrix(X),
    "list of lists": X.tolist(),
    "list of tuples of numbers": [tuple(row) for row in X.tolist()],
    "list of (array, label)": list(zip(X, Y, strict=True)),
    "loader": DataLoader(TensorDataset(T, torch.from_numpy(Y)), batch_size=7),
    "TensorDataset": TensorDataset(T, torch.from_numpy(Y)),
}
LISTS: dict[str, Any] = {
    "list of texts": TEXTS,
    "tuple of texts": tuple(TEXTS),
    "array of texts": np.array(TEXTS),
    "Series of texts": pd.Series(TEXTS, index=range(100, 100 + N)),
    "polars Series of texts": pl.Series(TEXTS),
    "(text, label)": two_texts(TEXTS, Y),
    "datasets.Dataset": datasets.Dataset.from_dict({"text": TEXTS, "label": Y}),
    "dict of texts": {"text": TEXTS, "label": Y},
}
ONE_INPUT: dict[str, Any] = {
    "tensor": T,
    "Series of arrays": pd.Series(list(X)),
    "DataFrame with its label": pd.DataFrame(X).assign(label=Y),
    "polars DataFrame": pl.DataFrame(X, schema=list("abcd")),
    "dict of tensors": {"input": T, "labels": torch.from_numpy(Y)},
    "dict of arrays": {"input": X},
    "list of dicts": [{"input": row, "label": 0} for row in T],
    "Dataset of (x, y)": Items(lambda i: (T[i], int(Y[i]))),
    "Dataset of (x, y as a tensor)": Items(lambda i: (T[i], torch.tensor(float(Y[i])))),
    "Dataset of (x, name)": Items(lambda i: (T[i], "cat")),
    "datasets.Dataset": datasets.Dataset.from_dict({"x": X, "label": Y}).with_format("torch"),
    "loader": DataLoader(T, batch_size=4),  # type: ignore[arg-type]
}
TWO_INPUTS: dict[str, Any] = {
    "TensorDataset": TensorDataset(T, OTHER),
    "TensorDataset with labels": TensorDataset(T, OTHER, torch.from_numpy(Y)),
    "list of pairs": list(zip(T, OTHER, strict=True)),
    "list of (a, b, label)": list(zip(T, OTHER, Y, strict=True)),
    "dict of tensors": {"right": OTHER, "left": T, "label": Y},
    "loader": DataLoader(TensorDataset(T, OTHER), batch_size=4),
}
VECTORIZER = make_pipeline(TfidfVectorizer(), LogisticRegression())
KINDS = [
    *[(name, pool, LogisticRegression()) for name, pool in TABLES.items()],
    *[(name, pool, VECTORIZER) for name, pool in LISTS.items()],
    *[(name, pool, badge.Trainer(one, lr=1e-2, max_epochs=3)) for name, pool in ONE_INPUT.items()],
    *[(name, pool, badge.Trainer(Two, lr=1e-2, max_epochs=3)) for name, pool in TWO_INPUTS.items()],
]


@pytest.mark.parametrize(("name", "pool", "trainer"), KINDS, ids=[f"{n}-{type(t).__name__}" for n, _, t in KINDS])
def test_the_learner_takes_what_select_takes(name: str, pool: Any, trainer: Any, tmp_path: Path) -> None:
    initial = {0: int(Y[0]), 1: int(Y[1]), 2: int(Y[2]), 3: int(Y[3])}
    assert len(set(initial.values())) == 2
    options: dict[str, Any] = {"classes": 2, "initial": initial, "journal": tmp_path / "labels.jsonl"}
    with badge.ActiveLearner(pool, trainer, **options) as learner:
        first = learner.ask(3)
        learner.tell(first, Y[first])
        second = learner.ask(2)
        assert len(set(first) | set(second) | set(initial)) == 9
        model = learner.model
    with badge.ActiveLearner(pool, trainer, **options) as again:  # the pool is known again
        assert again.pending.tolist() == second.tolist()
    assert len(badge.select(model, pool, k=3)) == 3


def test_a_trainer_is_given_inputs_without_labels() -> None:
    ids = np.array([4, 1])
    torch.testing.assert_close(take(TensorDataset(T, torch.from_numpy(Y)), ids), T[ids])
    left, right = take(TensorDataset(T, OTHER), ids)
    torch.testing.assert_close((left, right), (T[ids], OTHER[ids]))
    torch.testing.assert_close(take(list(zip(T, OTHER, Y, strict=True)), ids), (left, right))
    assert take({"left": T, "y": Y}, ids).keys() == {"left"}
    assert take(two_texts(TEXTS, TITLES), ids) == [(TEXTS[4], TITLES[4]), (TEXTS[1], TITLES[1])]
    assert take(two_texts(TEXTS, Y), ids) == [TEXTS[4], TEXTS[1]]
    assert take([[a, b] for a, b in two_texts(TEXTS, TITLES)], ids) == take(two_texts(TEXTS, TITLES), ids)
    assert take(datasets.Dataset.from_dict({"text": TEXTS, "label": Y}), ids).column_names == ["text"]
    for frame in (pd.DataFrame({"a": X[:, 0], "label": Y, "y": Y}), pl.DataFrame({"a": X[:, 0], "target": Y})):
        assert list(take(frame, ids).columns) == ["a"]  # an estimator would learn the label from itself
    assert list(take(pd.DataFrame({"x": X[:, 0], "y": X[:, 1]}), ids).columns) == ["x", "y"]
    assert take(pd.Series(TEXTS), ids).tolist() == [TEXTS[4], TEXTS[1]]
    assert take(pl.Series(TEXTS), ids).to_list() == [TEXTS[4], TEXTS[1]]
    assert take([(1.0, 2.0), (3.0, 4.0)], np.array([1])) == [(3.0, 4.0)]


def test_the_same_data_has_the_same_digest() -> None:
    def digest(pool: Any) -> str | None:
        return sample_digest(open_pool(pool), sample_of(len(pool)))

    assert digest(T) == digest(X) == digest(list(X)) == digest(TensorDataset(T, torch.zeros(N)))
    assert digest(TEXTS) == digest(pd.Series(TEXTS)) == digest(two_texts(TEXTS, Y))
    assert digest(TEXTS) != digest(two_texts(TEXTS, TITLES))
    flipping = Items(lambda i: T[i] * (1 if torch.rand(()) < 0.5 else -1))
    assert digest(flipping) == digest(flipping)


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Any:
        return iter(T)


BAD: dict[str, tuple[Any, str]] = {
    "None": (None, "NoneType has no length or no positions"),
    "number": (5, "int has no length or no positions"),
    "one text": ("a text", "the pool is one text"),
    "set": ({1, 2}, "set has no length or no positions"),
    "generator": (iter(TEXTS), "has no length or no positions"),
    "stream": (Stream(), "Stream has no length or no positions"),
    "shuffled loader": (DataLoader(T, shuffle=True), "positions would mean nothing"),  # type: ignore[arg-type]
    "0-d array": (np.array(3.0), "single number"),
    "empty": ([], "the pool is empty"),
    "empty dict": ({}, "without a column of inputs"),
    "dict of labels": ({"label": Y}, "without a column of inputs"),
    "dict of different lengths": ({"a": X, "b": X[:3]}, "columns of different lengths"),
    "dict of a number": ({"a": 3}, "the column 'a' is a int"),
    "lazy": (pl.DataFrame(X).lazy(), "pass pool.collect"),
    "sparse tensor": (T.to_sparse(), "the pool's values are a sparse tensor"),
    "sparse rows in a dataset": (
        TensorDataset(T.to_sparse(), torch.zeros(N)),
        "the pool's values are a sparse tensor",
    ),
    "sparse column": ({"x": T.to_sparse()}, "the values of column 'x' are a sparse tensor"),
    "no numbers": (TensorDataset(T.to("meta")), "or one without numbers"),
    "masked": (np.ma.masked_less(X, 0), "are masked in"),
    "dates": (np.array(["2020-01-01"], dtype="datetime64[D]"), "dtype datetime64"),
    "pyarrow": (datasets.Dataset.from_dict({"text": TEXTS}).data.table, "pass pool.to_pandas"),
    "table of labels": (pd.DataFrame({"label": Y}), "none of them is an input"),
    "splits": (datasets.DatasetDict(train=datasets.Dataset.from_dict({"text": TEXTS})), "pass one of them"),
}


@pytest.mark.parametrize(("pool", "message"), BAD.values(), ids=BAD)
def test_what_is_no_pool(pool: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        badge.ActiveLearner(pool, LogisticRegression(), classes=2)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=message):
        badge.select(one(), pool, k=1)
    with pytest.raises(InputError, match=message):
        length(pool)


def test_items_that_cannot_be_told_apart() -> None:
    with pytest.raises(InputError, match="items of 3 texts"):
        take([("a", "b", "c")], np.array([0]))
    with pytest.raises(InputError, match="items of 3 parts: it is unclear which are inputs"):
        take([("a", 1, "b")], np.array([0]))
    with pytest.raises(InputError, match="pairs: a scikit-learn estimator takes one input"):
        badge.select(VECTORIZER.fit(TEXTS, Y), two_texts(TEXTS, TITLES), k=1)
    with pytest.raises(InputError, match="items of 1 parts for a model whose forward needs 2"):
        badge.select(Two(), [(row,) for row in T], k=1)
    with pytest.raises(InputError, match=r"a dict of the columns \['a', 'b'\] for an estimator"):
        badge.select(LogisticRegression().fit(X, Y), {"a": X, "b": X}, k=1)


def test_rows_of_numbers_in_tuples_are_not_cut() -> None:
    net = one()
    rows = [tuple(row) for row in X.tolist()]
    torch.testing.assert_close(badge.predict(net, rows).probabilities, badge.predict(net, T).probabilities)
