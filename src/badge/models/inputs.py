"""From an item, a batch or a table to the arguments of a model's `forward`: what is an input, and what is a label."""

import inspect
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.errors import InputError

#: Keys of a dict item that hold its label: they are dropped, unread.
LABEL_KEYS = frozenset({"label", "label_ids", "labels", "target", "targets", "y"})

#: What Hugging Face tokenizers and processors give to a model; passed on where `forward` ends in **kwargs.
MODEL_KEYS = frozenset({
    "attention_mask", "bbox", "decoder_input_ids", "input_features", "input_ids", "input_values", "inputs_embeds",
    "pixel_mask", "pixel_values", "position_ids", "token_type_ids",
})  # fmt: skip

#: What always works, for a model of several inputs.
AS_DICTS = "use dict items with the names of forward's parameters"

#: Items that are looked at, evenly over the pool, for pairs of texts of which one is the name of a label.
SAMPLE = 64
#: A column is taken for labels where a value stands for at least this many items, and no value is longer than a name.
ITEMS_PER_VALUE, NAME_CHARACTERS = 4, 40

#: How many positional inputs a model's `forward` needs, and how many it takes.
Forward = tuple[int, int]


def _parameters(model: nn.Module) -> list[inspect.Parameter]:
    try:
        own = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):  # a native forward
        return []
    base = getattr(model, "get_base_model", None)  # peft: the wrapper passes **kwargs on to the model inside
    if callable(base) and isinstance(inner := base(), nn.Module) and inner is not model:
        own += [p for p in _parameters(inner) if p.name not in {q.name for q in own}]
    return own


def positional(model: nn.Module) -> Forward | None:
    """How many positional inputs `forward` needs (at least 1), and how many it takes; None: it takes a batch as it is."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = [p for p in _parameters(model) if p.kind in kinds]
    needs = [p for p in takes if p.default is inspect.Parameter.empty]
    if len(needs) == 1 and needs[0].name == "batch":  # as modules of Lightning are written
        return None
    return max(1, len(needs)), max(1, len(takes))


def forward_names(model: nn.Module) -> set[str]:
    return {p.name for p in _parameters(model) if p.kind != inspect.Parameter.VAR_KEYWORD}


def is_pair(item: Any) -> bool:
    """Whether an item is two texts, for a tokenizer to put together."""
    return isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(part, str) for part in item)


def without_label(item: Any, forward: Forward | None = None, *, batch: bool = False) -> Any:
    """The inputs of one item (`batch`: of a collated batch): a dict or a tuple without its label, which is not read.

    A label is known by its key, or by being a single number (or a name, or nothing that a model could read) behind an
    input. Two texts are a pair. Where the model is known, `forward` says how many inputs there are. A tuple of nothing but
    numbers is a row of features.

    >>> without_label(("a text", 1)), without_label(("a text", "another")), without_label({"image": 1, "label": 2})
    ('a text', ('a text', 'another'), {'image': 1})
    """
    if isinstance(item, Mapping):
        return {key: item[key] for key in item if key not in LABEL_KEYS}
    if not _has_parts(item, batch):
        return item
    parts, needs = tuple(item), 1 if forward is None else forward[0]
    if len(parts) > 1 and _is_several(parts[0]):  # ((a, b), label)
        if forward is not None and len(parts[0]) > forward[1]:
            wrong = f"the inputs of an item are {len(parts[0])}, and the model's forward takes {forward[1]}"
            raise InputError(f"{wrong}: let it take them one by one, or {AS_DICTS}")
        return tuple(parts[0])
    texts = sum(_is_text(part, batch) for part in parts)
    if texts > 2:
        raise InputError(f"items of {texts} texts: a text, or a pair of texts, is needed")
    if texts == 2 and _is_text(parts[0], batch) and _is_text(parts[1], batch):
        return parts[:2]
    if needs == 1 and all(issubclass(type(part), bool | int | float | np.number) for part in parts):
        return item
    if forward is None or forward[1] > needs:
        while len(parts) > needs and (not _is_input(parts[-1], batch) or (texts == 1 and _is_text(parts[-1], batch))):
            parts = parts[:-1]
        if len(parts) > needs and (forward is not None or not all(_is_input(part, batch) for part in parts)):
            whose = "" if forward is None else f" for a model whose forward takes {needs} to {forward[1]} inputs"
            raise InputError(f"items of {len(item)} parts{whose}: it is unclear which are inputs; {AS_DICTS}")
    else:
        parts = parts[:needs]
    if forward is not None and len(parts) < needs:
        raise InputError(f"items of {len(parts)} parts for a model whose forward needs {needs} inputs")
    return parts[0] if len(parts) == 1 else parts


def _has_parts(item: Any, batch: bool) -> bool:
    """Tuples, lists that begin with a tensor, and lists of two texts (`batch`: lists that begin with a list of texts)."""
    if isinstance(item, tuple):
        return not (batch and item and isinstance(item[0], str))
    if not isinstance(item, list) or not item:
        return False
    return isinstance(item[0], Tensor) or _is_several(item[0]) or (_is_text(item[0], True) if batch else is_pair(item))


def _is_several(part: Any) -> bool:
    """Whether the first part of an item is a tuple of inputs itself."""
    several = issubclass(type(part), tuple | list) and len(part) > 1
    return several and all(issubclass(type(x), Tensor | np.ndarray) for x in part)


# These look at the class of an object: `isinstance` would ask the object itself, which may read a label.


def _is_text(part: Any, batch: bool) -> bool:
    if batch:
        return issubclass(type(part), list | tuple) and bool(part) and issubclass(type(part[0]), str)
    return issubclass(type(part), str)


def _is_input(part: Any, batch: bool) -> bool:
    kind = type(part)
    if issubclass(kind, Tensor | np.ndarray):
        return bool(part.ndim > int(batch))
    if batch and issubclass(kind, list | tuple):
        return bool(part) and _is_input(part[0], False)
    array = hasattr(kind, "__array_interface__") or hasattr(kind, "__array__")
    return issubclass(kind, str | bytes | Mapping | list | tuple) or (array and not issubclass(kind, np.generic))


def bind(model: nn.Module, batch: Any, forward: Forward | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments for a model whose `positional` is `forward`; labels and columns that it does not take are left out."""
    if isinstance(batch, Tensor):
        return (batch,), {}
    batch = without_label(batch, forward, batch=True)
    if forward is None:
        return (batch,), {}
    if not isinstance(batch, Mapping):
        return (batch if isinstance(batch, tuple) else (batch,)), {}
    names = forward_names(model)
    open_ended = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in _parameters(model))
    chosen = {k: v for k, v in batch.items() if k in names or (open_ended and k in MODEL_KEYS)}
    if not chosen and open_ended:
        chosen = {k: v for k, v in batch.items() if isinstance(v, Tensor)}
    if chosen:
        if "use_cache" in names and "input_ids" in chosen:
            chosen["use_cache"] = False  # keys and values of a decoder are for generation: memory for nothing here
        return (), chosen
    if len(tensors := {k: v for k, v in batch.items() if isinstance(v, Tensor)}) == 1:
        return tuple(tensors.values()), {}
    found = f"items have the keys {list(batch)} and the model's forward takes {sorted(names)}"
    raise InputError(f"{found}: name the keys as forward names its inputs, or use items that are the input alone")


def place(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """Tensors on the device of the model; floating ones in its dtype (None: as they are)."""
    if isinstance(value, Tensor):
        kind = dtype if dtype is not None and value.is_floating_point() else value.dtype
        if value.dtype == kind and value.device == device:
            return value
        return value.to(device, kind, non_blocking=device.type == "cuda")  # towards the host it would not be safe
    if isinstance(value, Mapping):
        return {key: place(part, device, dtype) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [place(part, device, dtype) for part in value]
        return tuple(parts) if isinstance(value, tuple) else parts
    return value.to(device) if hasattr(value, "to") else value


def unscaled(pixels: torch.dtype, dtype: torch.dtype | None) -> InputError:
    scale = "scale it as in training, e.g. with processor=lambda images: torch.stack(images) / 255"
    found = f"the pool holds {pixels} and the model takes {dtype or 'floats'}"
    return InputError(f"{found}: {scale}, or pass the image processor of the model")


def check_pairs(rows: int, item: Callable[[int], Any], classes: Collection[str] = ()) -> None:
    """Refuse pairs of texts of which one looks like a label: it would be read as an input.

    >>> check_pairs(8, lambda i: (f"text {i}", "good" if i % 2 else "bad"))
    Traceback (most recent call last):
    badge.errors.InputError: the second text of the items looks like a label (2 values in 8 items looked at: 'bad', ...
    """
    found: list[Any] = []
    for position in np.unique(np.linspace(0, rows - 1, SAMPLE).astype(np.int64)).tolist():
        found.append(item(position))
        if not is_pair(found[-1]):
            return
    for name, column in zip(("first", "second"), zip(*found, strict=True), strict=False):
        values = set(column)
        few = ITEMS_PER_VALUE * len(values) <= len(column) and max(map(len, values)) <= NAME_CHARACTERS
        if few or values <= set(classes):
            shown = ", ".join(repr(value) for value in sorted(values)[:3])
            seen = f"{len(values)} values in {len(column)} items looked at: {shown}"
            wrong = f"the {name} text of the items looks like a label ({seen}) and would be read as an input"
            way_out = "leave it out, or pass dicts with the keys text and text_pair if both are inputs"
            raise InputError(f"{wrong}: {way_out}")


# Tables and columns of pandas and polars are told by what they have: neither library is imported.


def is_frame(pool: Any) -> bool:
    """Whether `pool` is a table or column of polars; a lazy one, or one of pyarrow, is an error that says what to do."""
    kind, library = type(pool).__name__, type(pool).__module__.split(".")[0]
    if library == "polars" and kind == "LazyFrame":
        raise InputError("a polars LazyFrame has no positions: pass pool.collect()")
    if library == "pyarrow":
        raise InputError(f"a pyarrow {kind}: pass pool.to_pandas()")
    return library == "polars" and kind in ("DataFrame", "Series")


def series(values: Any) -> Any:
    """A column of a table: an array where it holds numbers, else a list."""
    array = values.to_numpy()
    return array if array.dtype.kind in "fiub" else listed(values)


def listed(values: Any) -> list[Any]:
    found: list[Any] = values.to_list() if hasattr(values, "to_list") else values.tolist()
    return found


def without_label_columns(pool: Any, labels: Set[str] = LABEL_KEYS) -> Any:
    """A table of pandas or polars without the columns that are called `labels`; beside an x, y is a coordinate."""
    if not (hasattr(pool, "iloc") or is_frame(pool)) or not hasattr(pool, "columns"):
        return pool
    names = [name for name in pool.columns if name in labels and not (name == "y" and "x" in pool.columns)]
    if len(names) == len(pool.columns):
        raise InputError(f"the table has the columns {names}: none of them is an input")
    return pool.drop(columns=names) if hasattr(pool, "iloc") and names else pool.drop(names) if names else pool
