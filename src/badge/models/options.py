"""The options of a pass over a pool: one table that every door with `**options` reads, checked once, when it is made."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, TypeVar

import torch
from torch import nn

from badge.core.numbers import flag, whole
from badge.core.threads import usable_device
from badge.errors import InputError
from badge.models.heads import named_head

#: Which part of the outputs is asked for; `badge.predict` says what each value means.
Embeddings = bool | Literal["only"] | None

#: Where a model runs: a device, several, or (None) where it is.
Devices = str | torch.device | Sequence[str | torch.device] | None

Door = TypeVar("Door", bound=Callable[..., Any])


class ClusterOptions(TypedDict, total=False):
    """Options of `badge.cluster.predict`: each worker chooses its own device."""

    batch_size: int
    head: str | nn.Module | None
    tokenizer: Any
    processor: Any
    max_length: int | None
    autocast: bool | torch.dtype | None
    multilabel: bool | None
    progress: bool


class PassOptions(ClusterOptions, total=False):
    """Options of `badge.predict` and `badge.select`."""

    device: Devices
    passes: int | None


#: What each option is for, as the doors' help says it.
ABOUT = {
    "batch_size": "examples per forward pass (a DataLoader keeps its own).",
    "device": "the device to run on; None: the model's own. A list: each device gets a copy of the model, and they take "
    "batches in turn. The outputs are gathered on the host.",
    "head": "the output layer, as a module or its dotted name, if badge cannot find it.",
    "tokenizer": "a tokenizer for texts. It also pads batches that were tokenized without padding.",
    "processor": "an image processor of transformers, or any function of a list of examples.",
    "max_length": "most tokens per text; None: the limit of the tokenizer, or of the model's positions.",
    "autocast": "True or a torch dtype: run in mixed precision. Outputs are float32 in any case.",
    "multilabel": "True: the model is multi-label. Each score is the logit of one label, and an example may have any number "
    "of labels. None: detect it from the model (its problem_type, a sigmoid at its end, an estimator fitted on several "
    "labels).",
    "progress": "show a progress bar on standard error.",
    "passes": "run the model this many times with its dropout layers on, for bald. The probabilities are the mean. A list of "
    "models in place of the model does the same for an ensemble.",
}
#: Options that do not change the outputs.
SAME_OUTPUTS = frozenset({"batch_size", "device", "progress"})


@dataclass(frozen=True)
class Options:
    """How a pass is made. `embeddings` is chosen by the door: `predict` takes it, `select` derives it from the strategy."""

    batch_size: int = 256
    device: Devices = None
    head: str | nn.Module | None = None
    tokenizer: Any = None
    processor: Any = None
    max_length: int | None = None
    autocast: bool | torch.dtype | None = None
    multilabel: bool | None = None
    progress: bool = False
    passes: int | None = None
    embeddings: Embeddings = None

    def __post_init__(self) -> None:
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        keep("batch_size", whole(self.batch_size, "batch_size"))
        keep("progress", flag(self.progress, "progress"))
        keep("multilabel", None if self.multilabel is None else flag(self.multilabel, "multilabel"))
        for name in ("max_length", "passes"):
            keep(name, None if getattr(self, name) is None else whole(getattr(self, name), name))
        keep("autocast", None if self.autocast is False else self.autocast)
        if not (self.autocast is None or self.autocast is True or isinstance(self.autocast, torch.dtype)):
            raise InputError(f"autocast must be True, a torch dtype or None, not {self.autocast!r:.60}")
        if not (self.embeddings is None or isinstance(self.embeddings, bool) or str(self.embeddings) == "only"):
            raise InputError(f"embeddings must be True, False, 'only' or None, not {self.embeddings!r:.60}")
        if isinstance(self.device, list | tuple):
            places = [usable_device(device) for device in self.device]
            if not places or len(set(places)) < len(places):
                raise InputError(f"device={list(map(str, self.device))}: a list names each of its devices once")
            keep("device", places[0] if len(places) == 1 else tuple(places))
        elif self.device is not None:
            usable_device(self.device)  # type: ignore[arg-type]
        if self.passes is not None and (self.passes < 2 or isinstance(self.device, tuple) or self.embeddings == "only"):
            raise InputError(f"passes={self.passes} must be at least 2, on one device and with probabilities")
        if self.tokenizer is not None and self.processor is not None:
            raise InputError("tokenizer= and processor= are one thing under two names: pass one of them")
        if self.reader is not None and not callable(self.reader):
            name = "processor" if self.tokenizer is None else "tokenizer"
            raise InputError(f"{name}= is called with a list of examples, and a {type(self.reader).__name__} cannot be")

    @classmethod
    def of(cls, door: str, known: type, given: Mapping[str, Any], embeddings: Embeddings = None) -> Options:
        """The options given to a function named `door`, which takes the names of the TypedDict `known`."""
        wrong = [name for name in given if name not in known.__optional_keys__]  # type: ignore[attr-defined]
        if wrong:
            raise TypeError(f"{door}() got an unexpected keyword argument {wrong[0]!r}")
        return cls(**given, embeddings=embeddings)

    @property
    def reader(self) -> Any:
        """The tokenizer or the processor."""
        return self.processor if self.tokenizer is None else self.tokenizer

    def named(self, model: nn.Module) -> Options:
        """With the dotted name of the head in place of the module: names survive pickling, and go into the identity."""
        return self if self.head is None else replace(self, head=named_head(model, self.head)[0])

    def identity(self) -> str:
        """The options that change the outputs, where they differ from the default.

        >>> Options(batch_size=8, multilabel=True).identity()
        'multilabel=True'
        """
        # embeddings=True makes no other output, an error at most
        wanted = replace(self, embeddings=None) if self.embeddings is True else self
        found = ((f.name, getattr(wanted, f.name)) for f in fields(self) if f.name not in SAME_OUTPUTS)
        return " ".join(f"{name}={_short(value)}" for name, value in found if value is not None)


def _short(value: Any) -> str:
    if isinstance(value, str | int | torch.dtype):
        return str(value)
    size = len(value) if hasattr(value, "__len__") else ""
    return f"{type(value).__name__}:{size}:{getattr(value, 'model_max_length', '')}"


def takes_options(known: type) -> Callable[[Door], Door]:
    """For a door with `**options`: the line `{options}` of its docstring becomes the list of them, and its signature
    names them, so that `help` and notebooks show every argument."""
    taken = [f for f in fields(Options) if f.name in known.__optional_keys__]  # type: ignore[attr-defined]

    def dressed(door: Door) -> Door:
        text = inspect.cleandoc(door.__doc__ or "")  # Python 3.13 has taken the indent away already
        lines = [textwrap.fill(f"    {f.name}: {ABOUT[f.name]}", width=120, subsequent_indent=" " * 8) for f in taken]
        door.__doc__ = text.replace("    {options}", "\n".join(lines))
        signature, named = inspect.signature(door), inspect.Parameter.KEYWORD_ONLY
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        own += [inspect.Parameter(f.name, named, default=f.default, annotation=f.type) for f in taken]
        door.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return door

    return dressed
