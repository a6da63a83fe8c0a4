"""The classes: their names, and their positions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from badge.errors import InputError
from badge.journal.events import Id, Label

#: most classes, where their number is given
MOST = 10_000_000
#: a label inside: the position of its class; where an example has several labels, all of them, ascending
Code = int | tuple[int, ...]

Vote = TypeVar("Vote")


class Classes:
    """The set of labels: 0 … n − 1, or a list of names. Inside, a label is always its position.

    With `multilabel` an example has any number of them, and its label is a list.

    >>> classes = Classes(["cat", "dog"])
    >>> classes.encode("dog", id=3), classes.decode(1), len(classes)
    (1, 'dog', 2)
    >>> tags = Classes(["red", "big", "old"], multilabel=True)
    >>> tags.encode(["old", "red"], id=3), tags.decode((0, 2)), tags.targets([(0, 2), ()]).tolist()
    ((0, 2), ['red', 'old'], [[1, 0, 1], [0, 0, 0]])
    """

    def __init__(self, classes: int | Sequence[Label], multilabel: bool = False) -> None:
        named = not isinstance(classes, int | np.integer)
        single = getattr(classes, "ndim", 1) == 0 or not isinstance(classes, Iterable)
        wrong = isinstance(classes, str | bytes | bool | Mapping | Set)  # a set has no order that holds everywhere
        if wrong or (named and single):
            raise InputError(f"classes are a number or a list of names in their order, not {classes!r:.60}")
        if not named and not 2 <= int(classes) <= MOST:  # type: ignore[arg-type]
            raise InputError(f"at least 2 classes and at most {MOST:,} are needed; got {classes!r}")
        names = [as_plain(name) for name in classes] if named else list(range(int(classes)))  # type: ignore[union-attr, arg-type]
        if any(isinstance(name, bool) or not isinstance(name, int | str) for name in names):
            raise InputError(f"classes are a number or a list of names (text or whole numbers), not {names!r}")
        if len(set(names)) != len(names) or len(names) < 2:
            raise InputError(f"at least 2 classes, all different, are needed; got {short(names)}")
        self.multilabel, self.named = multilabel, named
        self.names: list[Label] = names
        self._position = {name: position for position, name in enumerate(names)}

    @property
    def header(self) -> int | list[Label]:
        """As a journal holds them: their names, or their number."""
        return list(self.names) if self.named else len(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def checked_new(self, name: Label | None) -> Label:
        """The name of a class to add; numbered classes go on with the next number."""
        name = as_plain(name)
        plain = isinstance(name, int | str) and not isinstance(name, bool)
        if not self.named and (name is None or (plain and name == len(self))):
            return len(self)
        if name is None or not plain or not self.named:
            wanted = "a name" if self.named else f"the next number, {len(self)}"
            raise InputError(f"a class that is added needs {wanted}, not {name!r:.60}")
        if name in self._position:
            raise InputError(f"{name!r} is one of the classes already: {short(self.names)}")
        return name

    def add(self, name: Label) -> None:
        """Add a class, unless it is there already."""
        if name not in self._position:
            self._position[name] = len(self)
            self.names.append(name)

    def encode(self, label: Any, id: Id) -> Code:
        if not self.multilabel:
            return self._one(label, label, id)
        many = label.tolist() if hasattr(label, "tolist") else label
        if isinstance(many, str) or not isinstance(many, Iterable):
            wanted = "an example has any number of classes here, so give a list of them"
            raise InputError(f"label {label!r} of id {id} is not a list: {wanted}")
        return tuple(sorted({self._one(one, label, id) for one in many}))

    def decode(self, code: Code) -> Any:
        return self.names[code] if isinstance(code, int) else [self.names[one] for one in code]

    def targets(self, codes: Sequence[Code]) -> NDArray[np.int64]:
        """What a trainer is given: positions [n], or one column of 0 and 1 per class."""
        if not self.multilabel:
            return np.array(codes, dtype=np.int64)
        hot = np.zeros((len(codes), len(self)), dtype=np.int64)
        for row, code in enumerate(codes):
            hot[row, list(code) if isinstance(code, tuple) else code] = 1
        return hot

    def predicted(self, probabilities: NDArray[Any]) -> list[Code]:
        """The class of each row: the most probable, or all that are more probable than not."""
        if self.multilabel:
            return [tuple(np.flatnonzero(row).tolist()) for row in probabilities > 0.5]
        if probabilities.shape[1] == 1:
            return [int(code) for code in probabilities[:, 0] > 0.5]
        return [int(code) for code in probabilities.argmax(axis=1)]

    def _one(self, one: Any, label: Any, id: Id) -> int:
        one = as_plain(one)
        # True == 1 and 1.0 == 1 in Python, but a label of the wrong kind is a mistake in the caller's table
        if isinstance(one, int | str) and not isinstance(one, bool) and one in self._position:
            return self._position[one]
        raise InputError(f"label {as_plain(label)!r} of id {id} is not one of the classes: {short(self.names)}")


def one_class(classes: Classes, targets: NDArray[np.int64]) -> str | None:
    """A sentence that says so if all labels are of one class, else None.

    >>> one_class(Classes(["cat", "dog"]), np.array([1, 1, 1]))
    "all 3 labels so far are 'dog'"
    """
    if not len(targets) or (targets != targets[0]).any():
        return None
    row = targets[0]
    code: Code = tuple(np.flatnonzero(row).tolist()) if classes.multilabel else int(row)
    return f"all {len(targets):,} labels so far are {classes.decode(code)!r}"


def majority(votes: Iterable[Vote]) -> Vote | None:
    """What most voted for; None in a tie.

    >>> majority(["a", "b", "a"]), majority(["a", "b"])
    ('a', None)
    """
    (first, most), *rest = Counter(votes).most_common(2)
    return None if rest and rest[0][1] == most else first


def as_plain(label: Any) -> Any:
    """A label as plain Python: numpy and torch scalars lose their wrapping."""
    return label.item() if hasattr(label, "item") and getattr(label, "size", 1) == 1 else label


def short(value: Any) -> str:
    """A value for an error message, cut in the middle of a long list."""
    if isinstance(value, list) and len(value) > 8:
        return f"[{', '.join(map(repr, value[:6]))}, … {len(value)} in all]"
    return repr(value)
