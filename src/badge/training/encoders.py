"""Encoders of every kind as one module: what they give becomes one row [n, D] per example."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import native
from badge.errors import InputError, MissingExtraError, ModelError
from badge.models.answers import rows_of
from badge.models.digest import model_digest
from badge.models.one_pass import READER
from badge.models.pools import stacked

__all__ = [
    "HF",
    "Encoded",
    "Rows",
    "Sentences",
    "encoder_digest",
    "from_hf",
    "function_module",
    "is_sentence_transformer",
]

#: how a name of Hugging Face, or a folder in its format, is told from other text
HF = "hf:"


class Encoded(nn.Module):
    """An encoder and a linear layer on its rows: a classifier as any other, whose embeddings are the encoder's."""

    def __init__(self, encoder: nn.Module, head: nn.Module, tokenizer: Any = None) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        setattr(self, READER, tokenizer)  # `badge.predict` uses it where it is given none

    def get_base_model(self) -> nn.Module:
        """The module whose `forward` names the inputs."""
        return self.encoder

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        given = self.encoder(*args, **kwargs)
        scores: Tensor = self.head(rows_of(given, kwargs.get("attention_mask")))
        return scores


class Rows(nn.Module):
    """Stands where a head would, to have its input kept."""

    def forward(self, rows: Tensor) -> Tensor:
        return rows.new_zeros(len(rows), 1)


class _Function(nn.Module):
    """A function of a batch; what stands in for the tokenizer has called it already where examples come one by one."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Any = None, *, embedded: Tensor | None = None) -> Tensor:
        return _tensor(self.function(batch)) if embedded is None else embedded


def function_module(function: Callable[[Any], Any]) -> tuple[nn.Module, Callable[[list[Any]], dict[str, Tensor]]]:
    """A function `batch -> [n, D]` as a module, and as what stands in for the tokenizer of a pool."""
    return _Function(function), lambda examples: {"embedded": _tensor(function(_batch(examples)))}


def from_hf(name: str, texts: bool) -> tuple[nn.Module, Any]:
    """The encoder of a folder or a name of the hub, and its tokenizer or image processor."""
    try:
        import transformers
    except ImportError:
        raise MissingExtraError(f"the encoder {HF}{name}", "transformers", "hf") from None
    try:
        model: nn.Module = transformers.AutoModel.from_pretrained(name)
        reader = (transformers.AutoTokenizer if texts else transformers.AutoImageProcessor).from_pretrained(name)
    except (OSError, ValueError) as error:
        what = "texts" if texts else "images"
        raise ModelError(f"{HF}{name} is no encoder of {what} that can be loaded: {_first_line(error)}") from error
    parts = {True: "get_text_features", False: "get_image_features"}
    if hasattr(model, parts[texts]):  # two towers, as CLIP has: the one for what is at hand
        return _Tower(model, parts[texts]), reader
    return (_pooled(name, model, transformers) if texts else model), reader


class _Pooled(nn.Module):
    """An encoder with the pooling, and the unit length, that its folder of sentence-transformers asks for."""

    def __init__(self, model: nn.Module, pooling: str, unit_length: bool) -> None:
        super().__init__()
        self.model, self.pooling, self.unit_length = model, pooling, unit_length
        self.about = f"{pooling} {unit_length}"

    def get_base_model(self) -> nn.Module:
        return self.model

    def forward(self, **kwargs: Any) -> Tensor:
        tokens, mask = self.model(**kwargs).last_hidden_state, kwargs["attention_mask"]
        if self.pooling == "cls_token":
            rows = tokens[:, 0]
        elif self.pooling == "max_tokens":
            rows = tokens.masked_fill(~mask.bool()[:, :, None], -torch.inf).amax(dim=1)
        elif self.pooling == "lasttoken":
            last = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).argmax(dim=1)
            rows = tokens[torch.arange(len(tokens), device=tokens.device), last]
        else:
            rows = rows_of(tokens, mask)
        return nn.functional.normalize(rows, dim=1) if self.unit_length else rows


def _pooled(name: str, model: nn.Module, transformers: Any) -> nn.Module:
    """The encoder with what modules.json says beside it; the mean over tokens where there is no such file."""

    def read(file: str) -> Any:
        found = transformers.utils.cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        return None if found is None else json.loads(Path(found).read_text(encoding="utf-8"))

    modules = read("modules.json")
    if modules is None:
        return model
    kinds = {str(module["type"]).rsplit(".", 1)[-1]: str(module["path"]) for module in modules}
    asked = read(f"{kinds['Pooling']}/config.json") if "Pooling" in kinds else {}
    modes = [mode for mode in _POOLING if asked.get(f"pooling_mode_{mode}")] or ["mean_tokens"]
    unknown = sorted({*kinds} - {"Transformer", "Pooling", "Normalize"})
    if unknown or len(modes) > 1 or not {k for k, v in asked.items() if v is True} <= _known_pooling():
        raise ModelError(
            f"{HF}{name} has layers that cannot be read from its folder ({', '.join(unknown or modes)}): pass "
            "sentence_transformers.SentenceTransformer(...) itself as the encoder"
        )
    return _Pooled(model, modes[0], "Normalize" in kinds)


#: ways to make one row of tokens
_POOLING = ("cls_token", "max_tokens", "mean_tokens", "lasttoken")


def _known_pooling() -> set[str]:
    return {*(f"pooling_mode_{mode}" for mode in _POOLING), "include_prompt"}


def is_sentence_transformer(encoder: Any) -> bool:
    return isinstance(encoder, nn.Module) and all(callable(getattr(encoder, n, None)) for n in ("tokenize", "encode"))


class Sentences(nn.Module):
    """A SentenceTransformer: its `forward` takes one dict, and `tokenize` makes it from texts."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **kwargs: Any) -> Any:
        return self.model(kwargs)["sentence_embedding"]


class _Tower(nn.Module):
    def __init__(self, model: nn.Module, method: str) -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, **kwargs: Any) -> Any:
        return getattr(self.model, self.method)(**kwargs)


def encoder_digest(encoder: Any, name: str | None) -> str:
    """Which encoder this is: its parameters, or the code of a function, or the name that its owner gives it."""
    if name is not None:
        return name
    if isinstance(encoder, nn.Module):
        return model_digest(encoder)
    owner, code = getattr(encoder, "__self__", None), getattr(encoder, "__code__", None)
    about = [getattr(encoder, "__module__", ""), getattr(encoder, "__qualname__", type(encoder).__qualname__)]
    if isinstance(owner, nn.Module):
        about.append(model_digest(owner))
    if code is not None:
        about += [
            code.co_code.hex(),
            repr([c for c in code.co_consts if not hasattr(c, "co_code")]),
            repr(code.co_names),
        ]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()


def _batch(examples: list[Any]) -> Any:
    """Examples that are arrays or tensors as one tensor; others as the list that they are."""
    together = stacked(examples)
    return (
        torch.from_numpy(native(together))
        if isinstance(together, np.ndarray) and together.dtype.kind in "fiub"
        else together
    )


def _tensor(rows: Any) -> Tensor:
    try:
        return torch.as_tensor(rows, dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"the encoder gave {type(rows).__name__}, not numbers [n, D]: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
