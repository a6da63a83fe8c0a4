"""Which rows of a pool may be near given ones: boxes around neighbours, in the few numbers of a sketch.

Sketches (`nearest/sketch.py`) bound distances from below. Rows are sorted so that similar sketches lie together: the
direction of largest variance is halved again and again, as in a k-d tree, until LEAF rows are left. Three tests follow each
other, each on the rows that the one before has left: box against box, row against box, row against row.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from badge.features import Features
from badge.samplers.nearest.sketch import sketches

#: Rows in a box, numbers in a sketch, rows that it is made from, and products at a time.
LEAF, RANK, SAMPLE, BLOCK = 64, 16, 512, 2**18


class Limits(NamedTuple):
    """A squared distance per row, in the order of boxes, and the largest of each box."""

    each: Tensor
    most: Tensor


class Boxes:
    """The rows of a pool in boxes of LEAF rows.

    >>> import badge
    >>> boxes = Boxes(badge.Dense([[0.0], [9.0], [0.1], [9.1]]))
    >>> boxes.near(torch.tensor([0]), boxes.limits(torch.ones(4))).tolist()
    [0, 2]
    """

    def __init__(self, features: Features) -> None:
        n, found = len(features), sketches(features, RANK, SAMPLE)
        #: rows in the order of boxes; the last box repeats its last row until it is full
        self.order = torch.cat(_sorted(found, torch.arange(n, device=found.device)))
        self.place = self.order.argsort()
        full = torch.cat([self.order, self.order[-1:].expand(-n % LEAF)])
        self.rows = found[full]
        self.sq_norms = self.rows.square().sum(dim=1)
        self.low, self.high = self.rows.view(-1, LEAF, found.shape[1]).aminmax(dim=1)

    def limits(self, sq_dists: Tensor) -> Limits:
        """Squared distances per row, ready for `near`."""
        each = sq_dists.new_full((len(self.rows),), -torch.inf)
        each[: len(self.order)] = sq_dists[self.order]
        return Limits(each, each.view(-1, LEAF).amax(dim=1))

    def near(self, ids: Tensor, limits: Limits) -> Tensor:
        """All rows that are nearer to one of the rows `ids` than their limit, and some more; limits include rounding."""
        places = self.around(ids, limits)
        return self.order[places[self.nearest(ids, places, len(ids))[0] < limits.each[places]]]

    def around(self, ids: Tensor, limits: Limits) -> Tensor:
        """The rows of the boxes with rows `near`, by their places in `order`."""
        low, high = self.outline(ids)
        apart = torch.maximum(low - self.high, self.low - high).clamp_(min=0).square_().sum(dim=1)
        boxes = (apart < limits.most).nonzero()
        return (boxes * LEAF + torch.arange(LEAF, device=boxes.device)).flatten()

    def outside(self, ids: Tensor, places: Tensor) -> Tensor:
        """Squared distances of the rows at `places` to the box of the rows `ids`."""
        rows = self.rows.index_select(0, places)
        return (rows - rows.clamp(*self.outline(ids))).square_().sum(dim=1)

    def outline(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The corners of the box of the rows `ids`."""
        return self.rows[self.place[ids]].aminmax(dim=0)

    def nearest(self, ids: Tensor, places: Tensor, size: int) -> Tensor:
        """Squared distances of the rows at `places` to the nearest of each `size` of the rows `ids`, [parts, rows]."""
        group = self.rows[self.place[torch.cat([ids, ids[-1:].expand(-len(ids) % size)])]]
        sq_norms, step = group.square().sum(dim=1)[:, None], max(1, BLOCK // len(group))  # products stay in cache
        found = self.rows.new_empty(len(group) // size, len(places))  # pieces kept in between would fill the heap
        for start in range(0, len(places), step):
            some = slice(start, start + step)
            products = torch.addmm(sq_norms, group, self.rows.index_select(0, places[some]).T, alpha=-2)
            found[:, some] = products.view(len(found), size, -1).amin(dim=1)
        return found.add_(self.sq_norms[places])


def _sorted(x: Tensor, ids: Tensor) -> list[Tensor]:
    """The rows `ids` of x in parts of LEAF, neighbours next to each other; only the last one may be smaller."""
    if len(ids) <= LEAF:
        return [ids]
    rows = x[ids]
    widest = rows.var(dim=0, unbiased=False).argmax()
    ids = ids[rows.index_select(1, widest[None])[:, 0].argsort()]
    half = (len(ids) // LEAF + 1) // 2 * LEAF
    return _sorted(x, ids[:half]) + _sorted(x, ids[half:])
