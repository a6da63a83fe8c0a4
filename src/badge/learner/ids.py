"""The ids of the examples of a pool: their positions, or ids from the caller."""

import hashlib
import operator
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import PurePath
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from badge.errors import InputError
from badge.journal.events import Id
from badge.learner.classes import short

IntArray = NDArray[np.int64]
#: ids that are whole numbers fit into int64 or uint64
BIG = 2**63


class Ids:
    """The ids of a pool of `length` examples: 0 … length − 1, or `own` ones (text or whole numbers, all different).

    `order` holds all positions in the order in which samplers see them. Own ids are sorted for that, so that the picks
    do not depend on the order of the pool.

    >>> ids = Ids(3, ["b.png", "a.png", "c.png"])
    >>> ids.plain(["c.png"]), ids.positions(["c.png", "b.png"]).tolist(), ids.order.tolist()
    (['c.png'], [2, 0], [1, 0, 2])
    """

    def __init__(self, length: int, own: Sequence[Id] | None = None) -> None:
        self.length = length
        self.own = given = None if own is None else list(own)
        numbers = [id for id in given or () if isinstance(id, int)]
        #: whether some ids are whole numbers
        self.numbers = given is None or bool(numbers)
        #: ids that a journal knows and the pool no longer has; taken only while that journal is replayed
        self.gone: set[Id] = set()
        self.replaying = False
        self._position = None if given is None else {id: position for position, id in enumerate(given)}
        fits = not numbers or max(numbers) < BIG
        self._whole = np.int64 if fits else np.uint64 if min(numbers) >= 0 else object
        ranked = range(length) if given is None else sorted(range(length), key=lambda position: _rank(given[position]))
        self.order: IntArray = np.fromiter(ranked, dtype=np.int64, count=length)

    def __contains__(self, id: Id) -> bool:
        return id in self._position if self._position is not None else isinstance(id, int) and 0 <= id < self.length

    def plain(self, ids: Any) -> list[Id]:
        """Ids as Python values, checked against the pool."""
        return [self._one(value) for value in as_list(ids, "ids")]

    def positions(self, ids: Iterable[Id]) -> IntArray:
        found: Iterable[Any] = ids if self._position is None else (self._position[id] for id in ids)
        try:
            return np.fromiter(found, dtype=np.int64)
        except KeyError as error:
            raise InputError(f"id {error} was withdrawn: its example is not in the pool") from None

    def at(self, positions: Iterable[int]) -> list[Id]:
        return [int(p) if self.own is None else self.own[int(p)] for p in positions]

    def keys(self, ids: Iterable[Id]) -> IntArray:
        """Whole numbers for these ids that stay the same when the pool grows or is reordered."""
        if self.own is None:
            return self.positions(ids)
        words = (hashlib.blake2b(repr(id).encode(), digest_size=8).digest() for id in ids)
        return np.fromiter((int.from_bytes(word, "big") >> 1 for word in words), dtype=np.int64)

    def array(self, ids: Iterable[Id]) -> NDArray[Any]:
        """Ids for a caller: whole numbers (int64, or uint64 where some id needs it), else text, else objects."""
        values = list(ids)
        kinds = {type(value) for value in values}
        if kinds <= {int} and (values or self.own is None):
            return np.array(values, dtype=self._whole)
        return np.array(values, dtype=np.str_ if kinds <= {str} else object)

    def means_number(self, number: int) -> bool:
        """Whether a whole number in a table is meant as one, and not as a text."""
        return self.own is None or number in self

    def meant(self, value: Id) -> Id:
        """The id that a value of another tool's file means: 7 and "7" are one if the pool has only one of them."""
        return next((id for id in (value, str(value), _number(value)) if id is not None and id in self), value)

    def sort(self, ids: Iterable[Id]) -> list[Id]:
        return sorted(ids, key=None if self.own is None else _rank)

    def _one(self, value: Any) -> Id:
        if self._position is not None:
            id = _plain(value)
            if id is None or (id not in self._position and not (self.replaying and id in self.gone)):
                raise InputError(f"id {value!r} is not one of the {self.length:,} ids of the pool")
            return id
        try:
            position = operator.index(value)
        except TypeError:
            raise InputError(f"ids are whole numbers, positions in the pool; got {value!r}") from None
        if isinstance(value, bool) or not 0 <= position < self.length:
            raise InputError(f"id {value!r} is outside the pool of {self.length:,} examples")
        return position


class AnyIds(Ids):
    """Ids of a pool that is not loaded. Any text or whole number may be one; `sample` holds some of them."""

    def __init__(self, sample: Sequence[Id]) -> None:
        super().__init__(0, [])
        self.numbers = any(isinstance(id, int) for id in sample)

    def __contains__(self, id: Id) -> bool:
        return True

    def means_number(self, number: int) -> bool:
        return self.numbers

    def meant(self, value: Id) -> Id:
        number = _number(value)
        return number if self.numbers and number is not None else str(value)

    def _one(self, value: Any) -> Id:
        id = _plain(value)
        if id is None:
            raise InputError(f"ids are text or whole numbers; got {value!r}")
        return id


def own_ids(pool: Any, ids: Any, length: int) -> tuple[Any, list[Id]]:
    """The pool and its ids: `ids` is a sequence of them, or names the column that holds them, which leaves the pool.

    >>> own_ids(["x", "y"], ["k1", "k2"], 2)
    (['x', 'y'], ['k1', 'k2'])
    """
    if isinstance(ids, str):
        pool, ids = _column(pool, ids)
    values = as_list(ids, "ids")
    found = [_plain(value) for value in values]
    if len(found) != length:
        raise InputError(f"{len(found):,} ids for a pool of {length:,} examples")
    if None in found:
        raise InputError(f"ids are text or whole numbers below 2**64; got {short(values[found.index(None)])}")
    if len(set(found)) < length:
        twice = Counter(found).most_common(1)[0][0]
        raise InputError(f"the id {twice!r} stands twice in the pool: ids must differ")
    return pool, [id for id in found if id is not None]


def _column(pool: Any, name: str) -> tuple[Any, Any]:
    """The table without the column of ids, which is not a feature, and that column."""
    columns = getattr(pool, "column_names", None) or getattr(pool, "columns", None)
    if columns is None or name not in list(columns):
        raise InputError(f"ids={name!r} names a column, and the pool ({type(pool).__name__}) has none of that name")
    column = pool[name]
    if hasattr(pool, "remove_columns"):  # a Hugging Face dataset
        return pool.remove_columns(name), column
    return (pool.drop(columns=name) if hasattr(pool, "iloc") else pool.drop(name)), column


def as_list(values: Any, what: str) -> list[Any]:
    """The values of a list, an array, a tensor or a column. A single value, such as one text, is refused."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = values.astype("M8[us]")  # else times in nanoseconds become whole numbers
    try:
        plain = values.tolist() if hasattr(values, "tolist") else values
    except RuntimeError as error:  # a tensor that is sparse, or holds no numbers
        raise InputError(f"{what} cannot be read: {error}") from None
    if isinstance(plain, str | bytes) or not isinstance(plain, Iterable):
        raise InputError(f"{what} are a list or an array, also where there is only one; got {values!r}")
    return list(plain)


def _plain(value: Any) -> Id | None:
    """An id as plain Python: times and UUIDs as text; None if it cannot be one."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str | UUID):
        return str(value)  # numpy's texts too
    whole = isinstance(value, int) and not isinstance(value, bool) and -BIG <= value < 2 * BIG
    return int(value) if whole else None


def _number(value: Id) -> int | None:
    """The whole number that a text spells; None for other texts, such as "007"."""
    return int(value) if re.fullmatch("0|-?[1-9][0-9]{0,19}", str(value)) else None


def _rank(id: Id) -> tuple[bool, Id]:
    return isinstance(id, str), id
