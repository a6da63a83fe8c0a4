"""Where to compute: a device that can be used, and threads where they pay: small steps on one, large products on all.

Threads that share hundreds of small steps wait for each other after each one. While another program kept a core busy, that
made a selection 10 to 50 times slower than on one thread.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from badge.core.importing import needs
from badge.errors import InputError, in_short

#: A product of at least this many multiply-adds runs on all threads: about 5 ms on one.
PAYS = 2**27

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_own = threading.local()


class one_thread:  # a generator would take longer than a small step
    """Run on one thread, except products inside `threads_for`."""

    def __enter__(self) -> None:
        self.before = torch.get_num_threads()
        if self.before > 1:
            _own.all = self.before
            torch.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        if self.before > 1:
            torch.set_num_threads(self.before)
            _own.all = 1


@contextmanager
def threads_for(products: int) -> Iterator[None]:
    """Inside `one_thread`: all threads for a step of this many multiply-adds, if they pay."""
    threads = getattr(_own, "all", 1)
    if threads == 1 or products < PAYS:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(1)


def in_threads(step: Callable[[Item], Answer], items: Sequence[Item], device: torch.device) -> list[Answer]:
    """The answers of `step` to many items, in order. On the CPU all threads share them; elsewhere one follows another."""
    count = max(torch.get_num_threads(), getattr(_own, "all", 1))
    if count == 1 or device.type != "cpu":
        return [step(item) for item in items]
    with one_thread(), ThreadPoolExecutor(count) as pool:
        return list(pool.map(torch.inference_mode()(step), items))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute on `count` threads, in torch and in the libraries below numpy. The last bits depend on this number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with _pools_of_threads().limit(limits=count):
            yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)  # looks through all loaded libraries, which takes a while
def _pools_of_threads() -> Any:
    with needs("running experiments", "threadpoolctl", "study"):
        from threadpoolctl import ThreadpoolController
    return ThreadpoolController()


def chosen(mask: Tensor) -> Tensor:
    """Positions at which a mask is true, for work that does no harm at the others.

    On a GPU these are all positions: to count the true ones, the host would wait longer than the extra work takes.
    """
    return mask.nonzero()[:, 0] if mask.device.type == "cpu" else torch.arange(len(mask), device=mask.device)


def usable_device(device: str | torch.device) -> torch.device:
    """The device of a name, if something can be put on it; "cuda" becomes "cuda:0".

    >>> usable_device("gpu")
    Traceback (most recent call last):
    badge.errors.InputError: device='gpu' cannot be used: ...
    """
    try:
        usable = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise InputError(f"device={str(device)!r} cannot be used: {in_short(error)}") from error
    if usable.type == "meta":
        raise InputError("device='meta' cannot be used: it holds no numbers, and a model there loses its weights")
    return usable
