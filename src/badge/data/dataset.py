"""`Dataset`: the arrays of one experiment, checked once, and where they come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from badge.core.arrays import as_array
from badge.core.names import name_of
from badge.core.npz import Array
from badge.core.numbers import positive, whole
from badge.errors import DataError

#: Each has a name in memory.
MOST_CLASSES = 10_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A pool and a test set. Your own `load(seed)` returns one.

    Args:
        X_train: the pool, [N, columns] for tables and [N, channels, height, width] for images.
        y_train: the labels of the pool, whole numbers from 0.
        X_test: the test set.
        y_test: the labels of the test set.
        classes: the number of classes.
        name: a name for tables and legends.
        class_names: the names of the classes; default: their numbers.
        rows: the number of rows that were available; default: all.
        total: the number of rows of the complete set; default: `rows`.
        lr: the learning rate; default: the paper's, 0.001 for images and 0.0001 for tables.

    Raises:
        DataError: shapes, labels and classes do not match.

    >>> import badge, numpy as np
    >>> x, y = np.zeros((4, 3)), [0, 1, 0, 1]
    >>> own = badge.data.Dataset(x, y, x, y, classes=2, name="own")
    >>> own.shape, own.image, own.lr, own.complete, own.text
    ((3,), False, 0.0001, True, '8 of 8')
    """

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    classes: int
    name: str = "own"
    class_names: tuple[str, ...] = ()
    rows: int = 0
    total: int = 0
    lr: float = 0.0

    def __post_init__(self) -> None:
        name, classes = name_of(self.name, "a data set"), whole(self.classes, "classes")
        held: dict[str, Any] = {"classes": classes}
        for part in ("train", "test"):
            x = as_array(getattr(self, f"X_{part}"), f"{part} examples")
            y = as_array(getattr(self, f"y_{part}"), f"{part} labels")
            x = x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
            _check(name, part, x, y, classes)
            held |= {f"X_{part}": x, f"y_{part}": y.astype(np.int64, copy=False)}
        shape, other = held["X_train"].shape[1:], held["X_test"].shape[1:]
        if shape != other:
            raise DataError(f"{name}: training and test examples have different shapes: {shape} and {other}")
        if classes > MOST_CLASSES:
            raise DataError(f"{name}: {classes:,} classes; at most {MOST_CLASSES:,} are possible")
        names = tuple(map(str, self.class_names)) or tuple(map(str, range(classes)))
        if len(names) != classes:
            raise DataError(f"{name}: {len(names)} class names for {classes} classes")
        rows = whole(self.rows, "rows", least=0) or len(held["y_train"]) + len(held["y_test"])
        total = whole(self.total, "total", least=0) or rows
        unset = isinstance(self.lr, int | float) and self.lr == 0
        lr = learning_rate(shape) if unset else positive(self.lr, "lr")
        for field, value in {**held, "class_names": names, "rows": rows, "total": total, "lr": lr}.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name}: {len(self.y_train):,} training and {len(self.y_test):,} test examples of shape "
            f"{self.shape}, {self.classes} classes; from {self.text} rows)"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        return tuple(self.X_train.shape[1:])

    @property
    def image(self) -> bool:
        return is_image(self.shape)

    @property
    def complete(self) -> bool:
        """Whether all rows of the complete set were available."""
        return self.rows == self.total

    @property
    def text(self) -> str:
        """How many rows were available, e.g. "20,000 of 50,000"."""
        return f"{self.rows:,} of {self.total:,}"


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether examples of this shape are images: (channels, height, width)."""
    return len(shape) == 3


def learning_rate(shape: tuple[int, ...]) -> float:
    """The paper's learning rate: 0.001 for images, 0.0001 for tables.

    Args:
        shape: the shape of one example.

    Returns:
        0.001 or 0.0001.

    >>> learning_rate((3, 32, 32)), learning_rate((16,))
    (0.001, 0.0001)
    """
    return 1e-3 if is_image(shape) else 1e-4


def _check(name: str, part: str, x: Array, y: Array, classes: int) -> None:
    if y.ndim != 1 or x.ndim < 2 or len(x) != len(y) or len(y) == 0:
        raise DataError(f"{name}: {part} examples of shape {x.shape}, labels {y.shape}: [N, ...] and [N] are needed")
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= classes:
        found = f"{y.dtype} from {y.min()} to {y.max()}" if y.dtype.kind in "iufb" else f"of type {y.dtype}"
        raise DataError(f"{name}: {part} labels must be whole numbers from 0 to {classes - 1}, not {found}")
    if x.dtype.kind not in "fiu":
        raise DataError(f"{name}: {part} examples have dtype {x.dtype}: numbers are needed")
    if x.dtype.kind == "f" and not np.isfinite(x.sum(dtype=np.float64)):
        raise DataError(f"{name}: {part} examples hold NaN or inf")
