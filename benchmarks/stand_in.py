"""A device without its hardware: tensors that say "cuda:0", hold their numbers on the host, and keep a device's rules.

A `Held` tensor wraps a tensor of the host. Every operation on it comes through `__torch_dispatch__`, which

- refuses to mix `Held` tensors with tensors of the host, except tensors of one number, as CUDA does. It also refuses an
  index on the host, which CUDA would copy each time;
- counts what makes the host wait for a device: reads of numbers, copies to the host, and results whose size depends on
  numbers (`nonzero`, `unique`, `bincount`, boolean masks).

`.numpy()` is refused. Within `present()` there is such a device: `device="cuda:0"` works wherever torch takes a device. To
torch's C++ a `Held` tensor is one of the host. A build without CUDA has no guard and no autograd queue for "cuda:0", so the
name is in Python alone.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["DEVICE", "Held", "MixedDevices", "Traffic", "held", "present"]

DEVICE = torch.device("cuda:0")

aten = torch.ops.aten
#: Operations after which the host has waited: for a number, or for the size of the result.
WAITS = {
    "item", "_local_scalar_dense", "is_nonzero", "equal", "allclose", "nonzero", "nonzero_numpy", "argwhere", "masked_select",
    "_unique", "_unique2", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "bincount", "repeat_interleave",
    "linalg_eigh", "_linalg_eigh", "linalg_cholesky", "linalg_svd", "_linalg_svd", "linalg_inv", "linalg_solve",
}  # fmt: skip


class MixedDevices(RuntimeError):
    """Tensors of the device and of the host in one operation."""


class Traffic:
    """What went between host and device: `waits` by operation, `sent` tensors."""

    def __init__(self) -> None:
        self.waits: Counter[str] = Counter()
        self.sent = 0

    @property
    def total(self) -> int:
        """Synchronisations."""
        return self.waits.total()


#: of the block of `present` that runs
_traffic: list[Traffic] = [Traffic()]


class Held(Tensor):
    """A tensor of the device: `own` has its numbers."""

    own: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, inner: Tensor) -> Held:
        layout: dict[str, Any] = {
            "strides": inner.stride(),
            "storage_offset": inner.storage_offset(),
            "dtype": inner.dtype,
        }
        with torch.inference_mode(False):  # a view of a tensor from outside inference mode is one, too
            made: Held = Tensor._make_wrapper_subclass(cls, inner.shape, device=torch.device("cpu"), **layout)
        made.own = inner
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return DEVICE

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"Held({self.own})"

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        return read(self).numpy(force=True)

    def __array__(self, *args: Any) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        return read(self).tolist()

    def data_ptr(self) -> int:
        return self.own.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        kwargs = dict(kwargs or {})
        name = func.overloadpacket.__name__
        given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        copies = name in ("copy_", "_to_copy", "to")
        if not copies and any(not isinstance(x, Held) and x.ndim for x in given):
            raise MixedDevices(f"{func}: tensors on cuda:0 and on the host")
        masks = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1] if x is not None
        )
        if name in WAITS or masks:
            _traffic[-1].waits[f"{name} with a mask" if masks else name] += 1
        if name == "copy_" and not isinstance(args[0], Held):
            _traffic[-1].waits["copy to the host"] += 1
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        wrapped = {id(x.own): x for x in given if isinstance(x, Held)}
        plain = {id(x) for x in given if not isinstance(x, Held)}
        found = func(*tree_map(_bare, args), **tree_map(_bare, kwargs))

        def dressed(x: Any) -> Any:
            if not isinstance(x, Tensor) or id(x) in plain:
                return x
            mine = wrapped.get(id(x))
            if mine is None:
                return Held(x)
            if mine.shape != x.shape:  # squeeze_ and the like: the wrapper changes too
                with torch._C._DisableTorchDispatch():
                    func(*args, **kwargs)
            return mine

        return tree_map(dressed, found)


def _bare(x: Any) -> Any:
    return x.own if isinstance(x, Held) else x


def held(x: Tensor) -> Tensor:
    """A tensor sent to the device."""
    if isinstance(x, Held):
        return x
    _traffic[-1].sent += 1
    return Held(x.detach().clone()).requires_grad_(x.requires_grad)


def read(x: Tensor) -> Tensor:
    """A tensor copied to the host, which waits."""
    if not isinstance(x, Held):
        return x
    _traffic[-1].waits["copy to the host"] += 1
    return x.own.clone()


def _named(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


class _Present(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is Tensor.cpu:
            return read(args[0])
        if func is Tensor.cuda:
            return held(args[0])
        if func is Tensor.to:
            return self._moved(*args, **kwargs)
        if func is torch.as_tensor and isinstance(args[0], Held) and not kwargs.get("device"):
            return args[0]
        if func is Tensor.new_tensor and isinstance(args[0], Held):
            return held(args[0].own.new_tensor(*args[1:], **kwargs))
        if name in ("__getitem__", "__setitem__") and isinstance(args[0], Held):
            args = (args[0], _index(args[1]), *args[2:])
        if name == "quantile" and isinstance(args[0], Held):  # makes new tensors, in C++
            return Held(func(args[0].own, *args[1:], **kwargs))
        if _named(kwargs.get("device")):
            return held(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)

    def _moved(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if args and isinstance(args[0], Tensor):
            device, dtype = args[0].device, args[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
        if device is not None and _named(device) != isinstance(x, Held):
            x = held(x) if _named(device) else read(x)
        options = {k: v for k, v in kwargs.items() if k in ("copy", "memory_format")}
        return x if dtype is None and not options else x.to(x.dtype if dtype is None else dtype, **options)


def _index(x: Any) -> Any:
    """Lists and arrays as an index go to the device, as torch does it."""
    if isinstance(x, tuple):
        return tuple(_index(part) for part in x)
    return held(torch.as_tensor(x)) if isinstance(x, np.ndarray | list) else x


def _nothing(*_: Any) -> None:
    pass


@contextlib.contextmanager
def present() -> Iterator[Traffic]:
    """Within this block there is a device "cuda:0"; what it yields counts the traffic of the block."""
    traffic = Traffic()
    generator = torch.Generator()
    with contextlib.ExitStack() as stack:
        state: dict[str, Any] = {
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "device_count": lambda: 1,
            "device": lambda device: contextlib.nullcontext(),
            "get_rng_state": lambda device=None: generator.get_state(),
            "set_rng_state": lambda state, device=None: generator.set_state(state),
            "get_rng_state_all": lambda: [generator.get_state()],
            "set_rng_state_all": lambda states: generator.set_state(states[0]),
            "manual_seed": generator.manual_seed,
        }
        for name, function in state.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, function))
        # `Module.to` makes new parameters: a wrapper cannot stand in a plain one's place
        stack.enter_context(mock.patch("torch.__future__.get_overwrite_module_params_on_conversion", lambda: True))
        # a build for CUDA looks there for a stream, also without a driver
        stack.enter_context(
            mock.patch("torch.optim.Optimizer._accelerator_graph_capture_health_check", _nothing, create=True)
        )
        _traffic.append(traffic)
        stack.callback(_traffic.pop)
        stack.enter_context(_Present())
        yield traffic
