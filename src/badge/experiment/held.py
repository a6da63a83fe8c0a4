"""Objects in the place of names: a data set or a strategy that a notebook holds, under the name that journals write."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

from badge.data import Dataset


class Held(str):
    """A name that holds its object.

    >>> Held.of(len), held(Held.of(len)) is len, held("badge")
    ('builtins:len', True, 'badge')
    """

    object: Any

    @classmethod
    def of(cls, value: Any) -> Any:
        """The name of a data set, a function or an object with a class; anything else stays itself."""
        if isinstance(value, str) or not (isinstance(value, Dataset) or callable(value)):
            return value
        kind = value if hasattr(value, "__qualname__") else type(value)
        name = value.name if isinstance(value, Dataset) else f"{kind.__module__}:{kind.__qualname__}"
        found = cls(name)
        found.object = value
        return found

    def __deepcopy__(self, memo: Any) -> Held:
        return self


def held(name: str) -> Any:
    """The object of a name, or the name itself where it holds none."""
    return name.object if isinstance(name, Held) else name


def source_digest(name: Held) -> str:
    """A digest of the source of a function or of the class of an object; of its name where there is no source."""
    kind = name.object if hasattr(name.object, "__qualname__") else type(name.object)
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        source = str(name)
    return hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
