"""Batches of a pool in order of position, as a network or a scikit-learn estimator takes them."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate

from badge.core.arrays import native, on_host
from badge.core.names import unmasked
from badge.errors import InputError, in_short
from badge.models.encoding import Encoder, one_text_column
from badge.models.inputs import LABEL_KEYS, Forward, forward_names, is_frame, is_pair, series, without_label
from badge.models.pools import OpenPool, is_hf_dataset, stacked

#: The encoder of examples that are numbers already.
NUMBERS = Encoder()

#: (some examples, or a batch of a loader; the number of the first) -> what the model is given
Encode = Callable[[Any, int], Any]


def for_network(pool: OpenPool, model: nn.Module, encoder: Encoder, forward: Forward | None) -> Encode:
    """Batches as the arguments of a network's `forward`."""
    names, needs = forward_names(model), 1 if forward is None else forward[0]
    if pool.loader is not None:
        return lambda batch, start: _collated(batch, start, encoder, forward)
    return lambda part, start: network_inputs(part, encoder, start, needs, names)


def for_estimator(pool: OpenPool) -> Encode:
    """Batches as rows of an array, table, sparse matrix or list."""
    if pool.loader is not None:
        return lambda batch, _: as_table(without_label(batch, (1, 1), batch=True))
    return as_table


def in_order(pool: OpenPool, encode: Encode, size: int, start: int) -> Iterator[tuple[int, Any]]:
    """(rows, what the model is given) of batches of at most `size` examples, from row `start`."""
    if pool.loader is not None:
        yield from _of_loader(pool.loader, pool.rows, encode, start)
        return
    ends = pool.ends or (pool.rows,)
    while start < pool.rows:
        stop = min(start + size, ends[bisect_right(ends, start)])
        yield stop - start, encode(pool.part(slice(start, stop)), start)
        start = stop


def _of_loader(loader: DataLoader[Any], rows: int, encode: Encode, start: int) -> Iterator[tuple[int, Any]]:
    """The batches of a loader as it collates them; it was checked to go through its dataset once and in order."""
    size: int = loader.batch_sampler.batch_size  # type: ignore[union-attr]
    own = loader.generator  # where it has one, each pass draws a seed for its workers from it
    state = None if own is None else own.get_state()
    try:
        for number, batch in enumerate(loader):
            a, b = number * size, min((number + 1) * size, rows)
            if b > start:  # a < start: an interrupted pass with batches of another size
                first = max(a, start)
                yield b - first, encode(batch if a == first else _rows_from(batch, first - a), first)
    finally:
        if own is not None and state is not None:
            own.set_state(state)


def _rows_from(batch: Any, skip: int) -> Any:
    if isinstance(batch, Mapping):
        return {k: _rows_from(v, skip) for k, v in batch.items()}
    if isinstance(batch, tuple | list) and batch and isinstance(batch[0], Tensor | Mapping | tuple | list):
        return tuple(_rows_from(v, skip) for v in batch)
    return batch[skip:]


def _collated(batch: Any, start: int, encoder: Encoder, forward: Forward | None) -> Any:
    """A loader's batch: texts and images go through the encoder, unless collate_fn made a dict of them."""
    if isinstance(batch, Mapping):
        return batch
    inputs = without_label(batch, forward, batch=True)
    texts = isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str)
    if texts or (isinstance(inputs, Tensor) and encoder.reads_arrays):
        return encoder.examples(list(inputs), start)
    if isinstance(inputs, tuple) and all(isinstance(part, list | tuple) for part in inputs):  # pairs of texts
        return encoder.examples(list(zip(*inputs, strict=True)), start)
    return inputs


def network_inputs(
    part: Any, encoder: Encoder = NUMBERS, start: int = 0, needs: int = 1, names: Set[str] = frozenset()
) -> Any:
    """Some examples as a tensor, or a tuple or dict of tensors; `names` are those of forward's parameters.

    >>> network_inputs([(1.0, 2.0), (3.0, 4.0)]).shape, len(network_inputs([(1.0, 2.0), (3.0, 4.0)], needs=2))
    (torch.Size([2, 2]), 2)
    """
    if isinstance(part, Tensor) and not encoder.reads_arrays:
        return part
    part = _unwrapped(part, names)
    if isinstance(part, Mapping):
        return encoder.columns(part, start)
    if isinstance(part, Tensor | np.ndarray):
        if encoder.reads_arrays:
            return encoder.examples(list(part), start)
        return torch.from_numpy(native(np.array(part)))
    if isinstance(part, tuple):  # the tensors of a TensorDataset
        return part
    first = next((item for item in part if item is not None), None)
    if isinstance(first, Mapping):
        return encoder.columns(_as_columns(part, list(first), start), start)
    numbers = isinstance(first, Tensor | np.ndarray | tuple | int | float | np.number) and not is_pair(first)
    if isinstance(first, str) or is_pair(first) or encoder.reads_arrays or (encoder.call is not None and not numbers):
        return encoder.examples(part, start)
    return _collate(part, start, needs)


def _unwrapped(part: Any, names: Set[str]) -> Any:
    """Rows of a table, a dataset or a sparse matrix as an array, a list or a dict of columns."""
    if is_hf_dataset(part):
        return part[:]
    if hasattr(part, "toarray"):
        return part.toarray()
    if not hasattr(part, "iloc") and not is_frame(part):
        return part
    if not hasattr(part, "columns"):
        return series(part)
    columns = {str(name): series(part[name]) for name in part.columns}
    if set(columns) <= names or not all(isinstance(values, np.ndarray) for values in columns.values()):
        return columns
    return np.stack(list(columns.values()), axis=1)


def _as_columns(items: list[Any], keys: list[str], start: int) -> dict[str, list[Any]]:
    for i, item in enumerate(items):
        if not isinstance(item, Mapping) or set(item) != set(keys):
            found = list(item) if isinstance(item, Mapping) else repr(item)
            raise InputError(f"row {start + i} of the pool is {found} where a dict with the keys {keys} is needed")
    return {key: [item[key] for item in items] for key in keys}


def _collate(items: list[Any], start: int, needs: int) -> Any:
    for i, item in enumerate(items):
        if item is None:
            raise InputError(f"row {start + i} of the pool is None: drop it from the pool")
        for part in item if isinstance(item, tuple | list) else (item,):
            unmasked(part, f"values of row {start + i} of the pool")
    try:
        first = items[0]
        row = isinstance(first, tuple) and all(isinstance(x, bool | int | float | np.number) for x in first)
        if isinstance(first, list) or (needs == 1 and row):
            return torch.as_tensor(native(np.asarray(items)))
        batch = default_collate([native(item) if isinstance(item, np.ndarray) else item for item in items])
        return tuple(batch) if isinstance(first, tuple) else batch
    except (TypeError, ValueError, RuntimeError) as error:
        what = f"items of type {type(first).__name__} cannot be put in one batch ({in_short(error)})"
        raise InputError(f"{what}: return tensors of one shape, or pass processor= (a function of a list)") from error


def as_table(part: Any, start: int = 0) -> Any:
    """Examples as a scikit-learn estimator takes them: tables and sparse matrices as they are, tensors as arrays.

    >>> as_table([torch.zeros(2), torch.ones(2)]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    if is_hf_dataset(part):
        part = part[:]
    if isinstance(part, Mapping):
        columns = {k: v for k, v in part.items() if k not in LABEL_KEYS}
        texts = [k for k, v in columns.items() if isinstance(v, list) and isinstance(v[0], str)]
        if len(columns) > 1 and not texts:
            raise InputError(f"a dict of the columns {list(columns)} for an estimator: pass pandas.DataFrame(pool)")
        part = columns[one_text_column(texts) if texts else next(iter(columns))]
    column = series(part) if hasattr(part, "to_numpy") and not hasattr(part, "columns") else part
    if isinstance(column, list) and any(isinstance(x, str) for x in column):
        wrong = next((i for i, x in enumerate(column) if not isinstance(x, str)), None)
        if wrong is not None:
            raise InputError(f"row {start + wrong} of the pool is {column[wrong]!r:.60} where a text is needed")
    part = stacked(part) if isinstance(part, list) else part
    if isinstance(column, Tensor) and column.ndim == 1:
        column = on_host(column)
    elif isinstance(column, list) and column and all(isinstance(x, bool | int | float | np.number) for x in column):
        column = np.asarray(column)
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "fiub":
        return column[:, None]  # each number is an example of one column
    if isinstance(part, tuple) or (isinstance(part, list) and is_pair(part[0])):
        raise InputError("the pool's items are pairs: a scikit-learn estimator takes one input per example")
    return on_host(part) if isinstance(part, Tensor) else part
