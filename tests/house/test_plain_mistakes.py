"""Masked arrays, ragged lists and other plain mistakes: badge's own error in one line, at every door."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.data import Dataset
from badge.errors import BadgeError, InputError
from badge.experiment import cells_of
from badge.training.networks import mlp

pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression

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
