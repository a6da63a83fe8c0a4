"""U, which is nowhere below the squared distance to the nearest centre: where the events of the stream fall.

An envelope is either what norms say, U(x) = (‖x‖ + r)² with r the norm of the shortest centre, or what D² was when there
were `count` centres. Either is a function of the pool and the centres alone, whatever has been computed so far and
wherever the rows are. Masses are summed over leaves of 64 positions, leaves over segments of 4,096, segments over the
pool, each sum in order: the same numbers however segments lie on machines, as long as none is split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.samplers.draw import places_in_rows

__all__ = ["SEGMENT", "Envelope", "Masses", "Upper"]

#: Positions of a segment. With LEAF this is part of what the picks are: with another value a seed has other picks.
SEGMENT = 4096
#: Positions of a leaf: 64 leaves of 64 rows are looked at to find a row in a segment.
LEAF = 64
#: Positions whose masses are worked out at a time.
PASS = 64 * SEGMENT

#: U of some rows, by a slice or an array of positions.
Upper = Callable[[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class Envelope:
    """U(x) = (‖x‖ + `reach`)²; or with a `count`, the squared distance to the nearest of so many first centres."""

    reach: float
    count: int | None = None


class Masses:
    """U of some segments, summed: on which row does a place in a segment's mass fall?

    >>> u = np.array([1.0, 0.0, 2.0])
    >>> masses = Masses(lambda ids: u[ids], len(u))
    >>> masses.segments.tolist(), masses.rows(np.array([0, 0]), np.array([0.5, 1.0])).tolist()
    ([3.0], [0, 2])
    """

    def __init__(self, upper: Upper, count: int) -> None:
        self.upper, self.count = upper, count
        leaves = np.zeros(-(-count // SEGMENT) * (SEGMENT // LEAF))
        for start in range(0, count, PASS):
            stop = min(start + PASS, count)
            mass = np.zeros(-(-(stop - start) // LEAF) * LEAF)
            mass[: stop - start] = upper(slice(start, stop))
            # A cumulative sum adds in order, on every machine.
            leaves[start // LEAF :][: len(mass) // LEAF] = mass.reshape(-1, LEAF).cumsum(axis=1)[:, -1]
        self.leaves = leaves.reshape(-1, SEGMENT // LEAF).cumsum(axis=1)

    @property
    def segments(self) -> NDArray[np.float64]:
        """The mass of each segment."""
        mass: NDArray[np.float64] = self.leaves[:, -1].copy()
        return mass

    def rows(self, segment: NDArray[np.int64], rest: NDArray[np.float64]) -> NDArray[np.int64]:
        """The row on which each place `rest` in a segment's mass falls."""
        leaf = places_in_rows(self.leaves[segment], rest)
        rest = rest - np.where(leaf > 0, self.leaves[segment, leaf - 1], 0.0)
        start = segment * SEGMENT + leaf * LEAF
        ids = start[:, None] + np.arange(LEAF)
        mass = self.upper(np.minimum(ids, self.count - 1).reshape(-1)).reshape(ids.shape)
        mass[ids >= self.count] = 0.0
        return start + places_in_rows(mass.cumsum(axis=1), rest)
