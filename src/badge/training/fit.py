"""What trains a model: an object with `fit(examples, labels, rng) -> model`, or a scikit-learn estimator."""

import copy
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from badge.errors import BadgeError, InputError, ModelError, in_short
from badge.models.batches import as_table
from badge.outputs import Outputs

IntArray = NDArray[np.int64]


@runtime_checkable
class Trains(Protocol):
    """Anything that trains a new model on labelled examples; the same state of `rng` gives the same model.

    One that also has `prepare(pool)` sees every pool through it: `fit` gets rows of what it returns, the model predicts
    on it (`badge.training.Frozen` is one). One that also has `part(pool, also)` prepares a part of a large pool, with the
    positions `also` in it, and returns positions and rows, or None; the first batch is then picked from that part.
    """

    def fit(self, examples: Any, labels: IntArray, rng: np.random.Generator) -> Any: ...


def prepared(trainer: Any, pool: Any) -> Any:
    """The pool as its trainer sees it."""
    return trainer.prepare(pool) if callable(getattr(trainer, "prepare", None)) else pool


def is_estimator(trainer: object) -> bool:
    """Whether `trainer` follows scikit-learn's conventions (skorch does too): fit(X, y), parameters, probabilities."""
    return hasattr(trainer, "get_params") and hasattr(trainer, "fit")


def fit_model(trainer: Any, examples: Any, labels: IntArray, rng: np.random.Generator) -> Any:
    """A newly trained model. An estimator is cloned first, and every `random_state` in it is set from `rng`."""
    if not is_estimator(trainer):
        return trainer.fit(examples, labels, rng)
    from sklearn.base import clone

    try:
        estimator = clone(trainer)
    except RuntimeError:  # scikit-learn cannot clone some: CatBoost with a list of categories
        estimator = type(trainer)(**copy.deepcopy(trainer.get_params(deep=False)))
    names = sorted(name for name in estimator.get_params() if name.split("__")[-1] == "random_state")
    if names:  # CatBoost refuses even no parameters once it is fitted
        estimator.set_params(**{name: int(rng.integers(2**31 - 1)) for name in names})
    examples = as_table(examples)
    with torch.random.fork_rng(devices=[]):  # skorch draws from torch's own state
        torch.default_generator.manual_seed(int(rng.integers(2**63)))
        try:
            estimator.fit(examples, labels)
        except BadgeError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {in_short(error, 300)}"
            many = f"{len(labels)} labelled example{'s' * (len(labels) != 1)}"
            raise ModelError(f"{type(trainer).__name__} cannot be trained on {many}: {reason}") from error
    return estimator


def lacks_labels(error: Exception) -> bool:
    """Whether a training probably failed because there are too few labels: then more of them may help.

    Estimators raise ValueError where a class is missing or has too few examples; LightGBM and CatBoost their own error.
    Errors of badge are about the call, and others about the machine or the code.
    """
    if isinstance(error, ModelError) and isinstance(error.__cause__, Exception):
        return lacks_labels(error.__cause__)
    library = type(error).__module__.split(".")[0].lstrip("_")
    return not isinstance(error, BadgeError) and (isinstance(error, ValueError) or library in ("lightgbm", "catboost"))


def align(outputs: Outputs, model: Any, classes: int, multilabel: bool = False) -> Outputs:
    """Outputs with one probability column per class: an estimator has none for a class that it was not shown.

    >>> import types
    >>> seen = types.SimpleNamespace(classes_=np.array([0, 2]))
    >>> align(Outputs([[0.4, 0.6]], [[1.0]]), seen, 3).probabilities.tolist()
    [[0.4, 0.0, 0.6]]
    """
    if outputs.multilabel != multilabel:
        found, wanted = ("any number of labels", "one") if outputs.multilabel else ("one label", "any number")
        what = f"the model gives {found} per example, and the classes are for {wanted}"
        raise InputError(what, in_python="see multilabel=")
    p = outputs.probabilities
    if p.shape[1] == classes or (p.shape[1] == 1 and classes == 2):
        return outputs
    seen = np.asarray(getattr(model, "classes_", ()))
    if seen.ndim != 1 or len(seen) != p.shape[1] or seen.dtype.kind not in "iu" or seen.max() >= classes:
        raise InputError(f"the model gives {p.shape[1]} probabilities for {classes} classes")
    full = p.new_zeros(len(p), classes)
    full[:, torch.from_numpy(seen.astype(np.int64))] = p
    return outputs.with_probabilities(full, outputs.expected_entropy)  # columns of zeros do not change the entropy
