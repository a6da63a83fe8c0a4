"""From one batch to the arguments of a model's `forward`, with the labels left out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from badge.errors import InputError

__all__ = ["LABEL_KEYS", "bind", "place", "positional", "without_label"]

#: Keys of a dict item that hold its label: they are dropped, unread.
LABEL_KEYS = frozenset({"label", "label_ids", "labels", "target", "targets", "y"})

#: What Hugging Face tokenizers and processors give to a model; passed on where `forward` ends in **kwargs.
MODEL_KEYS = frozenset(
    {
        "attention_mask",
        "bbox",
        "decoder_input_ids",
        "input_features",
        "input_ids",
        "input_values",
        "inputs_embeds",
        "pixel_mask",
        "pixel_values",
        "position_ids",
        "token_type_ids",
    }
)


def _parameters(model: nn.Module) -> list[inspect.Parameter]:
    try:
        own = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # a scripted or native forward
        return []
    base = getattr(model, "get_base_model", None)  # peft: the wrapper passes **kwargs on to the model inside
    if callable(base) and isinstance(inner := base(), nn.Module) and inner is not model:
        own += [p for p in _parameters(inner) if p.name not in {q.name for q in own}]
    return own


def positional(model: nn.Module) -> tuple[int, int]:
    """How many positional inputs `forward` needs (at least 1), and how many it takes."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = [p for p in _parameters(model) if p.kind in kinds]
    needs = [p for p in takes if p.default is inspect.Parameter.empty]
    return max(1, len(needs)), max(1, len(takes))


def without_label(item: Any, needs: int, takes: int) -> Any:
    """The inputs of one item or batch: the first of a tuple, a dict without its label; the label is not touched.

    >>> without_label(("x", "label"), needs=1, takes=1)
    'x'
    >>> without_label({"image": 1, "label": 2}, needs=1, takes=1)
    {'image': 1}
    """
    if isinstance(item, Mapping):
        return {key: item[key] for key in item if key not in LABEL_KEYS}
    if not isinstance(item, tuple) and not (isinstance(item, list) and item and isinstance(item[0], Tensor)):
        return item
    unclear = len(item) > needs + 1 and takes > needs
    if len(item) == needs + 1 and takes > needs and isinstance(item[0], Tensor) and isinstance(item[-1], Tensor):
        # (input_ids, attention_mask) cannot be told from (x, y) by position alone, but labels do not have x's shape
        unclear = item[0].ndim > 0 and item[0].shape == item[-1].shape and item[0].numel() > len(item[0])
    if unclear:
        raise InputError(
            f"items of {len(item)} parts for a model whose forward takes {needs} to {takes} inputs: it is unclear "
            "which are inputs. Use dict items with the names of forward's parameters"
        )
    return item[0] if needs == 1 else tuple(item[:needs])


def bind(model: nn.Module, batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and named arguments for `forward`; labels and columns that it does not take are left out."""
    needs, takes = positional(model)
    batch = without_label(batch, needs, takes)
    if not isinstance(batch, Mapping):
        return (batch if isinstance(batch, tuple) else (batch,)), {}
    parameters = _parameters(model)
    names = {p.name for p in parameters if p.kind != inspect.Parameter.VAR_KEYWORD}
    open_ended = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters)
    chosen = {k: v for k, v in batch.items() if k in names or (open_ended and k in MODEL_KEYS)}
    if not chosen and open_ended:
        chosen = {k: v for k, v in batch.items() if isinstance(v, Tensor)}
    if chosen:
        if "use_cache" in names and "input_ids" in chosen:
            chosen["use_cache"] = False  # keys and values of a decoder are for generation: memory for nothing here
        return (), chosen
    if len(tensors := {k: v for k, v in batch.items() if isinstance(v, Tensor)}) == 1:
        return tuple(tensors.values()), {}
    raise InputError(
        f"items have the keys {list(batch)} and the model's forward takes {sorted(names)}: name the keys as forward "
        "names its inputs, or use items that are the input alone"
    )


def place(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """Tensors on the device of the model; floating ones in its dtype (None: as they are)."""
    if isinstance(value, Tensor):
        kind = dtype if dtype is not None and value.is_floating_point() else value.dtype
        return value.to(device, kind, non_blocking=device.type == "cuda")  # towards the host it would not be safe
    if isinstance(value, Mapping):
        return {key: place(part, device, dtype) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(place(part, device, dtype) for part in value)
    if isinstance(value, list):
        return [place(part, device, dtype) for part in value]
    return value.to(device) if hasattr(value, "to") else value
