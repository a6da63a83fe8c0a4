"""The set of labels, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from badge.errors import InputError

__all__ = ["Classes", "Label", "as_plain", "short"]

Label = int | str


class Classes:
    """The set of labels: 0 … n − 1, or a list of names. Inside, a label is always its position.

    >>> classes = Classes(["cat", "dog"])
    >>> classes.encode("dog", id=3), classes.decode(1), len(classes)
    (1, 'dog', 2)
    """

    def __init__(self, classes: int | Sequence[Label]) -> None:
        named = not isinstance(classes, int | np.integer)
        if isinstance(classes, str) or (named and not isinstance(classes, Iterable)):
            raise InputError(f"classes are a number or a list of names, not {classes!r}")
        names = [as_plain(name) for name in classes] if named else list(range(int(classes)))  # type: ignore[union-attr, arg-type]
        if any(isinstance(name, bool) or not isinstance(name, int | str) for name in names):
            raise InputError(f"classes are a number or a list of names (text or whole numbers), not {names!r}")
        if len(set(names)) != len(names) or len(names) < 2:
            raise InputError(f"at least 2 classes, all different, are needed; got {short(names)}")
        self.names: list[Label] = names
        self.header: int | list[Label] = names if named else len(names)
        self._position = {name: position for position, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    def encode(self, label: Any, id: int) -> int:
        label = as_plain(label)
        # True == 1 and 1.0 == 1 in Python, but a label of the wrong kind is a mistake in the caller's table
        if isinstance(label, int | str) and not isinstance(label, bool) and label in self._position:
            return self._position[label]
        raise InputError(f"label {label!r} of id {id} is not one of the classes: {short(self.names)}")

    def decode(self, position: int) -> Label:
        return self.names[position]


def as_plain(label: Any) -> Any:
    """A label as plain Python: numpy and torch scalars lose their wrapping."""
    return label.item() if hasattr(label, "item") else label


def short(value: Any) -> str:
    """A value for an error message, cut in the middle of a long list."""
    if isinstance(value, list) and len(value) > 8:
        return f"[{', '.join(map(repr, value[:6]))}, … {len(value)} in all]"
    return repr(value)
