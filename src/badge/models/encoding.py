"""Texts, images and columns as a network's inputs: tokenize, process, pad. Nothing here imports transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import native
from badge.core.names import unmasked
from badge.errors import InputError, in_short
from badge.models.inputs import LABEL_KEYS, MODEL_KEYS, is_pair

#: A tokenizer without a limit says 10^30.
NO_LIMIT = 10**9

#: Two columns of texts that are known to belong together; other names may be an id, a title or a translation.
PAIRS = {"text": "text_pair", "premise": "hypothesis", "question": "sentence"}
PAIRS |= {"sentence1": "sentence2", "question1": "question2"}


def positions_of(model: nn.Module) -> int | None:
    """The longest input that a transformer has positions for; None if it does not say."""
    said = getattr(getattr(model, "config", None), "max_position_embeddings", None)
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind the padding's number
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            return module.num_embeddings - module.padding_idx - 1
    return said if isinstance(said, int) and said > 0 else None


@dataclass(frozen=True)
class Encoder:
    """A tokenizer, an image processor or any function of a list of examples; None if inputs are numbers already."""

    call: Any = None
    longest: int | None = None  # tokens

    @classmethod
    def of(cls, call: Any, model: nn.Module, max_length: int | None) -> Encoder:
        """With the smallest limit of the caller's, the tokenizer's and the model's positions."""
        if type(call).__name__ == "DataCollatorWithPadding":  # it pads by its tokenizer, which reads texts too
            call = call.tokenizer
        positions, own = positions_of(model), getattr(call, "model_max_length", None)
        if max_length is not None:
            if own is None:
                raise InputError("max_length= cuts what a transformers tokenizer gives: pass such a tokenizer= too")
            if positions is not None and max_length > positions:
                raise InputError(f"max_length={max_length} is more than the model's {positions} positions")
        limits = [int(n) for n in (positions, own, max_length) if n is not None and n < NO_LIMIT]
        return cls(call, min(limits, default=None))

    @property
    def is_tokenizer(self) -> bool:
        return hasattr(self.call, "model_max_length")

    @property
    def is_processor(self) -> bool:
        """An image or feature processor of transformers."""
        return hasattr(self.call, "model_input_names") and not self.is_tokenizer

    @property
    def reads_arrays(self) -> bool:
        """Whether examples that are arrays go through it: through all but a tokenizer, which takes texts alone."""
        return self.call is not None and not self.is_tokenizer

    def examples(self, examples: Sequence[Any], start: int) -> Any:
        """One batch of texts, pairs of texts, images or what else the processor takes, as the model's inputs."""
        if self.call is None:
            raise InputError("the pool holds texts: pass tokenizer= (a transformers tokenizer or a function of a list)")
        texts = _checked(examples, start)
        if self.is_processor and "pixel_values" in self.call.model_input_names:
            _check_images(self.call, examples, start)
        try:
            if self.is_tokenizer:
                cut: dict[str, Any] = {"truncation": self.longest is not None, "max_length": self.longest}
                return _tensors(self.call(*texts, padding=True, return_tensors="pt", **cut))
            if self.is_processor:
                return _tensors(self.call(list(examples), return_tensors="pt"))
            return _tensors(self.call(list(examples)))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            which = f"rows {start} to {start + len(examples) - 1} of the pool (of type {type(examples[0]).__name__})"
            raise InputError(f"the {type(self.call).__name__} cannot take {which}: {in_short(error)}") from error

    def columns(self, columns: Mapping[str, Any], start: int) -> Any:
        """One batch of columns: texts or images through the processor; else numbers are stacked, ragged ones padded."""
        columns = {k: v for k, v in columns.items() if k not in LABEL_KEYS}
        if self.call is not None and not any(k in MODEL_KEYS for k in columns):
            texts = [k for k, v in columns.items() if _first(v, str)]
            if texts and not self.is_processor:
                return self.examples(_texts(columns, texts), start)
            images = [k for k, v in columns.items() if not _first(v, str | bool | int | float | np.number | None)]
            if self.reads_arrays and (images or self.is_processor):
                if len(images) != 1:
                    raise InputError(f"columns {list(columns)}: one image column is needed, found {images}")
                return self.examples(list(columns[images[0]]), start)
        numbers = {k: v for k, v in columns.items() if _numeric(v)}
        if not numbers:
            hint = "pass tokenizer=" if any(_first(v, str) for v in columns.values()) else "pass processor="
            raise InputError(f"no column of {list(columns)} can be given to the model: {hint}")
        lists = {k: v for k, v in numbers.items() if not isinstance(v, Tensor | np.ndarray)}
        ragged = {k for k, v in lists.items() if len({_length(row) for row in v}) > 1}
        if not ragged:
            return {k: _stack(v, k) for k, v in numbers.items()}
        if not hasattr(self.call, "pad"):
            key = min(ragged)
            lengths = sorted({_length(row) for row in numbers[key]})
            differ = f"rows of {key!r} have different lengths ({lengths[0]} to {lengths[-1]})"
            raise InputError(f"{differ}: pass tokenizer= so that they are padded, or pad them yourself")
        names = {k for k in numbers if k in ragged or k in self.call.model_input_names}
        rows = {k: [row.tolist() if hasattr(row, "tolist") else row for row in numbers[k]] for k in names}
        padded = self.call.pad(rows, return_tensors="pt")
        return {**{k: _stack(v, k) for k, v in numbers.items() if k not in names}, **padded}


def _checked(examples: Sequence[Any], start: int) -> tuple[list[str], ...]:
    """The texts, or the first and the second ones of pairs; () where examples are something else."""
    first = next((x for x in examples if isinstance(x, str) or is_pair(x)), None)
    pair = is_pair(first)
    for i, example in enumerate(examples):
        if example is None or (first is not None and not (is_pair(example) if pair else isinstance(example, str))):
            wanted = "something to read" if first is None else "a pair of texts" if pair else "a text"
            raise InputError(f"row {start + i} of the pool is {example!r:.60} where {wanted} is needed")
    return tuple(list(part) for part in zip(*examples, strict=True)) if pair else (list(examples),)


def _check_images(processor: Any, examples: Sequence[Any], start: int) -> None:
    """Refuse arrays that an image processor would read wrongly: of two meanings, or scaled before."""
    if not all(isinstance(image, Tensor | np.ndarray) for image in examples):
        return
    shape = tuple(examples[0].shape)
    if len(shape) != 3 or (shape[0] in (1, 3)) == (shape[-1] in (1, 3)):
        wanted = "an image processor needs 1 or 3 channels, first or last, and no doubt about which"
        raise InputError(f"images of shape {shape}: {wanted}")
    if getattr(processor, "do_rescale", False):
        low, high = min(float(x.min()) for x in examples), max(float(x.max()) for x in examples)
        fractions = any(x.is_floating_point() if isinstance(x, Tensor) else x.dtype.kind == "f" for x in examples)
        if low < 0 or (high <= 1 and fractions):
            which = f"images from {low:.3g} to {high:.3g} in rows {start} to {start + len(examples) - 1}"
            way_out = "pass pixels 0 to 255, or leave the processor out"
            raise InputError(f"{which} are scaled already, and the processor would scale them again: {way_out}")


def _texts(columns: Mapping[str, Any], names: list[str]) -> list[Any]:
    for first, second in PAIRS.items():
        if set(names) == {first, second}:
            return list(zip(columns[first], columns[second], strict=True))
    return list(columns[one_text_column(names)])


def one_text_column(names: list[str]) -> str:
    """The one column of texts; with several it is not for us to choose."""
    if len(names) == 1:
        return names[0]
    found = f"the text columns are {names}" if names else "there is no text column"
    raise InputError(f"{found}: keep the one to read (pool.select_columns), or name a pair of them text and text_pair")


def _first(values: Any, kind: Any) -> bool:
    """Whether the first entry that is there has a type; of tensors and arrays the type of their numbers."""
    if isinstance(values, Tensor | np.ndarray) and not (isinstance(values, np.ndarray) and values.dtype.kind in "OUS"):
        return kind is not str and values.ndim == 1
    return isinstance(next((x for x in values if x is not None), None), kind)


def _tensors(encoded: Any) -> Any:
    if isinstance(encoded, Mapping):
        return {key: _stack(value, key) for key, value in encoded.items()}
    return encoded if isinstance(encoded, Tensor) else torch.as_tensor(native(np.asarray(encoded)))


def _numeric(values: Any) -> bool:
    if isinstance(values, Tensor):
        return True
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "fiub"
    first = values[0]
    while isinstance(first, list | tuple) and first:
        first = first[0]
    array = isinstance(first, np.ndarray) and first.dtype.kind in "fiub"
    return array or isinstance(first, bool | int | float | np.number | Tensor)


def _length(row: Any) -> int:
    return len(row) if isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0 else 0


def _stack(values: Any, name: str) -> Tensor:
    """One tensor of a column; copied, since a memory-mapped part may be read-only."""
    if isinstance(values, Tensor):
        return values
    for row in values if isinstance(values, list | tuple) else ():
        unmasked(row, f"values of {name!r}")
    try:
        if not isinstance(values, np.ndarray) and isinstance(values[0], Tensor):
            return torch.stack(list(values))
        return torch.from_numpy(native(np.array(values)))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"the column {name!r} cannot become a tensor: {in_short(error)}") from error
