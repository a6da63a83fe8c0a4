"""scikit-learn estimators and pipelines, and skorch nets: probabilities and the inputs of the final step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import as_array, as_tensor
from badge.errors import BadgeError, InputError, ModelError
from badge.models.network import NOT_ASKED, Run, Said, random_state_kept, running

__all__ = ["final_step", "has_labels", "is_skorch", "running_estimator", "skorch_module"]

#: A sparse matrix becomes embeddings up to this size; hashed texts have a million columns.
DENSE_BYTES = 4 * 2**30

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
    steps = getattr(model, "steps", None)
    if not isinstance(steps, list) or not hasattr(model, "named_steps"):
        return None, model
    before, final = (model[:-1] if len(steps) > 1 else None), model[-1]
    inner, final = final_step(final)  # a pipeline or search as the last step
    if inner is None:
        return before, final
    return inner if before is None else _Both(before, inner), final


@dataclass(frozen=True)
class _Both:
    """Two transformers, one after the other."""

    first: Any
    second: Any

    def transform(self, x: Any) -> Any:
        return self.second.transform(self.first.transform(x))


@contextmanager
def running_estimator(
    model: Any,
    *,
    device: str | torch.device | None = None,
    head: Any = None,
    autocast: bool | torch.dtype | None = None,
    multilabel: bool | None = None,
    embeddings: bool = True,
    rows_in_all: int = 0,
) -> Iterator[Run]:
    """A function that runs a fitted estimator on rows of a pool, which has so many `rows_in_all`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> with running_estimator(model) as run:
    ...     p, h, _ = run(2, np.array([[0.0], [2.0]]))
    >>> p.shape, h.tolist()
    (torch.Size([2, 2]), [[0.0], [2.0]])
    """
    before, final = final_step(model)
    if is_skorch(final):
        how: dict[str, Any] = {"device": device, "head": head, "autocast": autocast, "multilabel": multilabel}
        how |= {"embeddings": embeddings}
        with running(skorch_module(final), **how) as run_module:
            yield lambda rows, x: run_module(rows, _dense(before.transform(x)).float())
        return
    if head is not None or device is not None or autocast:
        raise InputError(f"head, device and autocast are for PyTorch models, not for {type(final).__name__}")
    if not hasattr(final, "predict_proba"):
        raise ModelError(
            f"{type(final).__name__} has no predict_proba: wrap it in sklearn.calibration.CalibratedClassifierCV, or "
            "use badge.Outputs with your own probabilities"
        )

    labels = has_labels(final)
    if multilabel is not None and multilabel != labels:
        fitted = "several labels" if labels else "one label"
        raise ModelError(f"{type(final).__name__} was fitted on {fitted} per row: leave out multilabel={multilabel}")

    def run(rows: int, given: Any) -> Said:
        try:
            x = given if before is None else before.transform(given)
            p = final.predict_proba(x)
        except BadgeError:
            raise
        except Exception as error:  # whatever an estimator makes of rows that are not its own
            shape = f"{type(given).__name__} {list(given.shape)}" if hasattr(given, "shape") else type(given).__name__
            reason = " ".join(str(error).split())[:300]
            raise ModelError(
                f"{type(final).__name__} cannot run on a batch of the pool ({shape}): {type(error).__name__}: {reason}"
            ) from error
        p = _of_each_label(final, p) if labels and isinstance(p, list) else p
        if not isinstance(p, np.ndarray) or p.ndim != 2 or len(p) != rows:
            raise ModelError(f"predict_proba of {type(final).__name__} gave no [N, C] array of probabilities")
        h = _embedding(final, x, max(rows, rows_in_all)) if embeddings else NOT_ASKED
        return Said(torch.from_numpy(p.astype(np.float32)), h, labels)

    with random_state_kept():
        yield run


def has_labels(final: Any) -> bool:
    """Whether an estimator was fitted on an indicator matrix: any number of labels per row.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> has_labels(DecisionTreeClassifier().fit([[0.0], [1.0]], [[0, 1], [1, 1]]))
    True
    """
    if isinstance(getattr(final, "classes_", None), list):  # trees, forests, neighbours, MultiOutputClassifier, chains
        return True
    perceptron = getattr(final, "out_activation_", None) == "logistic" and getattr(final, "n_outputs_", 1) > 1
    return bool(getattr(final, "multilabel_", False)) or perceptron  # OneVsRestClassifier, MLPClassifier


def _of_each_label(final: Any, said: list[Any]) -> np.ndarray[Any, Any]:
    """The probabilities of label 1 in each column, where the estimator gives a [N, 2] array for each of them."""
    columns = []
    for p, classes in zip(said, final.classes_, strict=True):
        if not set(np.asarray(classes).tolist()) <= {0, 1}:
            raise ModelError(
                f"{type(final).__name__} has an output with the classes {list(classes)[:5]}: 0 and 1 are needed"
            )
        there = np.flatnonzero(np.asarray(classes) == 1)
        columns.append(p[:, there[0]] if len(there) else np.zeros(len(p)))  # a label that no row had
    return np.stack(columns, axis=1)


def _embedding(final: Any, x: Any, rows: int) -> Tensor | str:
    """The final step's inputs [N, D]; of a multi-layer perceptron its last hidden layer. Or why they are no embedding.

    Trees take NaN, categories and a million columns as they are; distances and products do not.
    """
    name, way_out = type(final).__name__, "use conf, marg, entropy or rand, or put {} before it in one Pipeline"
    if (
        hasattr(final, "coefs_")
        and hasattr(final, "intercepts_")
        and getattr(final, "activation", None) in _ACTIVATIONS
    ):
        act = _ACTIVATIONS[final.activation]
        for weights, bias in zip(final.coefs_[:-1], final.intercepts_[:-1], strict=True):
            x = act(x @ weights + bias)
        return _dense(x)
    columns = x.shape[1] if hasattr(x, "toarray") else 0
    if rows * columns * 4 > DENSE_BYTES:
        size = f"{rows:,} rows of {columns:,} columns would take {rows * columns * 4 / 2**30:,.0f} GiB as embeddings"
        return f"{size}; {way_out.format('a TruncatedSVD(256)')}"
    table = x.toarray() if hasattr(x, "toarray") else _numbers(x)
    if table.dtype.kind not in "fiub":
        return f"the inputs of {name} are no numbers ({table.dtype}); {way_out.format('an encoder of its categories')}"
    if table.dtype.kind == "f" and (unknown := ~np.isfinite(table.reshape(len(table), -1))).any():
        held = f"{int(unknown.any(axis=1).sum()):,} of {len(table):,} rows"
        return f"the inputs of {name} hold NaN or inf (in {held} of a batch), which it takes as they are; " + (
            way_out.format("a SimpleImputer")
        )
    return _dense(table)


def _numbers(x: Any) -> np.ndarray[Any, Any]:
    """A table as an array: of numbers where all columns are numbers or truth values."""
    if isinstance(x, np.ndarray):
        return as_array(x, "the pool")
    if hasattr(x, "dtypes") and hasattr(x, "to_numpy"):  # pandas: one column of categories makes objects of all
        kinds = {getattr(kind, "kind", "O") for kind in np.atleast_1d(np.asarray(x.dtypes, dtype=object))}
        return np.asarray(x.to_numpy(dtype=np.float64, na_value=np.nan) if kinds <= set("fiub") else x.to_numpy())
    return as_array(x, "the pool")


def _dense(x: Any) -> Tensor:
    x = x.toarray() if hasattr(x, "toarray") else x
    return as_tensor(np.ascontiguousarray(np.asarray(x).reshape(len(x), -1)), "the inputs of the final step")
