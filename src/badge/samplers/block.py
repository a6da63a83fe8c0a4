"""One block of events: its size, and which of its events are accepted, in order."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Rows
from badge.samplers.nearest import Centres, Tuning
from badge.samplers.nearest.few import within

#: Rows of the table of a block that are worked out together.
STRIP = 128


def near(rows: Rows, thresholds: Tensor, centres: Centres) -> NDArray[np.bool_]:
    """Whether row j is near row i and comes before it, [n, n]: their squared distance is at most the threshold of i.
    Entries on and above the diagonal say nothing.

    Estimates, which are never above the distances, rule out most pairs; float64 decides the others.
    """
    n = len(rows)
    if centres.at_once(n * n):
        return within(rows, rows, thresholds.numpy())
    exact, lens = Exact.of(rows), centres.lens
    view = lens.look(exact)
    probe = lens.probe(view)
    limits = probe.limits(thresholds)[:, None]
    found = torch.zeros(n, n, dtype=torch.bool, device=limits.device)
    size = STRIP if limits.device.type == "cpu" else max(n, 1)
    room = limits.new_empty(len(view.rows.factors) * min(size, n) * n)
    for start in range(0, n, size):  # only what is left of the diagonal
        mine, before = slice(start, start + size), slice(0, start + size)
        found[mine, before] = (lens.estimates(probe[mine], view[before], room) < limits[mine]).tril_(start - 1)
    i, j = found.nonzero(as_tuple=True)
    if len(i):
        found[i, j] = exact.sq_dists(i, exact, j) <= thresholds[i]
    return found.cpu().numpy()


def accept(table: NDArray[np.bool_], most: int) -> list[int]:
    """Places of the accepted rows, in order: none accepted before them is near, by the table of `near`.

    >>> accept(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=bool), most=9)
    [0, 2]
    """
    found: list[int] = []
    taken = 0  # bit i: row i is accepted
    for i, bits in enumerate(np.packbits(table, axis=1, bitorder="little")):
        if not int.from_bytes(bits.tobytes(), "little") & taken:
            found.append(i)
            taken |= 1 << i
            if len(found) == most:
                break
    return found


@dataclass
class Pace:
    """How many events to draw for a round, so that about `block` of them have to be compared with centres."""

    tuning: Tuning
    mass: float  # of U, where events have to be compared
    rate: float = 0.5  # accepted of those compared
    rounds: int = 0

    def events(self, wanted: int, left: int, mass: float) -> int:
        """For at most `wanted` picks, of `left` rows: more events on one row are compared in vain."""
        most = min(self.tuning.first_block << min(self.rounds, 32), self.tuning.block, self.tuning.first_block + left)
        return int(min(most, 1.25 * wanted / self.rate + 8) * max(1.0, mass / self.mass)) + 8

    def went(self, events: int, compared: int, accepted: int, mass: float) -> None:
        self.rounds += 1
        self.mass = max(compared / events * mass, min(self.mass, mass) / 4, mass / 1000)
        self.rate = max(accepted, 1) / max(compared, 1)
