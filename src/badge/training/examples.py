"""Labelled examples for a network: tensors on its device, checked once; images of 0 to 255 are scaled by the network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import as_array, native
from badge.core.names import unmasked
from badge.errors import BadgeError, InputError
from badge.models.batches import network_inputs
from badge.models.borrowed import in_mode
from badge.models.pools import open_pool

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
