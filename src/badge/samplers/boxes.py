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

    def at(self, places: Tensor) -> Tensor:
        """Those of the rows at `places`."""
        return self.each.flatten().index_select(0, places)


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
        self.rows = found[full].view(-1, LEAF, found.shape[1])
        self.low, self.high = self.rows.amin(dim=1), self.rows.amax(dim=1)

    def limits(self, sq_dists: Tensor) -> Limits:
        """Squared distances per row, ready for `near`."""
        each = sq_dists.new_full((self.rows.shape[0] * LEAF,), -torch.inf)
        each[: len(self.order)] = sq_dists[self.order]
        each = each.view(-1, LEAF)
        return Limits(each, each.amax(dim=1))

    def near(self, ids: Tensor, limits: Limits) -> Tensor:
        """All rows that are nearer to one of the rows `ids` than their limit, and some more; limits include rounding."""
        rows, places, outside = self.around(ids, limits)
        limit = limits.at(places)
        left = (outside < limit).nonzero()[:, 0]
        left = left[self.nearest(ids, rows[left], len(ids))[0] < limit[left]]
        return self.order[places[left]]

    def around(self, ids: Tensor, limits: Limits) -> tuple[Tensor, Tensor, Tensor]:
        """The boxes with rows `near`: their sketches, places in `order`, and squared distances to the box of `ids`."""
        group = self.rows.flatten(0, 1)[self.place[ids]]
        low, high = group.amin(dim=0), group.amax(dim=0)
        apart = torch.maximum(low - self.high, self.low - high).clamp_(min=0).square_().sum(dim=1)
        boxes = (apart < limits.most).nonzero()[:, 0]
        rows = self.rows[boxes].flatten(0, 1)
        places = (boxes[:, None] * LEAF + torch.arange(LEAF, device=boxes.device)).flatten()
        return rows, places, (rows - rows.clamp(low, high)).square_().sum(dim=1)

    def nearest(self, ids: Tensor, rows: Tensor, size: int) -> Tensor:
        """Squared distances of sketches to the nearest of each `size` of the rows `ids`, [parts, rows]."""
        group = self.rows.flatten(0, 1)[self.place[torch.cat([ids, ids[-1:].expand(-len(ids) % size)])]]
        sq_norms = group.square().sum(dim=1)[:, None]
        # blocks of products stay in cache
        blocks, parts = torch.split(rows, max(1, BLOCK // len(group))), len(group) // size
        found = [torch.addmm(sq_norms, group, x.T, alpha=-2).view(parts, size, len(x)).amin(dim=1) for x in blocks]
        return torch.cat(found, dim=1).add_(rows.square().sum(dim=1))


def _sorted(x: Tensor, ids: Tensor) -> list[Tensor]:
    """The rows `ids` of x in parts of LEAF, neighbours next to each other; only the last one may be smaller."""
    if len(ids) <= LEAF:
        return [ids]
    rows = x[ids]
    widest = rows.var(dim=0, unbiased=False).argmax()
    ids = ids[rows.index_select(1, widest[None])[:, 0].argsort()]
    half = (len(ids) // LEAF + 1) // 2 * LEAF
    return _sorted(x, ids[:half]) + _sorted(x, ids[half:])
