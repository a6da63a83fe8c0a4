"""Drawing in proportion to masses: the inverse of their cumulative sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def places(cumulative: NDArray[np.float64], at: Any) -> NDArray[np.int64]:
    """Where a cumulative sum first exceeds each of `at`; rounding does not lead behind the last entry that has mass.

    >>> places(np.cumsum([0.0, 2.0, 1.0, 0.0]), [0.0, 1.9, 2.0, 3.0]).tolist()
    [1, 1, 2, 2]
    """
    found = cumulative.searchsorted(at, side="right")
    last = cumulative.searchsorted(cumulative[-1])
    inside: NDArray[np.int64] = np.minimum(found, last)
    return inside


def places_in_rows(
    cumulative: NDArray[np.float64], row: NDArray[np.int64], at: NDArray[np.float64]
) -> NDArray[np.int64]:
    """`places` in a table with a cumulative sum in each row; `row` says in which row each of `at` is looked up.

    >>> places_in_rows(np.cumsum([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]], axis=1), np.array([0, 1]), np.array([2.5, 1.0])).tolist()
    [2, 0]
    """
    sums = cumulative[row]
    before = (sums <= at[:, None]) & (sums < sums[:, -1:])
    inside: NDArray[np.int64] = before.argmin(axis=1)  # the first False, since sums rise
    return inside


def in_proportion(masses: Any, rng: np.random.Generator) -> int:
    """One place, drawn in proportion to `masses` (numpy, or a tensor on the host).

    >>> in_proportion([0.0, 0.0, 2.0], np.random.default_rng(0))
    2
    """
    cumulative = np.cumsum(np.asarray(masses, dtype=np.float64))
    return int(places(cumulative, rng.random() * cumulative[-1]))
