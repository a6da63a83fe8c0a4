"""Two texts in one item: a pair for the tokenizer, or a text and the name of its label?"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from badge.errors import InputError
from badge.models.inputs import is_pair

#: Items that are looked at, evenly over the pool.
SAMPLE = 64
#: A column is taken for labels where a value stands for at least this many items, and no value is longer than a name.
ITEMS_PER_VALUE, NAME_CHARACTERS = 4, 40


def known_classes(model: Any) -> frozenset[str]:
    """The names of a model's classes, where it has any."""
    return frozenset(map(str, getattr(getattr(model, "config", None), "label2id", None) or ()))


def check_pairs(rows: int, item: Callable[[int], Any], classes: Collection[str] = ()) -> None:
    """Refuse pairs of texts of which one looks like a label: it would be read as an input.

    >>> check_pairs(8, lambda i: (f"text {i}", "good" if i % 2 else "bad"))
    Traceback (most recent call last):
    badge.errors.InputError: the second text of the items looks like a label (2 values in 8 items looked at: 'bad', ...
    """
    found: list[Any] = []
    for position in np.unique(np.linspace(0, rows - 1, SAMPLE).astype(np.int64)).tolist():
        found.append(item(position))
        if not is_pair(found[-1]):
            return
    for name, column in zip(("first", "second"), zip(*found, strict=True), strict=False):
        values = set(column)
        few = ITEMS_PER_VALUE * len(values) <= len(column) and max(map(len, values)) <= NAME_CHARACTERS
        if few or values <= set(classes):
            shown = ", ".join(repr(value) for value in sorted(values)[:3])
            raise InputError(
                f"the {name} text of the items looks like a label ({len(values)} values in {len(column)} items looked at: "
                f"{shown}) and would be read as an input: leave it out, or pass dicts with the keys text and text_pair if "
                "both are inputs"
            )
