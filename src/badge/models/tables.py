"""Tables and columns of pandas and polars, told by what they have: neither library is imported here."""

from collections.abc import Set
from typing import Any

from badge.errors import InputError
from badge.models.inputs import LABEL_KEYS


def is_frame(pool: Any) -> bool:
    """Whether `pool` is a table or column of polars; a lazy one, or one of pyarrow, is an error that says what to do."""
    kind, library = type(pool).__name__, type(pool).__module__.split(".")[0]
    if library == "polars" and kind == "LazyFrame":
        raise InputError("a polars LazyFrame has no positions: pass pool.collect()")
    if library == "pyarrow":
        raise InputError(f"a pyarrow {kind}: pass pool.to_pandas()")
    return library == "polars" and kind in ("DataFrame", "Series")


def series(values: Any) -> Any:
    """A column of a table: an array where it holds numbers, else a list."""
    array = values.to_numpy()
    return array if array.dtype.kind in "fiub" else listed(values)


def listed(values: Any) -> list[Any]:
    found: list[Any] = values.to_list() if hasattr(values, "to_list") else values.tolist()
    return found


def without_label_columns(pool: Any, labels: Set[str] = LABEL_KEYS) -> Any:
    """A table of pandas or polars without the columns that are called `labels`; beside an x, y is a coordinate."""
    if not (hasattr(pool, "iloc") or is_frame(pool)) or not hasattr(pool, "columns"):
        return pool
    names = [name for name in pool.columns if name in labels and not (name == "y" and "x" in pool.columns)]
    if len(names) == len(pool.columns):
        raise InputError(f"the table has the columns {names}: none of them is an input")
    return pool.drop(columns=names) if hasattr(pool, "iloc") and names else pool.drop(names) if names else pool
