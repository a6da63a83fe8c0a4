"""Names, paths and masked arrays at the door: what does not fit is refused in one wording."""

import os
import re
from pathlib import Path
from typing import Any

from badge.errors import InputError

#: Bytes of the name of a file or folder, on every common system.
LONGEST = 255
#: How a URL begins, also after `Path` has made one slash of two; a drive has one letter.
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def name_of(value: Any, what: str) -> str:
    """`value`, if it is a text.

    >>> name_of(5, "the data set")
    Traceback (most recent call last):
    badge.errors.InputError: the data set is given by its name, not by int
    """
    if not isinstance(value, str):
        raise InputError(f"{what} is given by its name, not by {type(value).__name__}")
    return value


def path_of(value: Any, what: str) -> Path:
    """`value` as a path, if it is a text or a path.

    >>> path_of(None, "the journal")
    Traceback (most recent call last):
    badge.errors.InputError: the journal is given by its path, not by NoneType
    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise InputError(f"{what} is given by its path, not by {type(value).__name__}")
    path = Path(value)
    if URL.match(str(value)):
        way_out = "mount it where its readers see it, or copy it"
        raise InputError(f"{what} is given by its path, not by a URL ({str(value)[:60]}): {way_out}")
    try:
        fits = all(len(os.fsencode(part)) <= LONGEST for part in path.parts)
    except UnicodeEncodeError:  # half of a surrogate pair
        fits = False
    if "\0" in str(path) or not fits:
        raise InputError(f"{what}: no file can be called {str(path)[:60]!r}{'…' * (len(str(path)) > 60)}")
    return path


def name_rows(rows: Any) -> str:
    """The number of rows and the first few of them, for a message.

    >>> name_rows([3, 4])
    '2 rows (first: 3, 4)'
    """
    first = ", ".join(str(int(i)) for i in rows[:5])
    return f"{len(rows)} row{'s' * (len(rows) > 1)} (first: {first})"


def unmasked(values: Any, name: str) -> Any:
    """`values`; for a masked array with nothing masked, its data. One with masked values is refused.

    >>> import numpy as np
    >>> unmasked(np.ma.masked_array([1, 2], mask=[False, True]), "labels")
    Traceback (most recent call last):
    badge.errors.InputError: labels are masked in 1 row (first: 1): fill these gaps (filled(...)), or drop the rows
    """
    import numpy as np

    if not isinstance(values, np.ma.MaskedArray):
        return values
    hidden = np.ma.getmaskarray(values)
    rows = np.flatnonzero(hidden.reshape(len(hidden), -1).any(axis=1) if hidden.ndim else hidden)
    if len(rows):
        raise InputError(f"{name} are masked in {name_rows(rows)}: fill these gaps (filled(...)), or drop the rows")
    return values.data
