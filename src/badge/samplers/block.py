"""One block of events: its size, and which of its events are accepted, in order."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Rows
from badge.features.rows import resolution
from badge.samplers.nearest import Lens, Tuning
from badge.samplers.nearest.lens import VANISHED

#: Rows of the table of a block that are worked out together.
STRIP = 128


def near(rows: Rows, thresholds: Tensor, lens: Lens) -> NDArray[np.bool_]:
    """Whether row j comes before row i and is near it, [n, n]: their squared distance is at most the threshold of i.

    Estimates, which are never above the distances, rule out most pairs; float64 decides the others.
    """
    exact, n = Exact.of(rows), len(rows)
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


def near_few(rows: Rows, thresholds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """`near` for few rows on the host, for all pairs. Products decide nearly all of them; the rest is worked out exactly."""
    # numpy would multiply f with its own transpose by another routine, three times slower for few rows
    inner, *rest = (f @ f.copy().T for f in map(Tensor.numpy, rows.factors))
    for product in rest:
        inner *= product
    dtype = rows.factors[0].dtype
    sq_norms = inner.diagonal()
    sums = sq_norms[:, None] + sq_norms
    above = sums - 2 * inner - thresholds[:, None]
    table: NDArray[np.bool_] = above <= 0
    slack = resolution(dtype) * (8 + sum(f.shape[1] for f in rows.factors))
    unsure = np.abs(above) <= slack * sums + 3 * VANISHED * torch.finfo(dtype).tiny
    if unsure.any():
        i, j = np.nonzero(unsure)
        exact, pairs = Exact.of(rows), (torch.from_numpy(i), torch.from_numpy(j))
        table[i, j] = exact.sq_dists(pairs[0], exact, pairs[1]).numpy() <= thresholds[i]
    return table


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
