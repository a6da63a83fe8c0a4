"""scikit-learn estimators and pipelines, and skorch nets: probabilities and the inputs of the final step."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import as_array, as_tensor
from badge.core.catalog import without
from badge.errors import BadgeError, InputError, ModelError, in_short
from badge.models.borrowed import random_state_kept
from badge.models.network import NOT_ASKED, Network, Said
from badge.models.options import Options
from badge.outputs.sparse import SparseRows

#: A sparse matrix stays sparse where it would take more bytes than the first as a dense one. Above the second its columns
#: are too many for distances: hashed texts have a million.
SPARSE_BYTES, DENSE_BYTES = 2**26, 4 * 2**30
#: Modules of trees. These take NaN and categories as they are.
TREES = (
    "sklearn.tree", "sklearn.ensemble._forest", "sklearn.ensemble._hist_gradient_boosting", "xgboost", "lightgbm", "catboost",
)  # fmt: skip

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "logistic": lambda x: np.exp(-np.logaddexp(0, -x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}


def is_skorch(model: Any) -> bool:
    library = sys.modules.get("skorch")
    return library is not None and isinstance(model, library.NeuralNet)


def skorch_module(net: Any) -> nn.Module:
    """The trained network of a skorch net."""
    module = getattr(net, "module_", None)
    if not isinstance(module, nn.Module):
        raise ModelError(f"the {type(net).__name__} has no module_ yet: call fit, or initialize and load_params, first")
    return module


def final_step(model: Any) -> tuple[Any, Any]:
    """(what comes before the final step or None, the final step) of an estimator, a pipeline or a fitted search."""
    model = getattr(model, "best_estimator_", model)  # GridSearchCV and its kin
    model = model.estimator if type(model).__name__ == "FrozenEstimator" else model
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not hasattr(model, "named_steps"):
        return None, model
    inner, final = final_step(model[-1])  # a pipeline or search as the last step
    before = model[:-1] if len(steps) > 1 else None
    return _both(before, inner), final


def views(model: Any) -> list[tuple[Any, Any]]:
    """(what comes before the final step, the final step) of the pipelines inside a fitted meta-estimator.

    Calibration, votes, thresholds, stacks, bags and one-against-rest are looked into. Pipelines whose fitted transformers
    are the same count once; members without a pipeline are left out where others have one.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for member in _members(model):
        before, final = final_step(member)
        for inner, last in views(final) or [(None, final)]:
            both = _both(before, inner)
            if both is not None:
                both = _both(_WithoutNames() if hasattr(model, "estimators_features_") else None, both)
                found.setdefault(_state(both, last), (both, last))
    return list(found.values())


def _members(model: Any) -> list[Any]:
    """The fitted estimators inside a meta-estimator that see every column of the rows, and no others."""
    if hasattr(model, "calibrated_classifiers_"):
        return [one.estimator for one in model.calibrated_classifiers_]
    if hasattr(model, "estimators_"):
        columns = getattr(model, "estimators_features_", ())  # of a bag; a chain (order_) adds its own predictions
        fewer = any(list(some) != list(range(model.n_features_in_)) for some in columns)
        members = model.estimators_.ravel() if isinstance(model.estimators_, np.ndarray) else model.estimators_
        return [] if fewer or hasattr(model, "order_") else list(members)
    only = getattr(model, "estimator_", None)
    return [] if only is None or hasattr(model, "support_") else [only]


class _WithoutNames:
    """A bag gives its members arrays, also of a table."""

    def transform(self, x: Any) -> Any:
        return x.to_numpy() if hasattr(x, "columns") else x


def _state(before: Any, final: Any) -> str:
    """Equal for transformers that do the same; a multi-layer perceptron is itself part of the representation."""
    import joblib

    try:
        return str(joblib.hash((before, final if hasattr(final, "coefs_") else None)))
    except (pickle.PicklingError, TypeError, AttributeError):
        return str(id(before))


def _both(first: Any, second: Any) -> Any:
    """Two fitted transformers, one after the other; either may be None."""
    from sklearn.pipeline import make_pipeline

    return second if first is None else first if second is None else make_pipeline(first, second)


class Estimator:
    """A fitted estimator that is called with rows of a pool while it is `running()`; the pool has `rows` in all."""

    def __init__(self, model: Any, options: Options, rows: int) -> None:
        self.before, self.final = final_step(model)
        self.rows, self.embeddings = rows, options.embeddings is not False
        self.views = views(self.final) if self.embeddings else []
        self.network = Network(skorch_module(self.final), options) if is_skorch(self.final) else None
        name = type(self.final).__name__
        if self.network is not None:
            return
        if options.reader is not None or options.max_length is not None:
            raise InputError("tokenizer, processor and max_length are for networks: put a vectorizer into the pipeline")
        if options.head is not None or options.device is not None or options.autocast:
            raise InputError(f"head, device and autocast are for PyTorch models, not for {name}")
        if not hasattr(self.final, "predict_proba"):
            way_out = "sklearn.calibration.CalibratedClassifierCV, or use badge.Outputs with your own probabilities"
            raise ModelError(f"{name} has no predict_proba: wrap it in {way_out}")
        self.labels = has_labels(self.final)
        if options.multilabel is not None and options.multilabel != self.labels:
            fitted = "several labels" if self.labels else "one label"
            raise ModelError(f"{name} was fitted on {fitted} per row: leave out multilabel={options.multilabel}")

    @contextmanager
    def running(self) -> Iterator[Estimator]:
        with random_state_kept() if self.network is None else self.network.running():
            yield self

    def __call__(self, rows: int, given: Any) -> Said:
        if self.network is not None:
            return self.network(rows, _dense(self.before.transform(given)).float())
        try:
            x = given if self.before is None else self.before.transform(given)
            p = self.final.predict_proba(x)
        except BadgeError:
            raise
        except Exception as error:  # rows that the estimator was not fitted for
            kind, name = type(given).__name__, type(self.final).__name__
            shape = f"{kind} {list(given.shape)}" if hasattr(given, "shape") else kind
            why = f"{type(error).__name__}: {in_short(error)}"
            raise ModelError(f"{name} cannot run on a batch of the pool ({shape}): {why}") from error
        p = _of_each_label(self.final, p) if self.labels and isinstance(p, list) else p
        if not isinstance(p, np.ndarray) or p.ndim != 2 or len(p) != rows:
            raise ModelError(f"predict_proba of {type(self.final).__name__} gave no [N, C] array of probabilities")
        return Said(torch.from_numpy(p.astype(np.float32)), self._embedding(x, rows), self.labels)

    def _embedding(self, x: Any, rows: int) -> Tensor | SparseRows | str:
        if not self.embeddings:
            return NOT_ASKED
        if not self.views:
            return _embedding(self.final, x, max(rows, self.rows))
        found = [_embedding(final, before.transform(x), max(rows, self.rows)) for before, final in self.views]
        missing = next((why for why in found if isinstance(why, str)), None)
        if missing is not None:
            return missing
        if len(found) == 1:
            return found[0]
        return torch.cat([h[:] for h in found if not isinstance(h, str)], dim=1) / math.sqrt(len(found))


def has_labels(final: Any) -> bool:
    """Whether an estimator was fitted on an indicator matrix: any number of labels per row."""
    if isinstance(getattr(final, "classes_", None), list):  # trees, forests, neighbours, MultiOutputClassifier, chains
        return True
    perceptron = getattr(final, "out_activation_", None) == "logistic" and getattr(final, "n_outputs_", 1) > 1
    return bool(getattr(final, "multilabel_", False)) or perceptron  # OneVsRestClassifier, MLPClassifier


def _of_each_label(final: Any, said: list[Any]) -> np.ndarray[Any, Any]:
    """The probabilities of label 1 in each column, where the estimator gives a [N, 2] array for each of them."""
    columns = []
    for p, classes in zip(said, final.classes_, strict=True):
        if not set(np.asarray(classes).tolist()) <= {0, 1}:
            found = f"an output with the classes {list(classes)[:5]}"
            raise ModelError(f"{type(final).__name__} has {found}: 0 and 1 are needed")
        there = np.flatnonzero(np.asarray(classes) == 1)
        columns.append(p[:, there[0]] if len(there) else np.zeros(len(p)))  # no row had this label
    return np.stack(columns, axis=1)


def _embedding(final: Any, x: Any, rows: int) -> Tensor | SparseRows | str:
    """The final step's inputs [N, D]; of a multi-layer perceptron its last hidden layer. Or why they are no embedding.

    Trees take NaN, categories and a million columns as they are; distances and products do not.
    """
    name = type(final).__name__
    way_out = f"use {without('embeddings')}, or put {{}} before it in one Pipeline"
    act = _ACTIVATIONS.get(str(getattr(final, "activation", None)))
    if hasattr(final, "coefs_") and hasattr(final, "intercepts_") and act is not None:
        for weights, bias in zip(final.coefs_[:-1], final.intercepts_[:-1], strict=True):
            x = act(x @ weights + bias)
        return _dense(x)
    columns = x.shape[1] if hasattr(x, "toarray") else 0
    if DENSE_BYTES >= rows * columns * 4 > SPARSE_BYTES:
        return SparseRows.of(x) if np.isfinite(x.data).all() else _unknown(name, ~np.isfinite(x.toarray()), way_out)
    if rows * columns * 4 > DENSE_BYTES:
        size = f"{rows:,} rows of {columns:,} columns would take {rows * columns * 4 / 2**30:,.0f} GiB as embeddings"
        return f"{size}; {way_out.format('a TruncatedSVD(256)')}"
    table = x.toarray() if hasattr(x, "toarray") else _numbers(x)
    if table.dtype.kind not in "fiub":
        return f"the inputs of {name} are no numbers ({table.dtype}); {way_out.format('an encoder of its categories')}"
    if table.dtype.kind == "f" and (unknown := ~np.isfinite(table.reshape(len(table), -1))).any():
        return _unknown(name, unknown, way_out)
    return _dense(table)


def lacks_embedding(estimator: Any, pool: Any) -> str:
    """Why trees that are yet to be fitted will have no embeddings of this pool; empty if they will, or may."""
    if not type(estimator).__module__.startswith(TREES) or not hasattr(pool, "shape"):
        return ""
    found = _embedding(estimator, pool, pool.shape[0])
    return found if isinstance(found, str) else ""


def _unknown(name: str, where: np.ndarray[Any, Any], way_out: str) -> str:
    held = f"{int(where.any(axis=1).sum()):,} of {len(where):,} rows"
    said = f"the inputs of {name} hold NaN or inf (in {held} of a batch), which it takes as they are"
    return f"{said}; {way_out.format('a SimpleImputer')}"


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    """A table as an array: of numbers where all columns are numbers or truth values."""
    if hasattr(x, "dtypes") and hasattr(x, "to_numpy"):  # pandas: one column of categories makes objects of all
        kinds = {getattr(kind, "kind", "O") for kind in np.atleast_1d(np.asarray(x.dtypes, dtype=object))}
        return np.asarray(x.to_numpy(dtype=np.float64, na_value=np.nan) if kinds <= set("fiub") else x.to_numpy())
    return as_array(x, "the pool")


def _dense(x: Any) -> Tensor:
    x = x.toarray() if hasattr(x, "toarray") else x
    return as_tensor(np.ascontiguousarray(np.asarray(x).reshape(len(x), -1)), "the inputs of the final step")
