"""Masked arrays, ragged lists and other plain mistakes: badge's own error in one line, at every door."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import badge
from badge import stats
from badge.data import Dataset
from badge.errors import BadgeError, InputError
from badge.experiment import cells_of, read_grid
from badge.report import learning_curves
from badge.training.networks import mlp

pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
P = np.full((40, 2), 0.5)
OUT = badge.Outputs(P, X)
NET = torch.nn.Linear(4, 2)
RNG = np.random.default_rng(0)
GRID = {"batch_size": 100, "data": "digits", "model": "mlp", "strategy": "badge"}


def masked(array: Any, row: int = 1) -> Any:
    hidden = np.ma.masked_array(array)
    hidden[row] = np.ma.masked
    return hidden


def learner(pool: Any = X, **options: Any) -> badge.ActiveLearner:
    return badge.ActiveLearner(pool, LogisticRegression(), classes=2, **options)


def told(ids: Callable[[Any], Any], labels: Callable[[Any], Any]) -> None:
    one = learner()
    asked = one.ask(10)
    one.tell(ids(asked), labels(Y[asked]))


TRAINER = badge.Trainer(partial(mlp, 4, 2), lr=0.1, max_epochs=1)
MASKED: dict[str, Callable[[], Any]] = {
    "probabilities": lambda: badge.Outputs(masked(P), X),
    "embeddings": lambda: badge.Outputs(P, masked(X)),
    "logits": lambda: badge.Outputs.from_logits(masked(P), X),
    "Dense": lambda: badge.Dense(masked(X)),
    "Factored": lambda: badge.Factored(masked(P), X),
    "exclude": lambda: badge.select_from(OUT, 2, exclude=masked([1, 2])),
    "explain": lambda: badge.explain(OUT, masked([1, 2])),
    "topk": lambda: badge.samplers.topk(masked(np.arange(3.0)), 1, RNG),
    "own strategy": lambda: badge.select_from(OUT, 2, lambda outputs, k, rng, labeled=None: masked([1, 2])),
    "pool of a network": lambda: badge.select(NET, masked(X), 2),
    "pool of an estimator": lambda: badge.select(LogisticRegression().fit(X, Y), masked(X), 2),
    "columns": lambda: badge.predict(NET, {"input": masked(X)}),
    "items": lambda: badge.predict(NET, list(masked(X))),
    "items of two inputs": lambda: badge.predict(torch.nn.Bilinear(4, 4, 2), list(zip(X, masked(X), strict=True))),
    "items of dicts": lambda: badge.predict(NET, [{"input": row} for row in masked(X)]),
    "inputs of a trainer": lambda: badge.Trainer(lambda: torch.nn.Bilinear(4, 4, 2), lr=0.1).fit(
        (X, masked(X)), Y, RNG
    ),
    "results": lambda: stats.Results.of({name: masked(getattr(stats.example(), name)) for name in stats.REQUIRED}),
    "labeled": lambda: badge.select(NET, X, 2, strategy="coreset", labeled=masked(X)),
    "learner's pool": lambda: learner(masked(X)),
    "told labels": lambda: told(lambda ids: ids, masked),
    "told ids": lambda: told(masked, lambda labels: labels),
    "first": lambda: learner(first="typiclust", embeddings=masked(X)),
    "trainer's examples": lambda: TRAINER.fit(masked(X), Y, RNG),
    "trainer's labels": lambda: TRAINER.fit(X, masked(Y), RNG),
    "examples of a data set": lambda: Dataset(masked(X), Y, X, Y, 2),
    "labels of a data set": lambda: Dataset(X, masked(Y), X, Y, 2),
}


@pytest.mark.parametrize("door", MASKED)
def test_masked_values_are_not_read(door: str) -> None:
    with pytest.raises(InputError, match=r"masked in|None") as error:
        MASKED[door]()
    assert len(str(error.value)) < 300


def test_a_mask_that_hides_nothing_is_no_matter() -> None:
    plain = np.ma.masked_array(X)
    assert torch.equal(badge.Outputs(P, plain).embeddings, OUT.embeddings)
    assert (badge.select(NET, plain, 3) == badge.select(NET, X, 3)).all()
    assert (
        badge.select_from(OUT, 3, exclude=np.ma.masked_array([1, 2])) == badge.select_from(OUT, 3, exclude=[1, 2])
    ).all()


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "ragged probabilities": (lambda: badge.Outputs([[0.5, 0.5], [1]], X[:2]), "probabilities are not rows of one length"),
    "ragged vectors": (lambda: badge.Dense([[1, 2], [3]]), "features are not rows of one length"),
    "ragged positions": (lambda: badge.select_from(OUT, 2, exclude=[0, [1, 2]]), "positions are not rows of one length"),
    "a set of all kinds": (lambda: badge.select_from(OUT, 2, exclude={0, "a"}), "must be a flat list of integers, not <U"),
    "huge numbers": (lambda: badge.Dense([[10**30], [1]]), "features have dtype object"),
    "explain nothing": (lambda: badge.explain(None, [1]), "outputs must be badge.Outputs, not NoneType"),  # type: ignore[arg-type]
    "a device": (lambda: badge.Trainer(partial(mlp, 4, 2), lr=0.1, device="gpu"), "device='gpu' cannot be used"),
    "a rate": (lambda: badge.Trainer(partial(mlp, 4, 2), lr="x"), "lr must be a number above 0, not 'x'"),  # type: ignore[arg-type]
    "initial labels": (lambda: learner(initial=[1, 0]), "initial holds labels by id"),
    "a journal": (lambda: learner(journal=5), "a journal is a file name, not 5"),
    "a rate of a grid": (lambda: cells_of({**GRID, "lr": "x"}), "lr must be a number above 0, not 'x'"),
    "seeds of a grid": (lambda: cells_of({**GRID, "seeds": 2.5}), "seeds must be a whole number ≥ 1, not 2.5"),
    "no seeds": (lambda: cells_of({**GRID, "seeds": 0}), "seeds must be a whole number ≥ 1, not 0"),
    "a strategy of a grid": (lambda: cells_of({**GRID, "strategy": 5}), "strategy must be a name, not 5"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_plain_mistakes(mistake: str) -> None:
    call, message = MISTAKES[mistake]
    with pytest.raises(BadgeError) as error:
        call()
    assert message in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 600


def test_a_grid_file_with_a_wrong_rate_names_itself(tmp_path: Path) -> None:
    from badge.experiment import read_grid

    file = tmp_path / "grid.toml"
    file.write_text('batch_size = 100\ndata = "digits"\nmodel = "mlp"\nstrategy = "badge"\nlr = "x"\n')
    with pytest.raises(InputError, match=r"grid.toml: lr must be a number above 0, not 'x'"):
        read_grid(file)


@pytest.mark.parametrize("kind", [">f4", ">f8", np.longdouble, "<f4"])
def test_numbers_in_another_order_of_bytes(kind: Any) -> None:
    """As FITS, IDX and other old files have them: the answer is that of the same numbers as this machine has them."""
    plain = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    other, y = plain.astype(kind), np.arange(30) % 2
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    expected = badge.predict(net, plain).probabilities
    for pool in (other, list(other), {"input": other}, [{"input": row} for row in other]):
        assert torch.equal(badge.predict(net, pool).probabilities, expected)
    picks = []
    for pool in (plain, other):
        trainer = badge.Trainer(lambda: torch.nn.Linear(5, 2), lr=0.1, max_epochs=5)
        learner = badge.ActiveLearner(pool, trainer, classes=2, seed=0)
        for _ in range(2):
            ids = learner.ask(6)
            learner.tell(ids, y[ids])
        picks.append(learner.ask(6).tolist())
    assert picks[0] == picks[1]


@pytest.mark.parametrize(
    "classes",
    [
        "cat", b"cat", 1, 0, -3, True, 2.5, None, {"cat": 0, "dog": 1}, {"cat", "dog"}, [], ["cat"], ["cat", "cat"],
        [1.5, 2], [None, 1],
    ],
)  # fmt: skip
def test_classes_that_are_no_list_of_names(classes: Any) -> None:
    with pytest.raises(InputError) as caught:
        badge.ActiveLearner(np.zeros((9, 2)), GaussianNB(), classes=classes)
    assert "classes" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "classes", [("a", "b"), (n for n in "ab"), np.array(["a", "b"]), pd.Series(["a", "b"]), range(2)]
)
def test_classes_that_are_a_list_in_all_but_name(classes: Any) -> None:
    learner = badge.ActiveLearner(np.zeros((9, 2)), GaussianNB(), classes=classes)
    assert list(learner.classes) in (["a", "b"], [0, 1])


@pytest.mark.parametrize(
    "ids", ["nine", b"123456789", 9, 2.5, ["a"] * 9, list(range(8)), [None] * 9, [1.5] * 9, [[i] for i in range(9)], {}]
)
def test_ids_that_name_nothing(ids: Any) -> None:
    with pytest.raises(InputError) as caught:
        badge.ActiveLearner(np.zeros((9, 2)), GaussianNB(), classes=2, ids=ids)
    assert "id" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "ids", [tuple("abcdefghi"), (c for c in "abcdefghi"), np.array(list("abcdefghi")), pd.Series(list("abcdefghi"))]
)
def test_ids_that_are_a_list_in_all_but_name(ids: Any) -> None:
    learner = badge.ActiveLearner(np.zeros((9, 2)), GaussianNB(), classes=2, ids=ids)
    assert set(learner.ask(9).tolist()) == set("abcdefghi")


def test_what_is_asked_of_a_learner_is_checked_at_its_door(tmp_path: Path) -> None:
    learner = badge.ActiveLearner(np.random.default_rng(0).normal(size=(9, 2)), GaussianNB(), classes=2)
    for call, why in (
        (lambda: learner.tell([0], [1], unasked="yes"), "unasked must be True or False, not 'yes'"),
        (lambda: learner.ask(1, progress=np.zeros(2)), "progress must be True or False"),
        (lambda: learner.add_class(np.zeros(2)), "a class that is added needs the next number, 2"),
        (lambda: learner.import_csv(5), "a table of labels is given by its path"),
        (lambda: learner.import_csv(tmp_path), "is not a file"),
    ):
        with pytest.raises(InputError, match=why):
            call()
    learner.tell([0], [1], unasked=np.True_, by=np.str_("ann"))
    learner.skip([1], reason=np.str_("blurred"))
    learner.use(np.str_("rand"))
    for wrong in ({"multilabel": 3}, {"predict": 5}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))} "):
            badge.ActiveLearner(np.zeros((9, 2)), GaussianNB(), classes=2, **wrong)


def test_statistics_of_what_are_no_results() -> None:
    results = stats.example()
    call: Any
    for call in (stats.penalty_matrix, stats.normalized_errors, stats.saved_labels, learning_curves):
        with pytest.raises(InputError, match=r"results are a badge.stats.Results, .* not str"):
            call("runs/")
    for call in (stats.penalty_matrix, stats.normalized_errors, stats.saved_labels):
        with pytest.raises(InputError, match="strategies are a list of names, not 'badge'"):
            call(results, "badge")  # its letters are five strategies without a result
    for call in (stats.learning_curve, stats.round_times, stats.batch_diversity):
        with pytest.raises(
            InputError, match=r"a setting is a badge.stats.Setting\(data, model, batch_size\), not 'letter'"
        ):
            call(results, "letter", "badge")
    with pytest.raises(InputError, match="there are no results of"):
        stats.label_budgets(results, stats.Setting("digits", "mlp", 5))
    with pytest.raises(InputError, match="results are a"):
        stats.write(5, "x.csv")
    with pytest.raises(InputError, match="there is no grid file"):
        read_grid("no.toml")
