"""What workers are given: ranges of a pool, batches of a data set; and what is known of either before work starts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, Subset

from badge.cluster.names import TWICE, check_names, named_twice, stored_names
from badge.errors import InputError
from badge.models.digest import whole_digest
from badge.models.inputs import LABEL_KEYS
from badge.models.pools import is_hf_dataset, open_pool


@dataclass(frozen=True)
class Plan:
    """A pool or a `ray.data.Dataset`, looked at before work starts."""

    rows: int
    digest: str
    first: Any  #: a pool of its first one or two rows
    row_bytes: int  #: estimated bytes of one input
    dataset: Any = None
    pool: Any = None  #: a pool in memory: workers are sent ranges of it
    carried: Any = None  #: a pool that reads its rows from elsewhere: each worker gets all of it
    names: NDArray[Any] | None = None


@contextmanager
def quiet_in_order(dataset: Any) -> Iterator[None]:
    """The data set gives its rows in their order, and Ray Data says nothing but errors."""
    context, log = dataset.context, logging.getLogger("ray.data")
    options = context.execution_options
    before = options.preserve_order, context.enable_progress_bars, log.level
    options.preserve_order, context.enable_progress_bars = True, False
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        options.preserve_order, context.enable_progress_bars = before[:2]
        log.setLevel(before[2])


def plan(ray: Any, dataset: Any, id: str | None) -> Plan:
    """What is known of a pool or a data set before work starts."""
    library = sys.modules.get("ray.data")
    of_ray = library is not None and isinstance(dataset, library.Dataset)
    return plan_dataset(ray, dataset, id) if of_ray else plan_pool(dataset, id)


def plan_dataset(ray: Any, dataset: Any, id: str | None) -> Plan:
    """Read the names of all rows, so that a name that occurs twice is an error before anything is computed."""
    with quiet_in_order(dataset):
        try:
            first = dataset.take_batch(1)
        except ValueError as error:
            if isinstance(error, ray.exceptions.RayError):  # raised by the data set's own code
                raise
            raise InputError("the pool is empty: it has 0 examples") from None
    columns = list(first)
    if id is None:
        raise InputError(f"a ray.data.Dataset has no positions: name its rows by id=, one of its columns {columns}")
    if id not in columns:
        raise InputError(f"the data set has no column {id!r} to name its rows by; it has {columns}")
    if {id, *LABEL_KEYS}.issuperset(columns):
        raise InputError(f"the data set has no column for the model beside {id!r}: it has {columns}")
    with quiet_in_order(dataset):
        rows, names = check_names(ray, dataset.select_columns([id]).to_arrow_refs(), id)
    del first[id]
    size = sum(getattr(values, "nbytes", 64) for values in first.values())
    return Plan(rows, f"{rows}:{names}", inputs_of(first), size, dataset=dataset)


def inputs_of(batch: Mapping[str, NDArray[Any]]) -> Any:
    """The columns of a batch as a pool. A single column is its values, so that its name does not matter."""
    kept = {name: values for name, values in batch.items() if name not in LABEL_KEYS}
    columns = {name: values.tolist() if values.dtype.kind in "OUS" else values for name, values in kept.items()}
    return next(iter(columns.values())) if len(columns) == 1 else columns


def plan_pool(pool: Any, id: str | None) -> Plan:
    """A pool of `badge.predict`; what is in the memory of this process is sent range by range, the rest is carried."""
    if isinstance(pool, list | tuple) and pool and isinstance(pool[0], Mapping):
        raise InputError("a list of batches or dicts cannot be cut into parts: give a Dataset, or one dict of columns")
    names = None if id is None else stored_names(_column(pool, id), id)
    if names is not None and (twice := named_twice(names)) is not None:
        raise InputError(f"the column {id!r} names {twice!r} more than once: {TWICE}")
    pool = {k: v for k, v in pool.items() if k != id} if isinstance(pool, Mapping) else pool
    opened = open_pool(pool)
    about = {"rows": opened.rows, "digest": whole_digest(pool, opened), "first": piece(pool, 0, 1), "names": names}
    if isinstance(pool, DataLoader | Dataset | np.memmap) or is_hf_dataset(pool):
        return Plan(**about, row_bytes=0, carried=Mapped.of(pool) if isinstance(pool, np.memmap) else pool)
    return Plan(**about, row_bytes=_bytes_of(about["first"]), pool=pool)


def _column(pool: Any, id: str) -> Any:
    if not (isinstance(pool, Mapping) or is_hf_dataset(pool) or hasattr(pool, "iloc")):
        way_out = f"leave out id={id!r}, rows are named by position"
        raise InputError(f"a pool of type {type(pool).__name__} has no columns: {way_out}")
    try:
        return pool[id]
    except KeyError:
        raise InputError(f"the pool has no column {id!r} to name its rows by") from None


def _bytes_of(first: Any) -> int:
    if isinstance(first, Mapping):
        return sum(_bytes_of(values) for values in first.values())
    if hasattr(first, "element_size"):
        return int(first.numel() * first.element_size())
    return int(getattr(first, "nbytes", 0)) or sys.getsizeof(first[0] if isinstance(first, list) else first)


@dataclass(frozen=True)
class Mapped:
    """A memory-mapped array by its file: pickled itself, it would travel as a whole."""

    file: str
    dtype: Any
    shape: tuple[int, ...]
    offset: int
    order: Any

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> Mapped | NDArray[Any]:
        whole = array.base is not None and not isinstance(array.base, np.memmap)  # not a view of another one
        if array.filename is None or not whole:
            return np.asarray(array)
        order = "C" if array.flags.c_contiguous else "F"
        return cls(str(array.filename), array.dtype, array.shape, array.offset, order)


@dataclass(frozen=True)
class Light:
    """A tensor as an array: Ray copies an array once, and a tensor with all that it is a view of."""

    array: NDArray[Any]

    def __reduce__(self) -> tuple[Any, ...]:
        return _tensor, (self.array,)


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(array.copy())  # what comes from Ray's store cannot be written to


def light(rows: Any) -> Any:
    """A piece of a pool for another process, where it is the same again."""
    if isinstance(rows, Mapping):
        return {name: light(values) for name, values in rows.items()}
    if isinstance(rows, list | tuple):
        return type(rows)(light(row) for row in rows) if type(rows) in (list, tuple) else rows
    if not isinstance(rows, torch.Tensor):
        return rows
    plain = rows.device.type == "cpu" and rows.dtype != torch.bfloat16 and not rows.requires_grad
    return Light(rows.numpy()) if plain else rows.clone()


def piece(pool: Any, a: int, b: int) -> Any:
    """The rows a to b of a pool, as a pool."""
    if isinstance(pool, Mapped):
        pool = np.memmap(pool.file, pool.dtype, "r", pool.offset, pool.shape, pool.order)
    if isinstance(pool, DataLoader):
        rows = Subset(pool.dataset, range(a, b))
        return DataLoader(rows, batch_size=pool.batch_size, collate_fn=pool.collate_fn)
    if isinstance(pool, Mapping):
        return {name: piece(values, a, b) for name, values in pool.items()}
    if is_hf_dataset(pool):
        return pool.select(range(a, b))
    if isinstance(pool, Dataset):
        return Subset(pool, range(a, b))
    sliced = pool.iloc if hasattr(pool, "iloc") else pool.tocsr() if hasattr(pool, "tocsr") else pool
    return sliced[a:b]
