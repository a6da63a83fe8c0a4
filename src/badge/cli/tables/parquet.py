"""Tables in parquet: columns of numbers, or one column of lists of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from badge.cli.tables.columns import Array, Column
from badge.errors import InputError, MissingExtraError

__all__ = ["Parquet"]


class Parquet:
    """A parquet file: its columns, known from its schema, and their content when it is asked for."""

    def __init__(self, file: Path) -> None:
        try:
            from pyarrow import parquet
        except ImportError:
            raise MissingExtraError("reading parquet", "pyarrow", "parquet") from None
        self.file, self._parquet = file, parquet.ParquetFile(file)
        schema = self._parquet.schema_arrow
        if self._parquet.metadata.num_rows == 0:
            raise InputError(f"{file} has no rows")
        self.columns = [Column(field.name, _kind(field.type)) for field in schema]

    def values(self, positions: Sequence[int]) -> Array:
        """Columns as numbers [N, …]; a column of lists is as many columns as its lists are long."""
        names = [self.columns[i].name for i in positions]
        table = self._parquet.read(columns=names)
        parts = [self._numbers(name, table[name].combine_chunks()) for name in names]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def strings(self, position: int) -> list[str]:
        name = self.columns[position].name
        return [str(value).strip() for value in self._parquet.read(columns=[name])[name].to_pylist()]

    def _numbers(self, name: str, array: Any) -> Array:
        import pyarrow as pa

        array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
        self._refuse_nulls(name, array)
        if not _is_list(array.type):
            return _plain(array)[:, None]
        rows, inner = len(array), array.flatten()
        if not _even(array, len(inner) // rows):
            raise InputError(f"{self.file}: the lists of column {name!r} differ in length")
        self._refuse_nulls(name, inner, len(inner) // rows)
        return _plain(inner).reshape(rows, -1)

    def _refuse_nulls(self, name: str, array: Any, width: int = 1) -> None:
        if array.null_count:
            row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0]) // max(width, 1)
            raise InputError(f"{self.file}: column {name!r} has no value in row {row} (counted from 0)")


def _even(array: Any, width: int) -> bool:
    from pyarrow import compute

    return bool(compute.all(compute.equal(compute.list_value_length(array), width)).as_py())


def _plain(array: Any) -> Array:
    import pyarrow as pa

    if not pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
    numbers: Array = array.to_numpy(zero_copy_only=False)
    return numbers


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _kind(kind: Any) -> Literal["float", "whole", "text", "list"]:
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if _is_list(kind):
        inner = kind.value_type
        return "list" if pa.types.is_floating(inner) or pa.types.is_integer(inner) else "text"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float"
    return "whole" if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else "text"
