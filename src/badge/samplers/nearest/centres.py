"""The centres so far, and which of them could be near."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Rows
from badge.features.rows import check_norms
from badge.samplers.nearest.lens import Lens, Probe, View, far_origin
from badge.samplers.nearest.outlines import outlines, outlines_pay
from badge.samplers.nearest.sketch import useful_sketch
from badge.samplers.nearest.tuning import Tuning

#: Rows at most that a lens is found from.
SOME = 4096
#: The share by which lengths are widened, which is more than their rounding.
WIDER = 1e-3
#: Centres in one product on a device, in parts of the tuning: each product is followed by one wait.
PARTS_THERE = 8


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
        """Add centres."""
        if not len(rows):
            return
        sq_norms = rows.sq_norms(torch.float64)
        least, largest = torch.stack(torch.aminmax(sq_norms)).tolist()
        self.shortest = min(self.shortest, math.sqrt(least))
        rounded = sq_norms.to(rows.factors[0].dtype)
        check_norms(largest, rounded.dtype)
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
        if outlines_pay(rows):  # not on a device: to leave centres out the host would wait
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

    def parts(self, first: int, last: int) -> list[slice]:
        """The centres from `first` up to `last` in parts, the newest first: they rule more rows out."""
        size = self.tuning.part * (1 if self.sq_norms.device.type == "cpu" else PARTS_THERE)
        return [slice(max(end - size, first), end) for end in range(last, first, -size)]

    def at_once(self, pairs: int) -> bool:
        """Whether these pairs are compared at once. Far from 0 products decide too few; on a device the host would wait."""
        return pairs <= self.tuning.at_once and self.lens.origin is None and self.sq_norms.device.type == "cpu"

    @property
    def leaves_out(self) -> bool:
        """Whether centres that cannot be near are left out of products. On a device the host would wait for which."""
        return self.sq_norms.device.type == "cpu" and self.lens.origin is None

    @property
    def outlined(self) -> bool:
        """Whether outlines rule centres out."""
        return self.outlines is not None and self.lens.sketch is None

    def possible(
        self, view: View, probe: Probe, goal: Tensor, first: int, last: int, room: Tensor
    ) -> list[slice] | list[Tensor]:
        """`parts`, without the centres that lengths and outlines rule out for every row of the plain view."""
        some = self._of_length(view.sq_norms, goal, first, last)
        if self.outlined:
            some = self._in_outline(view.rows, probe.limits(goal), some, room)
        if len(some) > self.tuning.outlined * (last - first):
            return self.parts(first, last)
        return [some[max(end - self.tuning.part, 0) : end] for end in range(len(some), 0, -self.tuning.part)]

    def _of_length(self, sq_norms: Tensor, goal: Tensor, first: int, last: int) -> Tensor:
        """Centres whose length allows them to be within the goal of some row: lengths differ by no more than the distance.

        The range of lengths is rounded outwards, by more than the rounding of squares, also of those that vanish.
        """
        norms, vanished = sq_norms.double().sqrt(), 2 * math.sqrt(torch.finfo(sq_norms.dtype).tiny)
        spread = goal.clamp(min=0).sqrt().add_(norms, alpha=WIDER).add_(vanished)
        low, high = (norms - spread).amin().clamp(min=0), (norms + spread).amax()
        mine = self.sq_norms[first:last]
        inside = (mine >= low.square() * (1 - WIDER)) & (mine <= high.square() * (1 + WIDER))
        found: Tensor = inside.nonzero()[:, 0].add_(first)
        return found

    def _in_outline(self, rows: Rows, limits: Tensor, some: Tensor, room: Tensor) -> Tensor:
        """Those of some centres that outlines do not rule out for every row."""
        assert self.outlines is not None
        mine, rounding, kept = outlines(rows).mul_(2), 1 - self.lens.rounding(self.view), [some[:0]]
        for part in torch.split(some, max(1, len(room) // len(rows))) if len(some) else ():
            shape = len(mine), len(part)
            outlined = self.outlines.index_select(0, part)
            inner = torch.mm(mine, outlined.T, out=room[: math.prod(shape)].view(shape))
            high = inner.abs_().add_(limits[:, None]).amax(dim=0) > self.view.sq_norms.index_select(0, part) * rounding
            kept.append(part[high])
        return torch.cat(kept)


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
