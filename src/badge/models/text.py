"""Texts and Hugging Face datasets: tokenize, pick the columns, pad. Nothing here imports transformers or datasets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.errors import InputError, ModelError
from badge.models.inputs import LABEL_KEYS

__all__ = [
    "check_config",
    "collate_columns",
    "hf_item",
    "hf_rows",
    "is_dict_batch",
    "is_hf_dataset",
    "text_column",
    "tokenize",
]

#: A tokenizer without a limit of its own says 10^30.
NO_LIMIT = 10**9


def is_hf_dataset(pool: Any) -> bool:
    """Whether `pool` is a `datasets.Dataset`; a stream or a dict of splits is an error that says what to do."""
    library = sys.modules.get("datasets")
    if library is None:
        return False
    if isinstance(pool, library.IterableDataset | library.IterableDatasetDict):
        raise InputError("a streamed datasets.IterableDataset has no positions: load it with streaming=False")
    if isinstance(pool, library.DatasetDict):
        raise InputError(f"a DatasetDict with the splits {list(pool)}: pass one of them")
    return isinstance(pool, library.Dataset)


def check_config(model: nn.Module) -> None:
    """Refuse what is not a single-label classifier by its own configuration."""
    kind = getattr(getattr(model, "config", None), "problem_type", None)
    if kind in ("regression", "multi_label_classification"):
        raise ModelError(f"the model's config says problem_type={kind!r}: a single-label classifier is needed")


def tokenize(examples: list[Any], tokenizer: Any) -> Any:
    """One batch of texts (or images, for an image processor) as the model's inputs."""
    if tokenizer is None:
        raise InputError("the pool holds texts: pass tokenizer= (a transformers tokenizer, or any function of a list)")
    if hasattr(tokenizer, "model_max_length"):
        limited = tokenizer.model_max_length < NO_LIMIT
        return _plain(tokenizer(examples, padding=True, truncation=limited, return_tensors="pt"))
    if hasattr(tokenizer, "model_input_names"):  # an image or feature processor
        return _plain(tokenizer(examples, return_tensors="pt"))
    return _plain(tokenizer(examples))


def _plain(encoded: Any) -> Any:
    if isinstance(encoded, Mapping):
        return {key: _as_tensor(value, key) for key, value in encoded.items()}
    return encoded if isinstance(encoded, Tensor) else torch.as_tensor(np.asarray(encoded))


def _as_tensor(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    try:
        return torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {name!r} cannot become a tensor: {error}") from error


def collate_columns(columns: Mapping[str, Any], tokenizer: Any) -> dict[str, Tensor]:
    """Columns of one batch as tensors: numbers are stacked, ragged token lists padded, texts and the like dropped."""
    numbers = {k: v for k, v in columns.items() if k not in LABEL_KEYS and _numeric(v)}
    ragged = {
        k for k, v in numbers.items() if not isinstance(v, Tensor | np.ndarray) and len({_length(row) for row in v}) > 1
    }
    if ragged:
        if tokenizer is None or not hasattr(tokenizer, "pad"):
            key = sorted(ragged)[0]
            lengths = sorted({_length(row) for row in numbers[key]})
            raise InputError(
                f"rows of {key!r} have different lengths ({lengths[0]} to {lengths[-1]}): pass tokenizer= so that "
                "they are padded, or pad them yourself"
            )
        names = {k for k in numbers if k in ragged or k in tokenizer.model_input_names}
        padded = tokenizer.pad({k: [_as_list(row) for row in numbers[k]] for k in names}, return_tensors="pt")
        rest = {k: v for k, v in numbers.items() if k not in names}
        return {**{k: _stack(v) for k, v in rest.items()}, **padded}
    if not numbers:
        texts = [k for k, v in columns.items() if isinstance(v[0], str)]
        if texts and tokenizer is not None:
            return tokenize(list(columns[_one_text_column(texts)]), tokenizer)  # type: ignore[no-any-return]
        hint = "pass tokenizer=" if texts else "numbers, arrays or tensors are needed"
        raise InputError(f"no column of {list(columns)} can be given to the model: {hint}")
    return {k: _stack(v) for k, v in numbers.items()}


def _numeric(values: Any) -> bool:
    if isinstance(values, Tensor):
        return True
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "fiub"
    first = values[0]
    while isinstance(first, list | tuple) and first:
        first = first[0]
    return isinstance(first, bool | int | float | np.number | Tensor) or (
        isinstance(first, np.ndarray) and first.dtype.kind in "fiub"
    )


def _length(row: Any) -> int:
    if isinstance(row, Tensor | np.ndarray):
        return len(row) if row.ndim else 0
    return len(row) if isinstance(row, list | tuple) else 0


def _as_list(row: Any) -> Any:
    return row.tolist() if isinstance(row, Tensor | np.ndarray) else row


def _stack(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values
    if not isinstance(values, np.ndarray) and isinstance(values[0], Tensor):
        return torch.stack(list(values))
    return torch.from_numpy(np.array(values))


def is_dict_batch(value: Any) -> bool:
    """Whether a dict holds a whole tokenized batch rather than one example."""
    if not isinstance(value, Mapping):
        return False
    ids = value.get("input_ids")
    if ids is None:
        pixels = value.get("pixel_values")
        return isinstance(pixels, Tensor | np.ndarray) and pixels.ndim == 4
    if isinstance(ids, Tensor | np.ndarray):
        return ids.ndim == 2
    return isinstance(ids, list) and bool(ids) and isinstance(ids[0], list)


def hf_rows(dataset: Any, a: int, b: int, tokenizer: Any) -> Any:
    """Rows a to b of a `datasets.Dataset` as the model's inputs."""
    rows: Mapping[str, Any] = dataset[a:b]  # with the dataset's own format and transform
    columns = {k: v for k, v in rows.items() if k not in LABEL_KEYS}
    if tokenizer is None or any(k in columns for k in ("input_ids", "pixel_values")):
        return collate_columns(columns, tokenizer)
    if hasattr(tokenizer, "model_max_length") or not hasattr(tokenizer, "model_input_names"):
        texts = [k for k, v in columns.items() if isinstance(v[0], str)]
        return tokenize(list(columns[_one_text_column(texts)]), tokenizer)
    images = [k for k, v in columns.items() if not isinstance(v[0], str | bool | int | float)]
    if len(images) != 1:
        raise InputError(f"columns {list(columns)}: one image column is needed, found {images}")
    return tokenize(list(columns[images[0]]), tokenizer)


def hf_item(dataset: Any, i: int) -> dict[str, Any]:
    """One row of a `datasets.Dataset` without its label."""
    row: Mapping[str, Any] = dataset[i]
    return {k: v for k, v in row.items() if k not in LABEL_KEYS}


def text_column(dataset: Any) -> str:
    """The column of texts of a `datasets.Dataset`."""
    first = hf_item(dataset, 0) if len(dataset) else {}
    return _one_text_column([k for k, v in first.items() if isinstance(v, str)])


def _one_text_column(names: list[str]) -> str:
    if "text" in names:
        return "text"
    if len(names) == 1:
        return names[0]
    found = f"the text columns are {names}" if names else "there is no text column"
    raise InputError(f"{found}: keep one with pool.select_columns([...]), or tokenize the pool with pool.map first")
