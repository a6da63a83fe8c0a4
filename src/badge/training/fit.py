"""Training a model on labelled examples: by an object with `fit(examples, labels, rng) -> model`, or by an estimator.

The second half is for networks: examples and labels become tensors on the device, checked once, and images of 0 to 255 are
scaled.
"""

import copy
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from badge.core.arrays import as_array, native
from badge.core.names import unmasked
from badge.errors import BadgeError, InputError, ModelError, in_short
from badge.models.batches import as_table, network_inputs
from badge.models.borrowed import in_mode
from badge.models.pools import open_pool
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


#: What a network is given: one tensor, or several by position or by name.
Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


def on_device(examples: Any, labels: Any, device: torch.device) -> tuple[Inputs, Tensor]:
    x, given = _stacked(examples), as_array(labels, "labels")
    parts = parts_of(x)
    if given.dtype.kind not in "iub":
        raise InputError(f"labels must be whole numbers from 0, not {given.dtype}")
    y = torch.as_tensor(given.astype(np.int64))
    if not parts or not all(isinstance(part, Tensor) and part.ndim and part.layout == torch.strided for part in parts):
        raise InputError("examples must be arrays with one row per example")
    if y.ndim not in (1, 2) or len(parts[0]) != len(y) or 0 in y.shape[1:]:
        found = f"{len(parts[0])} examples with labels of shape {tuple(y.shape)}"
        raise InputError(f"{found}: one label per example is needed (or a row of 0 and 1)")
    if len(y) == 0:
        raise InputError("nothing to train on: 0 labelled examples")
    if int(y.min()) < 0:
        raise InputError(f"labels must be whole numbers from 0, not from {int(y.min())}")
    if y.ndim == 2 and int(y.max()) > 1:
        raise InputError(f"rows of labels hold 0 and 1, one column for each label, not {int(y.max())}")
    for part in parts:
        if not part.is_floating_point() and part.dtype not in (torch.int32, torch.int64, torch.uint8):
            wanted = "float32 is needed (int64 for token numbers, uint8 for images of 0 to 255)"
            raise InputError(f"examples of dtype {part.dtype}: {wanted}")
        if part.is_floating_point() and not part.sum(dtype=torch.float64).isfinite():
            raise InputError("the examples hold NaN or inf: drop or repair these rows")
    if len(y) == 1:  # seen twice, because BatchNorm cannot be trained on one
        x, y = each(x, lambda part: part.repeat(2, *[1] * (part.ndim - 1))), y.repeat(2, *[1] * (y.ndim - 1))
    return each(x, lambda part: part.to(device)), y.to(device, torch.int64)


def _stacked(examples: Any) -> Inputs:
    """All examples as tensors: a tensor or array without a copy, a map-style data set item by item, once."""
    if isinstance(examples, Tensor):
        return examples.detach()
    examples = unmasked(examples, "examples")
    if isinstance(examples, np.ndarray) and examples.dtype.kind in "fiub":
        return torch.from_numpy(np.require(native(examples), requirements=["C", "W"]))
    if isinstance(examples, tuple):
        parts = (unmasked(part, "examples") for part in examples)
        return tuple(torch.as_tensor(native(part) if isinstance(part, np.ndarray) else part) for part in parts)
    pool = open_pool(examples)
    try:
        inputs: Inputs = network_inputs(pool.take(np.arange(pool.rows)))
    except BadgeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"no tensor can be made of the examples: {error}") from error
    return inputs


def parts_of(x: Inputs) -> list[Tensor]:
    return list(x.values()) if isinstance(x, dict) else list(x) if isinstance(x, tuple) else [x]


def each(x: Inputs, change: Callable[[Tensor], Tensor]) -> Any:
    """Every tensor of the inputs, changed."""
    if isinstance(x, dict):
        return {name: change(part) for name, part in x.items()}
    return tuple(change(part) for part in x) if isinstance(x, tuple) else change(x)


def _kind(model: nn.Module) -> torch.dtype:
    """The network's floating type."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)


def in_dtype_of(model: nn.Module, x: Inputs) -> Any:
    """`x` in the network's floating type; whole numbers stay, because they are token numbers."""
    kind = _kind(model)
    return each(x, lambda part: part.to(kind) if part.is_floating_point() else part)


def take_pixels(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """From now on `model` takes `uint8`, divided by 255, unless the network itself takes `uint8`; tried on a few examples.

    `badge.predict` refuses to guess how images were scaled for a network that was trained elsewhere. Here the same hook
    scales them when the network trains and when it predicts.
    """
    if not any(_is_pixels(x) for x in (*args, *kwargs.values())):
        return
    try:
        with torch.no_grad(), in_mode(model.modules(), training=False):
            model(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError):
        model.register_forward_pre_hook(_scale, with_kwargs=True)


def _scale(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    kind = _kind(model)

    def scaled(x: Any) -> Any:
        return x.to(kind) / 255 if _is_pixels(x) else x

    return tuple(scaled(x) for x in args), {name: scaled(x) for name, x in kwargs.items()}


def _is_pixels(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.uint8
