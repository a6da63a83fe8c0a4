"""Every kind of pool in one form: how many examples, some of them by position, in the pool's own kind, without labels.

`predict`, `select` and the learner all open a pool here, so that what one takes the others take too. What a network or
an estimator is then given is the business of `batches`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from torch.utils.data.sampler import BatchSampler, SequentialSampler

from badge.core.arrays import check_held
from badge.core.names import unmasked
from badge.errors import InputError
from badge.models.inputs import LABEL_KEYS, Forward, is_frame, listed, series, without_label, without_label_columns

Ids = np.ndarray[Any, np.dtype[np.int64]]
#: Which examples: a range, or positions.
Which = slice | Ids


@dataclass(frozen=True)
class OpenPool:
    """A pool that was opened: `part` gives some examples, `item` one, `take` some as a trainer takes them; without labels."""

    rows: int
    part: Callable[[Which], Any]
    item: Callable[[int], Any]
    take: Callable[[Ids], Any]
    loader: DataLoader[Any] | None = None  # makes its own batches
    ends: tuple[int, ...] = ()  # where a range has to end: batches are padded to different lengths


def length(pool: Any) -> int:
    """Number of examples of a pool of any kind.

    >>> length(["a", "b"]), length({"x": np.zeros((3, 2)), "label": [0, 1, 0]})
    (2, 3)
    """
    return open_pool(pool).rows


def take(pool: Any, ids: Ids) -> Any:
    """The examples `ids` in the pool's own kind, without the labels that they may carry: what a trainer is given.

    >>> take([("a", 0), ("b", 1), ("c", 0)], np.array([2, 0]))
    ['c', 'a']
    """
    return open_pool(pool).take(np.asarray(ids, dtype=np.int64))


def open_pool(pool: Any, forward: Forward | None = None, features: Set[str] = frozenset()) -> OpenPool:
    """A pool of any kind. Where the model is known, `forward` is how many inputs it needs and takes, and `features` are
    columns that it was fitted on; they are inputs even if they are called like labels."""
    opened = _open(pool, forward, LABEL_KEYS - features)
    if opened.rows == 0:
        raise InputError("the pool is empty: it has 0 examples")
    return opened


def _open(pool: Any, forward: Forward | None, labels: Set[str]) -> OpenPool:
    if isinstance(pool, DataLoader):
        check_loader(pool)
        return replace(_open(pool.dataset, None, labels), loader=pool)  # its own collate_fn may sort the parts out
    if isinstance(pool, Tensor | np.ndarray):
        return _array(pool, forward)
    if isinstance(pool, TensorDataset):
        return _tensors(pool.tensors, forward)
    if is_hf_dataset(pool):
        return _hf(pool)
    if isinstance(pool, Mapping):
        return _columns({key: pool[key] for key in pool if key not in labels})
    pool = without_label_columns(pool, labels)
    if is_frame(pool):
        row = pool.__getitem__ if not hasattr(pool, "row") else lambda i: list(pool.row(i))
        return _plain(len(pool), pool.__getitem__, row)
    if hasattr(pool, "tocsr"):
        csr = pool.tocsr()
        return _plain(csr.shape[0], lambda which: csr[which], lambda i: csr[[i]].toarray())
    if hasattr(pool, "iloc"):  # pandas
        rows = pool.iloc
        return _plain(len(pool), rows.__getitem__, lambda i: listed(rows[i]) if pool.ndim > 1 else rows[i])
    return _sequence(pool, forward)


def _plain(rows: int, part: Callable[[Which], Any], item: Callable[[int], Any]) -> OpenPool:
    """A pool whose ranges and positions come alike."""
    return OpenPool(rows, part, item, part)


def _array(pool: Any, forward: Forward | None) -> OpenPool:
    if pool.ndim == 0:
        raise InputError("the pool is a single number: an array with one row per example is needed")
    if isinstance(pool, np.ndarray):
        pool = unmasked(pool, "the pool's values")
        if pool.dtype.kind in "US":
            return _sequence(pool.tolist(), forward)
        if pool.dtype.kind == "O":
            return _sequence(list(pool), forward)
        if pool.dtype.kind not in "fiub":
            raise InputError(f"the pool is an array of dtype {pool.dtype}: numbers, texts or objects are needed")
    else:
        check_held(pool, "the pool's values")
    return _plain(len(pool), lambda which: _rows(pool, which), pool.__getitem__)


def _tensors(parts: tuple[Tensor, ...], forward: Forward | None) -> OpenPool:
    """A TensorDataset: its tensors but for the labels; one tensor, or a tuple of them."""
    for tensor in parts:
        check_held(tensor, "the pool's values")
    kept = without_label(tuple(part[:1] for part in parts), forward, batch=True)
    count = len(kept) if isinstance(kept, tuple) else 1

    def rows(which: Which | int) -> Any:
        found = tuple(_rows(tensor, which) for tensor in parts[:count])
        return found if count > 1 else found[0]

    return _plain(len(parts[0]), rows, rows)


def is_hf_dataset(pool: Any) -> bool:
    """Whether `pool` is a `datasets.Dataset`; a stream or a dict of splits is an error that says what to do."""
    library = sys.modules.get("datasets")
    if library is None:
        return False
    if isinstance(pool, library.IterableDataset | library.IterableDatasetDict):
        raise InputError("a streamed datasets.IterableDataset has no positions: load it with streaming=False")
    if isinstance(pool, library.DatasetDict):
        raise InputError(f"a DatasetDict with the splits {list(pool)}: pass one of them")
    return isinstance(pool, library.Dataset)


def _hf(pool: Any) -> OpenPool:
    """Rows with the dataset's own format and transform; a trainer is given a dataset."""

    def chosen(ids: Ids) -> Any:
        rows = pool.select(ids)
        if rows.format["type"] == "custom":  # a transform of the user's own, which may read the label's column
            return rows
        return rows.remove_columns([name for name in rows.column_names if name in LABEL_KEYS])

    def part(which: Which) -> Any:
        return without_label(pool[which if isinstance(which, slice) else which.tolist()])

    return OpenPool(len(pool), part, lambda i: without_label(pool[i]), chosen)


def _columns(columns: dict[str, Any]) -> OpenPool:
    """A dict of columns: tensors, arrays, lists, and columns of tables."""
    columns = {name: _column(values, name) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"columns of different lengths: {lengths}")
    if not columns:
        raise InputError("a dict without a column of inputs: nothing to give to a model")

    def rows(which: Which | int) -> Any:
        return {name: _rows(values, which) for name, values in columns.items()}

    return _plain(next(iter(lengths.values())), rows, rows)


def _column(values: Any, name: str) -> Any:
    values = unmasked(values, f"the values of column {name!r}")
    if isinstance(values, Tensor | np.ndarray) and values.ndim == 0:
        raise InputError(f"the column {name!r} is a single number: one entry per example is needed")
    if isinstance(values, Tensor):
        check_held(values, f"the values of column {name!r}")
    if isinstance(values, Tensor | np.ndarray | list | tuple):
        return values
    if hasattr(values, "iloc") or (is_frame(values) and hasattr(values, "dtype")):  # a pandas or polars Series
        return series(values)
    raise InputError(f"the column {name!r} is a {type(values).__name__}: a tensor, an array or a list is needed")


def _rows(values: Any, which: Which | int) -> Any:
    if not isinstance(which, np.ndarray) or isinstance(values, np.ndarray):
        return values[which]
    if isinstance(values, Tensor):
        return values[torch.from_numpy(which).to(values.device)]
    return [values[i] for i in which]


def _sequence(pool: Any, forward: Forward | None) -> OpenPool:
    """A map-style dataset or a list: of texts, of images, of dict batches, or of items."""
    if isinstance(pool, str | bytes):
        raise InputError("the pool is one text: a list of texts is needed")
    if isinstance(pool, IterableDataset) or not (hasattr(pool, "__len__") and hasattr(pool, "__getitem__")):
        way_out = "use a tensor, an array, a map-style Dataset, a DataLoader over one, a datasets.Dataset, or a list"
        raise InputError(f"a pool of type {type(pool).__name__} has no length or no positions: {way_out}")
    if isinstance(pool, list | tuple) and pool and is_dict_batch(pool[0]):
        return _dict_batches(pool)

    def item(i: int) -> Any:
        return without_label(pool[i], forward)

    def part(which: Which) -> list[Any]:
        return [item(i) for i in (range(which.start, which.stop) if isinstance(which, slice) else which.tolist())]

    return OpenPool(len(pool), part, item, lambda ids: stacked(part(ids)))


def stacked(items: list[Any]) -> Any:
    """Tensors of one shape as one tensor, arrays as one array, tuples of such as a tuple; else the items as they are."""
    first = items[0] if items else None
    if isinstance(first, tuple) and all(isinstance(item, tuple) and len(item) == len(first) for item in items):
        parts = tuple(stacked(list(part)) for part in zip(*items, strict=True))
        return parts if all(isinstance(part, Tensor | np.ndarray) for part in parts) else items
    items = [unmasked(item, "an example's values") for item in items]
    for kind, stack in ((Tensor, torch.stack), (np.ndarray, np.stack)):
        if isinstance(first, kind) and all(isinstance(item, kind) and item.shape == first.shape for item in items):
            return stack(items)
    return items


def is_dict_batch(value: Any) -> bool:
    """Whether a dict holds a whole tokenized batch rather than one example."""
    if not isinstance(value, Mapping):
        return False
    ids = value.get("input_ids")
    if ids is None:
        return bool(getattr(value.get("pixel_values"), "ndim", 0) == 4)
    if isinstance(ids, list):
        return bool(ids) and isinstance(ids[0], list)
    return bool(getattr(ids, "ndim", 0) == 2)


def _dict_batches(pool: Sequence[Mapping[str, Any]]) -> OpenPool:
    """Tokenized dict batches, one after another: position p is row p of their concatenation.

    A range may not reach over the end of a batch: batches are padded to different lengths.
    """
    batches = [_columns(without_label(batch)) for batch in pool]
    ends = np.cumsum([batch.rows for batch in batches])

    def at(position: int) -> tuple[OpenPool, int]:
        number = int(np.searchsorted(ends, position, side="right"))
        return batches[number], position - int(ends[number]) + batches[number].rows

    def item(i: int) -> Any:
        batch, row = at(i)
        return batch.item(row)

    def part(which: Which) -> Any:
        if not isinstance(which, slice):
            return [item(i) for i in which.tolist()]
        batch, row = at(which.start)
        return batch.part(slice(row, row + which.stop - which.start))

    return OpenPool(int(ends[-1]), part, item, part, ends=tuple(int(end) for end in ends))


def check_loader(loader: DataLoader[Any]) -> None:
    """Refuse a loader that does not go through its dataset once and in order."""
    if isinstance(loader.dataset, IterableDataset):
        raise InputError("a DataLoader of an IterableDataset: positions would mean nothing. Use a map-style Dataset")
    plain = type(loader.batch_sampler) is BatchSampler
    sampler = loader.batch_sampler.sampler if isinstance(loader.batch_sampler, BatchSampler) else loader.sampler
    if not plain or type(sampler) is not SequentialSampler:
        name = type(sampler if plain else loader.batch_sampler or sampler).__name__
        way_out = "Use DataLoader(..., shuffle=False) with a batch_size and no sampler"
        raise InputError(f"the DataLoader draws by {name}: positions would mean nothing. {way_out}")
    assert isinstance(loader.batch_sampler, BatchSampler)
    if loader.batch_sampler.drop_last:
        raise InputError("the DataLoader drops its last batch: it could never be picked. Use drop_last=False")
