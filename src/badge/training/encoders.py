"""Encoders of every kind as one module: what they give becomes one row [n, D] per example."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.arrays import native
from badge.core.importing import needs
from badge.errors import InputError, ModelError, in_short
from badge.models.answers import rows_of
from badge.models.digest import model_digest
from badge.models.one_pass import READER
from badge.models.pools import stacked

#: how a name of Hugging Face, or a folder in its format, is told from other text
HF = "hf:"


class Encoded(nn.Module):
    """An encoder and a linear layer on its rows: a classifier that has the encoder's rows as embeddings."""

    def __init__(self, encoder: nn.Module, head: nn.Module, tokenizer: Any = None) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head
        setattr(self, READER, tokenizer)  # `badge.predict` uses it where it is given none

    def get_base_model(self) -> nn.Module:
        """The module that names the inputs in its `forward`."""
        return self.encoder

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        scores: Tensor = self.head(rows_of(self.encoder(*args, **kwargs), kwargs.get("attention_mask")))
        return scores


class NoHead(nn.Module):
    """In place of a head: `badge.predict` keeps its input as the embedding."""

    def forward(self, rows: Tensor) -> Tensor:
        return rows.new_zeros(len(rows), 1)


class _Function(nn.Module):
    """A function of a batch. For examples that come one by one it runs in place of the tokenizer, which gives `embedded`."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Any = None, *, embedded: Tensor | None = None) -> Tensor:
        return _tensor(self.function(batch)) if embedded is None else embedded


def function_module(function: Callable[[Any], Any]) -> tuple[nn.Module, Callable[[list[Any]], dict[str, Tensor]]]:
    """A function `batch -> [n, D]` as a module, and in place of the tokenizer of a pool."""

    def embedded(examples: list[Any]) -> dict[str, Tensor]:
        batch = stacked(examples)
        numbers = isinstance(batch, np.ndarray) and batch.dtype.kind in "fiub"
        return {"embedded": _tensor(function(torch.from_numpy(native(batch)) if numbers else batch))}

    return _Function(function), embedded


def from_hf(name: str, texts: bool) -> tuple[nn.Module, Any]:
    """The encoder of a folder or a name of the hub, and its tokenizer or image processor."""
    with needs(f"the encoder {HF}{name}", "transformers", "hf"):
        import transformers
    try:
        model: nn.Module = transformers.AutoModel.from_pretrained(name)
        reader = (transformers.AutoTokenizer if texts else transformers.AutoImageProcessor).from_pretrained(name)
    except (OSError, ValueError) as error:
        what = "texts" if texts else "images"
        raise ModelError(f"{HF}{name} cannot be loaded as an encoder of {what}: {in_short(error)}") from error
    tower = "get_text_features" if texts else "get_image_features"
    if hasattr(model, tower):  # two towers, as in CLIP: take the one for texts or for images
        return _Tower(model, tower), reader
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
    """The encoder with the pooling that its modules.json asks for; without that file, the mean over tokens."""

    def read(file: str) -> Any:
        found = transformers.utils.cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        return None if found is None else json.loads(Path(found).read_text(encoding="utf-8"))

    modules = read("modules.json")
    if modules is None:
        return model
    kinds = {str(module["type"]).rsplit(".", 1)[-1]: str(module["path"]) for module in modules}
    asked = read(f"{kinds['Pooling']}/config.json") if "Pooling" in kinds else {}
    ways = ("cls_token", "max_tokens", "mean_tokens", "lasttoken")
    modes = [mode for mode in ways if asked.get(f"pooling_mode_{mode}")] or ["mean_tokens"]
    unknown = sorted({*kinds} - {"Transformer", "Pooling", "Normalize"})
    known = {*(f"pooling_mode_{mode}" for mode in ways), "include_prompt"}
    if unknown or len(modes) > 1 or not {k for k, v in asked.items() if v is True} <= known:
        what = f"{HF}{name} has layers that cannot be read from its folder ({', '.join(unknown or modes)})"
        way_out = "pass sentence_transformers.SentenceTransformer(...) itself as the encoder"
        raise ModelError(f"{what}: use another encoder", in_python=way_out)
    return _Pooled(model, modes[0], "Normalize" in kinds)


class _Tower(nn.Module):
    """One of several towers of a model, by the name of its method."""

    def __init__(self, model: Any, method: str = "") -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, **kwargs: Any) -> Any:
        return getattr(self.model, self.method)(**kwargs)


class Sentences(_Tower):
    """A SentenceTransformer: its `forward` takes one dict, and `tokenize` makes it from texts."""

    def forward(self, **kwargs: Any) -> Any:
        return self.model(kwargs)["sentence_embedding"]


def encoder_digest(encoder: Any, name: str | None) -> str:
    """What identifies an encoder: the caller's name for it, else a digest of its parameters or of a function's code."""
    if name is not None:
        return name
    if isinstance(encoder, nn.Module):
        return model_digest(encoder)
    owner, code = getattr(encoder, "__self__", None), getattr(encoder, "__code__", None)
    about = [getattr(encoder, "__module__", ""), getattr(encoder, "__qualname__", type(encoder).__qualname__)]
    if isinstance(owner, nn.Module):
        about.append(model_digest(owner))
    if code is not None:
        constants = [c for c in code.co_consts if not hasattr(c, "co_code")]
        about += [code.co_code.hex(), repr(constants), repr(code.co_names)]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()


def _tensor(rows: Any) -> Tensor:
    try:
        return torch.as_tensor(rows, dtype=torch.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"the encoder gave {type(rows).__name__}, not numbers [n, D]: {in_short(error)}") from error
