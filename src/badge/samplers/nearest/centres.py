"""The centres so far, and which of them could be near."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Rows
from badge.features.rows import check_norms
from badge.samplers.nearest.lens import Lens, View, far_origin
from badge.samplers.nearest.outlines import outlines, outlines_pay
from badge.samplers.nearest.sketch import useful_sketch
from badge.samplers.nearest.tuning import Tuning

__all__ = ["Centres"]

#: |‖c‖ − ‖x‖| is compared with D(x) in float32, from norms that were rounded: so much of ‖x‖ + D(x) is allowed for that.
REACH_SLACK = 1e-5


#: Rows at most that a lens is found from.
SOME = 4096


class Centres:
    """Rows in the order in which they became centres, with what comparisons need of them. They only ever grow.

    There is one of these in each process that works on a selection. `positions` are −1 for centres that were given.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.count = 0
        self.shortest = math.inf  # smallest norm
        self.lens = Lens()
        self.exact = Exact(Rows(()), None)
        self.view = View(Rows(()), torch.empty(0))
        self.sq_norms = torch.empty(0)
        self.positions = np.empty(0, dtype=np.int64)
        self.outlines: Tensor | None = None  # where they pay

    @property
    def width(self) -> int:
        """Numbers per row."""
        return sum(f.shape[1] for f in self.exact.rows.factors)

    def add(self, rows: Rows, positions: NDArray[np.int64]) -> None:
        """More centres."""
        if not len(rows):
            return
        sq_norms = rows.sq_norms(torch.float64)
        self.shortest = min(self.shortest, math.sqrt(float(sq_norms.min())))
        rounded = sq_norms.to(rows.factors[0].dtype)
        check_norms(rounded)
        exact = Exact.of(rows)
        view = self.lens.look(exact)
        begin, self.count = self.count, self.count + len(rows)
        self.positions = np.concatenate([self.positions, positions])
        if not begin:
            self.exact, self.view, self.sq_norms = exact, view, rounded
        else:
            self.exact = Exact(_grown(self.exact.rows, begin, exact.rows), self.exact.sq_norms)
            if exact.sq_norms is not None and self.exact.sq_norms is not None:
                self.exact = Exact(self.exact.rows, _appended(self.exact.sq_norms, begin, exact.sq_norms))
            plain = self.lens.sketch is None and self.lens.origin is None
            seen = self.exact.rows if plain else _grown(self.view.rows, begin, view.rows)
            self.view = View(seen, _appended(self.view.sq_norms, begin, view.sq_norms))
            self.sq_norms = _appended(self.sq_norms, begin, rounded)
        if outlines_pay(rows):
            new = outlines(rows)
            self.outlines = new if self.outlines is None else _appended(self.outlines, begin, new)
        if begin < self.tuning.origin_from <= self.count:
            self._look_through(Lens(origin=far_origin(self._some())))
        if begin < self.tuning.sketch_from <= self.count:
            plain_lens = Lens(origin=self.lens.origin)
            self._look_through(Lens(useful_sketch(plain_lens(self._some()).rows), plain_lens.origin))

    def since(self, count: int) -> Rows:
        """The centres from number `count` on."""
        return self.exact.rows[count : self.count]

    def _some(self) -> Rows:
        """The centres, or an even choice of SOME where there are more: a lens is found from either."""
        if self.count <= SOME:
            return self.since(0)
        return self.exact.rows[torch.linspace(0, self.count - 1, SOME, device=self.sq_norms.device).long()]

    def _look_through(self, lens: Lens) -> None:
        """Make estimates through another lens, if it is one, from now on."""
        if lens.sketch is not None or lens.origin is not None:
            self.lens, self.view = lens, lens(self.since(0))

    def within_reach(self, sq_norms: Tensor, best: Tensor, first: int) -> Tensor:
        """Numbers of the centres from `first` on that could be nearer than `best` to some row: |‖c‖ − ‖x‖| < D(x)."""
        norms = self.view.sq_norms[first : self.count].sqrt()
        reach = math.sqrt(float(best.max()))
        low, high = math.sqrt(float(sq_norms.min())) - reach, math.sqrt(float(sq_norms.max())) + reach
        return ((norms > low - REACH_SLACK * high) & (norms < high * (1 + REACH_SLACK))).nonzero()[:, 0].add_(first)

    def in_outline(self, rows: Rows, limits: Tensor, some: Tensor, room: Tensor) -> Tensor:
        """Those of some centres whose estimate from outlines is below the limit of one of the rows."""
        if self.outlines is None:
            return some
        mine, heights = outlines(rows).mul_(2), self.view.sq_norms * (1 - self.lens.rounding(self.view))
        kept = []
        for part in torch.split(some, max(1, len(room) // len(rows))):
            others = self.outlines.index_select(0, part)
            inner = torch.mm(mine, others.T, out=room[: len(mine) * len(part)].view(len(mine), len(part)))
            kept.append(part[inner.abs_().add_(limits[:, None]).amax(dim=0) > heights[part]])
        return torch.cat(kept)

    def parts(self, some: Tensor) -> list[slice] | list[Tensor]:
        """Some centres in parts, the newest first: they rule more rows out."""
        if not len(some):
            return []
        size, first, last = self.tuning.part, int(some[0]), int(some[-1])
        if len(some) > self.tuning.reachable * (last + 1 - first):
            return [slice(max(end - size, first), end) for end in range(last + 1, first, -size)]
        return [some[max(end - size, 0) : end] for end in range(len(some), 0, -size)]


def _appended(buffer: Tensor, used: int, new: Tensor) -> Tensor:
    """`new` behind the `used` first rows of a buffer, which grows by a quarter where it is full."""
    end = used + len(new)
    if end > len(buffer):
        larger = buffer.new_empty(max(end, len(buffer) + len(buffer) // 4 + 1024), *buffer.shape[1:])
        larger[:used] = buffer[:used]
        buffer = larger
    buffer[used:end] = new
    return buffer


def _grown(buffer: Rows, used: int, new: Rows) -> Rows:
    return Rows(tuple(_appended(b, used, n) for b, n in zip(buffer.factors, new.factors, strict=True)))
