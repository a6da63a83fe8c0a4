"""The centres so far, and which of them could be near."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from badge.features import Exact, Rows
from badge.samplers.nearest.lens import Lens, View
from badge.samplers.nearest.tuning import Tuning

__all__ = ["Centres"]

#: |‖c‖ − ‖x‖| is compared with D(x) in float32, from norms that were rounded: so much of ‖x‖ + D(x) is allowed for that.
REACH_SLACK = 1e-5


class Centres:
    """Rows in the order in which they became centres, with what comparisons need of them. They only ever grow."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.count = 0
        self.shortest = math.inf  # smallest norm, as far as it is known
        self.lens = Lens()
        self.exact = Exact(Rows(()), None)
        self.view = View(Rows(()), torch.empty(0))

    def add(self, rows: Rows) -> None:
        """More centres."""
        if not len(rows):
            return
        exact, view = Exact.of(rows), self.lens(rows)
        if not self.count:
            self.exact, self.view = exact, view
        begin, self.count = self.count, self.count + len(rows)
        if begin:
            self.exact = Exact(_grown(self.exact.rows, begin, exact.rows), self.exact.sq_norms)
            if exact.sq_norms is not None and self.exact.sq_norms is not None:
                self.exact = Exact(self.exact.rows, _appended(self.exact.sq_norms, begin, exact.sq_norms))
            plain = self.lens.sketch is None and self.lens.origin is None
            seen = self.exact.rows if plain else _grown(self.view.rows, begin, view.rows)
            self.view = View(seen, _appended(self.view.sq_norms, begin, view.sq_norms))

    def look_through(self, lens: Lens) -> None:
        """Estimates are made through another lens from now on."""
        self.lens = lens
        if self.count:
            self.view = lens(self.exact.rows[: self.count])

    def within_reach(self, sq_norms: Tensor, best: Tensor, first: int) -> list[slice] | list[Tensor]:
        """Parts of the centres from `first` on that could be nearer than `best` to some row: |‖c‖ − ‖x‖| < D(x).

        The newest come first: they rule more rows out.
        """
        norms, size = self.view.sq_norms[first : self.count].sqrt(), self.tuning.part
        reach = math.sqrt(float(best.max()))
        low, high = math.sqrt(float(sq_norms.min())) - reach, math.sqrt(float(sq_norms.max())) + reach
        kept = ((norms > low - REACH_SLACK * high) & (norms < high * (1 + REACH_SLACK))).nonzero()[:, 0]
        if len(kept) > self.tuning.reachable * len(norms):
            return [slice(max(end - size, first), end) for end in range(self.count, first, -size)]
        return [kept[max(end - size, 0) : end] + first for end in range(len(kept), 0, -size)]


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
