"""Pools of every kind as batches in order of position: tensors, arrays, datasets, loaders, texts, tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate
from torch.utils.data.sampler import BatchSampler, SequentialSampler

from badge.errors import InputError
from badge.models import text
from badge.models.inputs import positional, without_label

__all__ = ["Pool", "open_pool", "open_table", "pool_size"]


@dataclass(frozen=True)
class Pool:
    """`batches(start)` yields (rows, inputs) in order from row `start`; `items(positions)` gives single inputs."""

    rows: int
    batches: Callable[[int], Iterator[tuple[int, Any]]]
    items: Callable[[Sequence[int]], list[Any]]


def pool_size(pool: Any) -> int | None:
    """Number of examples where it is known without opening the pool."""
    if isinstance(pool, DataLoader):
        pool = pool.dataset
    if isinstance(pool, list | tuple) and pool and text.is_dict_batch(pool[0]):
        return None
    if isinstance(pool, Mapping):
        pool = next(iter(pool.values()), ())
    shape = getattr(pool, "shape", None)
    if shape is not None and len(shape) > 0:
        return int(shape[0])
    try:
        return len(pool)
    except TypeError:
        return None


def open_pool(pool: Any, model: nn.Module, batch_size: int, tokenizer: Any) -> Pool:
    """Batches of a pool for a network."""
    needs, takes = positional(model)

    def of(slice_of: Callable[[int, int], Any], rows: int, item: Callable[[int], Any]) -> Pool:
        return _pool(rows, batch_size, slice_of, lambda positions: [item(i) for i in positions])

    if isinstance(pool, DataLoader):
        return _loader(pool, needs, takes)
    if isinstance(pool, Tensor):
        _at_least_one_dimension(pool)
        return of(lambda a, b: pool[a:b], len(pool), lambda i: pool[i])
    if isinstance(pool, np.ndarray) and pool.dtype.kind not in "USO":
        _at_least_one_dimension(pool)
        return of(lambda a, b: _tensor(pool[a:b]), len(pool), lambda i: pool[i])
    if isinstance(pool, TensorDataset):
        parts = pool.tensors

        def rows_of(a: int, b: int) -> Any:
            return without_label(tuple(part[a:b] for part in parts), needs, takes)

        return of(rows_of, len(parts[0]), lambda i: rows_of(i, i + 1))
    is_table = text.is_hf_dataset(pool)  # first, since a dict of splits is also a Mapping, and is refused there
    if isinstance(pool, Mapping):
        columns = {k: _column(v, k) for k, v in without_label(pool, needs, takes).items()}
        if len({len(v) for v in columns.values()}) != 1:
            raise InputError(f"columns of different lengths: { {k: len(v) for k, v in columns.items()} }")

        def sliced(a: int, b: int) -> Any:
            return text.collate_columns({k: v[a:b] for k, v in columns.items()}, tokenizer)

        return of(sliced, len(next(iter(columns.values()))), lambda i: {k: v[i] for k, v in columns.items()})
    if is_table:
        return of(lambda a, b: text.hf_rows(pool, a, b, tokenizer), len(pool), lambda i: text.hf_item(pool, i))
    return _sequence(_sized(pool), batch_size, tokenizer, needs, takes)


def _pool(
    rows: int, batch_size: int, slice_of: Callable[[int, int], Any], items: Callable[[Sequence[int]], list[Any]]
) -> Pool:
    def batches(start: int) -> Iterator[tuple[int, Any]]:
        for a in range(start, rows, batch_size):
            b = min(a + batch_size, rows)
            yield b - a, slice_of(a, b)

    return Pool(rows, batches, items)


def _at_least_one_dimension(pool: Any) -> None:
    if pool.ndim == 0:
        raise InputError("the pool is a single number: an array with one row per example is needed")


def _sized(pool: Any) -> Any:
    """`pool`, if it has a length and positions."""
    if hasattr(pool, "iloc"):  # a pandas Series or DataFrame
        return pool.tolist() if pool.ndim == 1 else pool.to_numpy()
    if isinstance(pool, IterableDataset) or not (hasattr(pool, "__len__") and hasattr(pool, "__getitem__")):
        raise InputError(
            f"a pool of type {type(pool).__name__} has no length or no positions: use a tensor, an array, a map-style "
            "Dataset, a DataLoader over one, a datasets.Dataset, or a list"
        )
    return pool


def _sequence(pool: Any, batch_size: int, tokenizer: Any, needs: int, takes: int) -> Pool:
    """A map-style dataset or a list: of texts, of images for a processor, of dict batches, or of items."""
    if isinstance(pool, np.ndarray):
        return _sequence(pool.tolist() if pool.dtype.kind in "US" else list(pool), batch_size, tokenizer, needs, takes)
    rows = len(pool)

    def item(i: int) -> Any:
        return without_label(pool[i], needs, takes)

    def items(positions: Sequence[int]) -> list[Any]:
        return [item(i) for i in positions]

    if rows == 0:
        return Pool(0, lambda start: iter(()), items)
    first = item(0)
    if isinstance(pool, list | tuple) and text.is_dict_batch(first):
        return _list_of_batches(pool, needs, takes)
    if isinstance(first, str) or (tokenizer is not None and not isinstance(first, Mapping | Tensor | np.ndarray)):

        def slice_of(a: int, b: int) -> Any:
            return text.tokenize([item(i) for i in range(a, b)], tokenizer)

    elif isinstance(first, Mapping):

        def slice_of(a: int, b: int) -> Any:
            rows_of = [item(i) for i in range(a, b)]
            return text.collate_columns({k: [row[k] for row in rows_of] for k in rows_of[0]}, tokenizer)

    else:

        def slice_of(a: int, b: int) -> Any:
            return _collate([item(i) for i in range(a, b)])

    return _pool(rows, batch_size, slice_of, items)


def _collate(items: list[Any]) -> Any:
    try:
        if isinstance(items[0], list):
            return torch.as_tensor(np.asarray(items))
        return default_collate(items)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"items of type {type(items[0]).__name__} cannot be put in one batch ({error}). Let the dataset return "
            "tensors of one shape, or pass a DataLoader with its own collate_fn"
        ) from error


def _list_of_batches(pool: Sequence[Any], needs: int, takes: int) -> Pool:
    """Tokenized dict batches, one after another: position p is row p of their concatenation."""
    sizes = [len(next(iter(batch.values()))) for batch in pool]
    ends = np.cumsum(sizes)

    def batches(start: int) -> Iterator[tuple[int, Any]]:
        for batch, size, end in zip(pool, sizes, ends, strict=True):
            if end <= start:
                continue
            inside = without_label(batch, needs, takes)
            skip = max(0, start - (int(end) - size))
            yield size - skip, {k: _tensor(v)[skip:] for k, v in inside.items()}

    def items(positions: Sequence[int]) -> list[Any]:
        found = []
        for position in positions:
            at = int(np.searchsorted(ends, position, side="right"))
            row = position - (int(ends[at]) - sizes[at])
            found.append({k: v[row] for k, v in without_label(pool[at], needs, takes).items()})
        return found

    return Pool(int(ends[-1]), batches, items)


def _loader(loader: DataLoader[Any], needs: int, takes: int) -> Pool:
    """The batches of a loader as it collates them, if it goes through its dataset once and in order."""
    if isinstance(loader.dataset, IterableDataset):
        raise InputError(
            "the DataLoader reads an IterableDataset: positions would mean nothing. Use a map-style Dataset"
        )
    plain = type(loader.batch_sampler) is BatchSampler
    sampler = loader.batch_sampler.sampler if isinstance(loader.batch_sampler, BatchSampler) else loader.sampler
    if not plain or type(sampler) is not SequentialSampler:
        name = type(sampler if plain else loader.batch_sampler or sampler).__name__
        raise InputError(
            f"the DataLoader draws by {name}: positions would mean nothing. Use DataLoader(..., shuffle=False) with a "
            "batch_size and no sampler"
        )
    assert isinstance(loader.batch_sampler, BatchSampler)
    size = loader.batch_sampler.batch_size
    if loader.batch_sampler.drop_last:
        raise InputError(
            "the DataLoader drops its last batch: those examples could never be picked. Use drop_last=False"
        )
    rows = len(sampler)

    def batches(start: int) -> Iterator[tuple[int, Any]]:
        with _generator_kept(loader):
            for number, batch in enumerate(loader):
                a, b = number * size, min((number + 1) * size, rows)
                if a >= start:
                    yield b - a, batch
                elif b > start:  # an interrupted pass with batches of another size
                    yield b - start, _rows_from(batch, start - a)

    def items(positions: Sequence[int]) -> list[Any]:
        dataset: Dataset[Any] = loader.dataset
        return [without_label(dataset[i], needs, takes) for i in positions]

    return Pool(rows, batches, items)


@contextmanager
def _generator_kept(loader: DataLoader[Any]) -> Iterator[None]:
    """Each pass over a loader draws a seed for its workers from the loader's generator, if it has its own."""
    state = None if loader.generator is None else loader.generator.get_state()
    try:
        yield
    finally:
        if loader.generator is not None and state is not None:
            loader.generator.set_state(state)


def _rows_from(batch: Any, skip: int) -> Any:
    if isinstance(batch, Mapping):
        return {k: _rows_from(v, skip) for k, v in batch.items()}
    if isinstance(batch, tuple | list) and batch and isinstance(batch[0], Tensor | Mapping | tuple | list):
        return tuple(_rows_from(v, skip) for v in batch)
    return batch[skip:]


def _tensor(array: Any) -> Tensor:
    """A tensor of a small part of an array; copied, since a memory-mapped part may be read-only."""
    return array if isinstance(array, Tensor) else torch.from_numpy(np.array(array))


def _column(values: Any, name: str) -> Any:
    if isinstance(values, Tensor | np.ndarray | list | tuple):
        return values
    raise InputError(f"the column {name!r} is a {type(values).__name__}: a tensor, an array or a list is needed")


def open_table(pool: Any, batch_size: int) -> Pool:
    """Batches of a pool for a scikit-learn estimator: rows of an array, table, sparse matrix or list as they are."""
    if isinstance(pool, DataLoader | TensorDataset) or (isinstance(pool, Dataset) and not text.is_hf_dataset(pool)):
        inner = open_pool(pool, nn.Identity(), batch_size, None)

        def batches(start: int) -> Iterator[tuple[int, Any]]:
            for rows, batch in inner.batches(start):
                batch = without_label(batch, 1, 1)
                yield rows, batch.numpy(force=True) if isinstance(batch, Tensor) else batch

        return Pool(inner.rows, batches, inner.items)
    if text.is_hf_dataset(pool):
        pool = pool[text.text_column(pool)]
    if isinstance(pool, Tensor):
        pool = pool.numpy(force=True)
    if hasattr(pool, "iloc"):
        return _pool(len(pool), batch_size, lambda a, b: pool.iloc[a:b], lambda ps: [pool.iloc[i] for i in ps])
    if hasattr(pool, "tocsr"):
        csr = pool.tocsr()
        return _pool(csr.shape[0], batch_size, lambda a, b: csr[a:b], lambda ps: [csr[i].toarray() for i in ps])
    pool = _sized(pool)
    return _pool(len(pool), batch_size, lambda a, b: pool[a:b], lambda ps: [pool[i] for i in ps])
