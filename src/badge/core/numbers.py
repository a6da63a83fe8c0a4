"""Numbers and flags at the door: one check and one wording for each kind."""

import math
import operator
from contextlib import suppress
from typing import Any

from badge.errors import InputError


def whole(value: Any, name: str, least: int = 1) -> int:
    """`value` as a Python int, from any whole number that is not below `least`; texts, floats and booleans are refused.

    Numpy's small integers overflow in sums with ordinary ones: everything behind the door works with Python's.

    >>> import numpy as np
    >>> whole(np.int8(5), "k") * 1000
    5000
    >>> whole(2.0, "k")
    Traceback (most recent call last):
    badge.errors.InputError: k must be a whole number ≥ 1, not 2.0
    """
    with suppress(TypeError):  # 0-d arrays and tensors are numbers as well
        if not _boolean(value) and (number := operator.index(value)) >= least:
            return number
    raise InputError(f"{name} must be a whole number ≥ {least}, not {_shown(value)}")


def positive(value: Any, name: str, finite: bool = True) -> float:
    """`value` as a float above 0; math.inf only where it need not be finite.

    >>> positive("x", "lr")
    Traceback (most recent call last):
    badge.errors.InputError: lr must be a number above 0, not 'x'
    """
    with suppress(TypeError, ValueError, OverflowError):
        number = math.nan if _boolean(value) or isinstance(value, str | bytes) else float(value)
        if number > 0 and not (finite and math.isinf(number)):
            return number
    raise InputError(f"{name} must be a number above 0, not {_shown(value)}")


def flag(value: Any, name: str) -> bool:
    """`value`, if it is True or False. An array or a text is refused: what it means cannot be told."""
    if not _boolean(value) or getattr(value, "shape", ()) != ():
        raise InputError(f"{name} must be True or False, not {_shown(value)}")
    return bool(value)


def _boolean(value: Any) -> bool:
    """A boolean of Python, numpy or torch, which none of the numbers here is."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:50]}… ({type(value).__name__})"
