"""A network borrowed for a pass: in eval mode, on the device asked for, by one thread; given back as it was."""

import os
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.threads import usable_device
from badge.errors import InputError


@contextmanager
def borrowed(model: nn.Module, device: str | torch.device | None) -> Iterator[torch.device]:
    """The model in eval mode on `device` (None: where it is), for this thread alone; yields the device."""
    eval_mode = in_mode(model.modules(), training=False)
    # Whoever compiles has loaded torch._dynamo, which takes a second: without it there is nothing to switch off.
    eager = _eager() if "torch._dynamo" in sys.modules else nullcontext()
    with alone_with(model), on_device(model, device) as place, random_state_kept(), eval_mode, eager:
        yield place


#: Modules and tensors that a pass works on, by their number, and the thread that makes the pass.
_in_use: dict[int, int] = {}
_change = threading.Condition()


@contextmanager
def alone_with(model: nn.Module) -> Iterator[None]:
    """Wait until no other thread's pass uses a module, parameter or buffer of this model; then keep others waiting.

    Hooks, modes and devices belong to modules: two passes at once would read each other's. Passes over models that share
    nothing run side by side. A pass within a pass of the same thread does not wait.
    """
    held = [*model.modules(), *model.parameters(), *model.buffers()]  # alive until the end, so that numbers stay theirs
    parts, me = {id(part) for part in held}, threading.get_ident()
    with _change:
        _change.wait_for(lambda: all(_in_use.get(part, me) == me for part in parts))
        taken = parts - _in_use.keys()
        _in_use.update(dict.fromkeys(taken, me))
    try:
        yield
    finally:
        with _change:
            for part in taken:
                del _in_use[part]
            _change.notify_all()


def _after_fork() -> None:
    """In a child process no other thread lives on: what they had in use is free."""
    global _change
    _change = threading.Condition()
    me = threading.get_ident()
    for part in [part for part, thread in _in_use.items() if thread != me]:
        del _in_use[part]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class _Shared:
    """A state of the whole process that several threads keep at once: the first saves it, the last restores it."""

    def __init__(self, enter: Callable[[], AbstractContextManager[Any]]) -> None:
        self.enter, self.users, self.lock = enter, 0, threading.Lock()

    @contextmanager
    def kept(self) -> Iterator[None]:
        with self.lock:
            if self.users == 0:
                self.state = self.enter()
                self.state.__enter__()
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    self.state.__exit__(None, None, None)


@contextmanager
def _random_state() -> Iterator[None]:
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        if mps is not None:
            torch.mps.set_rng_state(mps)


#: Puts back the global random state of Python, numpy and torch (CPU, CUDA, MPS) at its end.
random_state_kept = _Shared(_random_state).kept
#: Parts of a model that were compiled on their own run as written, so that hooks fire (torch 2.6 on).
_eager = _Shared(lambda: getattr(torch.compiler, "set_stance", nullcontext)("force_eager")).kept


@contextmanager
def in_mode(modules: Iterable[nn.Module], training: bool) -> Iterator[None]:
    """These modules in train or eval mode, then each back in its own mode.

    The flags are set one by one: `train()` may be overridden to do more, and would lose modes that differ below it.
    """
    modes = [(module, module.training) for module in modules if hasattr(module, "training")]  # a frozen one not
    try:
        for module, mode in modes:
            if mode != training:  # a module takes its time to set an attribute
                module.training = training
        yield
    finally:
        for module, mode in modes:
            if module.training != mode:
                module.training = mode


@contextmanager
def on_device(model: nn.Module, device: str | torch.device | None) -> Iterator[torch.device]:
    """The model on `device` (None: where it is); afterwards it has its own tensors again, also after an error."""
    places = {tensor.device for tensor in [*model.parameters(), *model.buffers()]}
    home = next(iter(model.parameters()), next(iter(model.buffers()), torch.empty(0))).device
    wanted = home if device is None else usable_device(device)
    if wanted == home and (device is None or len(places) <= 1):
        yield home
        return
    if len(places) > 1:
        raise InputError(f"the model is spread over {sorted(map(str, places))}: leave out device={str(device)!r}")
    groups = [tensors for m in model.modules() for tensors in (m._parameters, m._buffers)]
    own = [_Held(tensors, key, t) for tensors in groups for key, t in tensors.items() if t is not None]
    try:
        model.to(wanted)
        yield wanted
    finally:
        for held in own:
            held.restore()


class _Held:
    """One parameter or buffer of a module, and its numbers: `Module.to` replaces either."""

    def __init__(self, tensors: Any, key: str, tensor: Tensor) -> None:
        self.tensors, self.key, self.tensor, self.data = tensors, key, tensor, tensor.data
        self.grad = tensor.grad if tensor.is_leaf else None
        self.grad_data = None if self.grad is None else self.grad.data

    def restore(self) -> None:
        if self.tensors[self.key] is not self.tensor:
            self.tensors[self.key] = self.tensor
        if self.tensor.data_ptr() != self.data.data_ptr() or self.tensor.device != self.data.device:
            self.tensor.data = self.data
        if self.grad is not None and self.grad_data is not None:
            self.grad.data = self.grad_data
            self.tensor.grad = self.grad
