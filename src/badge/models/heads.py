"""Find the output layer of a network from one forward pass: the linear layer whose output is the logits.

Its input is the penultimate embedding. A model may end in a softmax: then the head is the layer whose output,
softmaxed, is what the model returns. A decoder may score every token and keep one: then the embedding is the head's
input at the token that was kept.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from badge.errors import ModelError

#: Calls on [N, T, width] inputs kept while searching: a head that scores tokens is among the last layers to run, and
#: keeping every layer's activations of a deep transformer would take gigabytes.
TOKEN_CALLS_KEPT = 8
#: A context that does nothing, made once and not for every batch.
NOTHING: AbstractContextManager[None] = nullcontext()


class Call(NamedTuple):
    """One call of one layer during a forward pass; `number` counts the calls of that layer."""

    name: str
    number: int
    input: Tensor
    output: Tensor


@dataclass(frozen=True)
class Head:
    """The output layer: which call of which module, and how the model's output follows from that layer's."""

    name: str
    module: nn.Module
    index: int
    link: str  # "logits" | "log-probabilities" | "probabilities" | "label probabilities" | "own probabilities"


def linear_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Modules by dotted name that are linear or wrap a linear one (LoRA, quantisation, weight norm)."""
    return {name: module for name, module in model.named_modules() if _is_linear(module)}


def _is_linear(module: nn.Module) -> bool:
    if isinstance(module, nn.Linear):
        return True
    base = getattr(module, "base_layer", None)  # adapters of peft
    if isinstance(base, nn.Module):
        return _is_linear(base)
    shape = (getattr(module, "out_features", None), getattr(module, "in_features", None))
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and all(isinstance(s, int) for s in shape) and tuple(weight.shape) == shape


class Recorder:
    """Forward hooks on some modules; `calls` are those of the forward pass since the last `clear`."""

    def __init__(self, modules: Mapping[str, nn.Module], searching: bool) -> None:
        self.modules = dict(modules)
        self.calls: list[Call] = []
        self.tokens: deque[Call] = deque(maxlen=TOKEN_CALLS_KEPT if searching else None)
        self.counts: dict[str, int] = {}
        self.room: Tensor | None = None  # where the first input goes, if it fits

    def clear(self, room: Tensor | None) -> None:
        self.calls.clear()
        self.tokens.clear()
        self.counts.clear()
        self.room = room

    def narrowed(self, name: str) -> Recorder:
        """A recorder of this module alone."""
        return Recorder({name: self.modules[name]}, searching=False)

    def watching(self) -> AbstractContextManager[None]:
        """Around each forward pass."""
        return NOTHING

    @contextmanager
    def attached(self) -> Iterator[Recorder]:
        handles = []
        try:
            for name, module in self.modules.items():
                handles.append(module.register_forward_hook(self._hook(name), with_kwargs=True))
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, name: str) -> Any:
        mine = threading.get_ident()

        def record(module: nn.Module, args: tuple[Any, ...], *more: Any) -> None:
            # The owner of the model may run it in another thread meanwhile, and see a hook that is half registered.
            if threading.get_ident() != mine:
                return
            kwargs, output = more
            x = args[0] if args else next(iter(kwargs.values()), None)
            index = self.counts.get(name, 0)
            self.counts[name] = index + 1
            if not isinstance(x, Tensor) or not isinstance(output, Tensor):
                return
            if x.ndim <= 2:  # copied, because what follows may change it in place; it is one small row per example
                self.calls.append(Call(name, index, self._copied(detached(x)), detached(output)))
            else:
                self.tokens.append(Call(name, index, detached(x), detached(output)))

        return record

    def _copied(self, x: Tensor) -> Tensor:
        room, self.room = self.room, None
        fits = room is not None and (room.shape, room.dtype, room.device) == (x.shape, x.dtype, x.device)
        return room.copy_(x) if room is not None and fits else x.clone()


def detached(x: Tensor) -> Tensor:
    """`x` without its graph. In a pass there is mostly none, and then nothing has to be done."""
    return x.detach() if x.requires_grad else x


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one row per example hold the same numbers."""
    if a.numel() != b.numel() or a.shape[0] != b.shape[0]:
        return False
    return bool(torch.equal(a.reshape(b.shape).to(b.dtype).nan_to_num(), b.nan_to_num()))


def kept_tokens(output: Tensor, logits: Tensor, mask: Tensor | None) -> Tensor | None:
    """The position per row of [N, T, C] token scores that the model kept as its logits [N, C]; None if it is not so.

    Where several tokens have the same scores, the last one that the attention mask shows is taken.
    """
    if output.ndim != 3 or output.shape[0] != logits.shape[0] or output.shape[2] != logits.shape[1]:
        return None
    hits = (output.to(logits.dtype).nan_to_num() == logits.nan_to_num()[:, None, :]).all(dim=-1)
    if not bool(hits.any(dim=1).all()):
        return None
    weight = hits.long()
    if mask is not None and mask.shape == hits.shape:
        weight = weight + (hits & mask.bool()).long()
    # the last position of largest weight: argmax of the reversed row
    return (hits.shape[1] - 1) - weight.flip(1).argmax(dim=1)


def link(call: Call, logits: Tensor) -> str | None:
    """How `logits`, what the model returned, follows from the output of a call; None if it does not."""
    if same(call.output, logits) or kept_tokens(call.output, logits, None) is not None:
        return "logits"
    if call.output.numel() != logits.numel() or call.output.shape[0] != logits.shape[0]:
        return None
    out, z = call.output.reshape(logits.shape).double(), logits.double()
    tolerance = 2e-3 if min(torch.finfo(call.output.dtype).bits, torch.finfo(logits.dtype).bits) < 32 else 1e-5
    if z.shape[1] == 1:
        forms = {"log-probabilities": nn.functional.logsigmoid(out), "probabilities": torch.sigmoid(out)}
    else:
        forms = {"log-probabilities": torch.log_softmax(out, dim=1), "probabilities": torch.softmax(out, dim=1)}
        forms["label probabilities"] = torch.sigmoid(out)  # one for each label: a multi-label classifier
    same_as = (name for name, form in forms.items() if torch.allclose(form, z, rtol=tolerance, atol=tolerance))
    return next(same_as, None)


def find_head(layers: Mapping[str, nn.Module], calls: list[Call], logits: Tensor) -> Head | None:
    """The layer whose output is the logits; None if there is none, an error if there are several."""
    links = [(call, link(call, logits)) for call in calls]
    for wanted in ("logits", "log-probabilities", "probabilities", "label probabilities"):
        found = [call for call, kind in links if kind == wanted]
        if not found:
            continue
        found = [c for c in found if c.output.data_ptr() == logits.data_ptr()] or found
        # a wrapper and the layer inside it: the inner one, which has the same input
        found = [c for c in found if not any(_inside(other.name, c.name) for other in found)]
        first = found[0]
        if any(c.input.shape != first.input.shape or not torch.equal(c.input, first.input) for c in found[1:]):
            several = _described({c.name: layers[c.name] for c in found})
            way_out = f"Pass head= with the one whose input is the embedding, e.g. head={first.name!r}"
            raise ModelError(f"several layers give the logits: {several}. {way_out}")
        return Head(first.name, layers[first.name], first.number, wanted)
    return None


def _inside(name: str, wrapper: str) -> bool:
    return name != wrapper and (wrapper == "" or name.startswith(wrapper + "."))


def named_head(model: nn.Module, head: str | nn.Module) -> tuple[str, nn.Module]:
    """The module that the user's `head=` means, and its dotted name."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if isinstance(head, str):
        name = head
        while name not in modules and name.split(".")[0] in ("module", "_orig_mod"):
            name = name.partition(".")[2]
        if name in modules:
            return name, modules[name]
        wrong = f"head={head!r} is not a module of the model"
    elif isinstance(head, nn.Module):
        for own_name, module in modules.items():
            if module is head or module is getattr(head, "_orig_mod", None):
                return own_name, module
        wrong = f"head= is a {type(head).__name__} that is not part of the model"
    else:
        raise ModelError(f"head= must be a module or its dotted name, not {type(head).__name__}")
    raise ModelError(f"{wrong}; linear layers: {_described(linear_layers(model))}")


def no_head(layers: Mapping[str, nn.Module], calls: list[Call], logits: Tensor) -> ModelError:
    """The error for a model without an output layer that can be told from its output."""
    idle = "" if calls or not layers else f" (not called: {', '.join(list(layers)[:8])})"
    said = f"no linear layer gives the logits of shape {tuple(logits.shape)}"
    way_out = "(a module or its dotted name) whose input is the embedding, or let the model return (logits, embedding)"
    found = f"{said}. Linear layers: {_described(layers) or 'none'}{idle}"
    return ModelError(f"{found}. Pass head= with the layer {way_out}")


def _described(layers: Mapping[str, nn.Module]) -> str:
    lines = []
    for name, module in list(layers.items())[-12:]:
        shape = f"{getattr(module, 'in_features', '?')} → {getattr(module, 'out_features', '?')}"
        lines.append(f"{name or '(the model itself)'} ({shape})")
    return ("… " if len(layers) > 12 else "") + ", ".join(lines)


def embedding_of(call: Call, logits: Tensor, mask: Tensor | None) -> Tensor:
    """The input [N, D] of the head's call, at the token that was kept where there are tokens."""
    x, n = call.input, logits.shape[0]
    if x.ndim == 2 and x.shape[0] == n:
        return x
    kept = kept_tokens(call.output, logits, mask) if x.ndim == 3 else None
    if kept is not None:
        return x[torch.arange(n, device=x.device), kept]
    if x.shape[0] == n and sum(size > 1 for size in x.shape[1:]) <= 1:  # [N, 1, D] or [N, D, 1, 1]
        return x.reshape(n, -1)
    found = f"the input of the head {call.name!r} has shape {tuple(x.shape)}: one row [N, D] per example is needed for"
    way_out = "Pass head= with a layer that runs after pooling, or let the model return (logits, embedding)"
    raise ModelError(f"{found} {n} examples. {way_out}")
