"""Masked arrays: what is behind a mask must not be read as data."""

from typing import Any

import numpy as np

from badge.core.names import name_rows
from badge.errors import InputError


def unmasked(values: Any, name: str) -> Any:
    """`values`; for a masked array with nothing masked, its data. One with masked values is refused.

    >>> unmasked(np.ma.masked_array([1, 2], mask=[False, True]), "labels")
    Traceback (most recent call last):
    badge.errors.InputError: labels are masked in 1 row (first: 1): fill these gaps (filled(...)), or drop the rows
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    hidden = np.ma.getmaskarray(values)
    rows = np.flatnonzero(hidden.reshape(len(hidden), -1).any(axis=1) if hidden.ndim else hidden)
    if len(rows):
        raise InputError(f"{name} are masked in {name_rows(rows)}: fill these gaps (filled(...)), or drop the rows")
    return values.data
