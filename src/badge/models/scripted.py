"""Linear layers of scripted and traced networks: no hooks run in them, but every matrix product passes the dispatcher."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from badge.models.heads import Call, Recorder


class ScriptRecorder(Recorder):
    """The products of rows [n, D] with a weight matrix, by the name of the layer that owns the weight.

    A frozen module owns none: its products are named by their order.
    """

    def __init__(self, model: nn.Module, only: str | None = None) -> None:
        super().__init__({name: module for name, module in model.named_modules() if name}, searching=False)
        self.model, self.only = model, only
        weights = [(name, p) for name, p in model.named_parameters() if p.ndim == 2]
        self.owners = {weight.data_ptr(): name.rpartition(".")[0] or name for name, weight in weights}

    def narrowed(self, name: str) -> ScriptRecorder:
        return ScriptRecorder(self.model, name)

    @contextmanager
    def attached(self) -> Iterator[Recorder]:
        yield self

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.products = 0
        with _Products(self):
            yield

    def saw(self, x: Tensor, weight: Tensor, output: Tensor) -> None:
        """Record a product under the name of the module that owns the weight, else under the product's number."""
        name = self.owners.get(weight.data_ptr(), f"product {self.products}")
        self.products += 1
        self.modules.setdefault(name, self.model)
        index = self.counts.get(name, 0)
        self.counts[name] = index + 1
        if self.only in (None, name):
            self.calls.append(Call(name, index, x.detach().clone(), output.detach()))


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, recorder: ScriptRecorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default):
            *_, x, weight = args
            self.recorder.saw(x, weight, output)
        return output
