"""U, which is nowhere below the squared distance to the nearest centre: where the events of the stream fall.

An envelope is either what norms say, U(x) = (‖x‖ + r)² with r the norm of the shortest centre, and 0 on rows that were
picked before; or what D² was when there were `count` centres. Either is a function of the pool and the centres alone,
whatever has been computed so far and wherever the rows are. Masses are summed over leaves of 64 positions, leaves over
segments of 4,096, segments over the pool, each sum in order: the same numbers however segments lie on machines, as long as
none is split.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.samplers.draw import places, places_in_rows
from badge.samplers.nearest.bounds import NORM_SLACK

#: Positions of a segment. Changing SEGMENT or LEAF changes the picks for a given seed.
SEGMENT = 4096
#: Positions of a leaf: 64 leaves of 64 rows are looked at to find a row in a segment.
LEAF = 64
#: Leaves whose masses are worked out at a time.
PASS = 1024

#: Pools of at most SMALL rows keep the masses of all rows, 8 bytes each. Larger ones compute them for leaves that are hit.
SMALL = 2**18

#: U of rows from their values, of any shape, in fresh memory.
Upper = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class Envelope:
    """U(x) = (‖x‖ + `reach`)², 0 on the first `count` centres; if `exact`, the squared distance to the nearest of them."""

    reach: float
    count: int = 0
    exact: bool = False


class Masses:
    """U of some segments, summed: on which row does a place in a segment's mass fall?

    U is a function of one number per row, `upper(values)`, so that nothing of the size of the pool is kept for it; on the
    rows `without` it is 0.

    >>> masses = Masses(np.array([1.0, 0.0, 2.0]), lambda values: 10 * values)
    >>> masses.segments.tolist(), masses.rows(np.array([0, 0]), np.array([5.0, 10.0])).tolist()
    ([30.0], [0, 2])
    """

    def __init__(self, values: NDArray[Any], upper: Upper, without: NDArray[np.int64] | None = None) -> None:
        self.values, self.upper = values, upper
        self.without: NDArray[np.bool_] | None = None
        if without is not None and len(without):
            self.without = np.zeros(len(values), dtype=bool)
            self.without[without] = True
        leaves, kept = np.zeros(-(-len(values) // SEGMENT) * (SEGMENT // LEAF)), []
        for start in range(0, len(values), PASS * LEAF):
            rows = slice(start, min(start + PASS * LEAF, len(values)))
            mass = np.zeros((-(-(rows.stop - start) // LEAF), LEAF))
            mass.reshape(-1)[: rows.stop - start] = self._of(rows)
            mass = mass.cumsum(axis=1)  # adds in order, on every machine
            leaves[start // LEAF :][: len(mass)] = mass[:, -1]
            if len(values) <= SMALL:
                kept.append(mass)
        self.leaves = leaves.reshape(-1, SEGMENT // LEAF).cumsum(axis=1)
        #: the mass of each segment
        self.segments: NDArray[np.float64] = self.leaves[:, -1].copy()
        # the cumulative masses of every leaf
        self.all_leaves = np.concatenate(kept) if len(kept) > 1 else kept[0] if kept else None

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """U of some rows that have mass."""
        return self.upper(self.values[rows])

    def rows(self, segment: NDArray[np.int64], rest: NDArray[np.float64]) -> NDArray[np.int64]:
        """The row on which each place `rest` in a segment's mass falls."""
        one = len(self.leaves) == 1
        leaf = places(self.leaves[0], rest) if one else places_in_rows(self.leaves, segment, rest)
        rest = rest - np.where(leaf > 0, self.leaves[segment, leaf - 1], 0.0)
        leaf += segment * (SEGMENT // LEAF)
        if self.all_leaves is not None:
            return leaf * LEAF + places_in_rows(self.all_leaves, leaf, rest)
        hit = np.zeros(self.leaves.size, dtype=bool)  # many events may fall on few leaves
        hit[leaf] = True
        members = np.flatnonzero(hit)[:, None] * LEAF + np.arange(LEAF)
        mass = self._of(np.minimum(members, len(self.values) - 1))
        mass[members >= len(self.values)] = 0.0
        return leaf * LEAF + places_in_rows(mass.cumsum(axis=1), (hit.cumsum() - 1)[leaf], rest)

    def _of(self, rows: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        """U of some rows."""
        mass = self.upper(self.values[rows])
        if self.without is not None:
            mass[self.without[rows]] = 0.0
        return mass


def by_norms(sq_norms: NDArray[Any], reach: float, without: NDArray[np.int64] | None = None) -> Masses:
    """The masses of U(x) = (‖x‖ + reach)²; rows in `without` have mass 0."""
    return Masses(sq_norms, partial(sum_of_norms, reach=reach), without)


def sum_of_norms(sq_norms: NDArray[Any], reach: float) -> NDArray[np.float64]:
    """(‖x‖ + reach)², rounded up, in numpy: its square roots are rounded correctly, so that bits are the same everywhere."""
    mass: NDArray[np.float64] = np.sqrt(sq_norms, dtype=np.float64)
    mass += reach
    mass *= mass
    mass *= 1 + NORM_SLACK
    mass += np.finfo(sq_norms.dtype).tiny
    return mass
