"""How far every row is from its nearest centre: upper bounds that are tightened where it matters.

Adding a centre can only lower a row's squared distance to its nearest centre. So what was once found of it is an upper
bound for ever, and a sampler can work from bounds: it brings the few rows that it considers up to date and leaves the
others alone. Bounds only save work. They never decide: whether a row's distance is above a threshold, and what it is,
comes out the same whatever was known before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.threads import chosen
from badge.features import Exact, Features, Rows
from badge.features.rows import LARGE_TILE_BYTES
from badge.samplers.nearest.centres import Centres
from badge.samplers.nearest.few import within
from badge.samplers.nearest.lens import Lens, Probe, View
from badge.samplers.nearest.lowest import Lowest
from badge.samplers.nearest.outlines import label_blocks

#: The share that is added to a bound made from squared norms, which are rounded to float32.
NORM_SLACK = 1e-6


def sum_of_norms(sq_norms: Tensor, reach: float) -> Tensor:
    """(‖x‖ + reach)², rounded up, in float64: above ‖x − c‖² for every c of norm `reach`. A function of one row alone."""
    tiny = torch.finfo(sq_norms.dtype).tiny  # a squared norm that vanished in float32
    return sq_norms.double().sqrt().add_(reach).square_().mul_(1 + NORM_SLACK).add_(tiny)


#: Rows that are searched at a time for those that are not centres.
LOOKED_AT = 2**20


@dataclass(eq=False)
class Group:
    """Rows that are compared with centres together."""

    place: Tensor  # of each among the rows that were asked for
    exact: Exact
    sq_norms: Tensor
    probe: Probe
    best: Tensor  # the smallest squared distance known of each
    enough: Tensor  # a row at most this far is not followed further

    def __len__(self) -> int:
        return len(self.place)

    def __getitem__(self, which: Tensor) -> Group:
        place, sq_norms, best, enough = (x[which] for x in (self.place, self.sq_norms, self.best, self.enough))
        return Group(place, self.exact[which], sq_norms, self.probe[which], best, enough)


class Bounds:
    """Upper bounds on the squared distances of all rows to their nearest centres.

    The smaller of `sq_dists[i]` and the distances to the centres from number `seen[i]` on is the squared distance: what
    is kept is either what the first `seen[i]` centres give, or not below what a later one gives. `seen` is on the host,
    wherever the rows are: it tells which products to make.
    """

    def __init__(self, features: Features, centres: Centres) -> None:
        n, device = len(features), features.device
        self.features, self.centres, self.tuning = features, centres, centres.tuning
        self.sq_dists = torch.full((n,), torch.inf, dtype=torch.float64, device=device)
        self.seen = np.zeros(n, dtype=np.int32)
        self.glanced = np.zeros(n, dtype=np.int32)  # centres that a glance has compared each row with
        self.room = torch.empty(0, dtype=features.dtype, device=device)  # for products

    def at(self, index: Tensor) -> Tensor:
        """Upper bounds of some rows. D(x) ≤ ‖x‖ + ‖c‖ for the shortest centre c costs no product."""
        by_norm = sum_of_norms(self.features.sq_norms[index], self.centres.shortest)
        return torch.minimum(self.sq_dists[index], by_norm)

    def above(self, ids: NDArray[np.int64], index: Tensor, thresholds: Tensor) -> tuple[Rows, Tensor]:
        """The rows `ids` (as a tensor, `index`), and which of them are further than their threshold from every centre."""
        rows, centres = self.features.rows(index), self.centres
        if centres.at_once(len(ids) * centres.count):
            sq_norms = self.features.sq_norms[index], centres.sq_norms[: centres.count]
            found = within(rows, centres.since(0), thresholds.numpy(), sq_norms).any(axis=1)
            near = torch.from_numpy(found)
            self.sq_dists.scatter_reduce_(0, index[near], thresholds[near], "amin")
            return rows, ~near
        return rows, self._lower(ids, index, Exact.of(rows), thresholds, decide=True) > thresholds

    def update(self, ids: NDArray[np.int64], index: Tensor, enough: float = -np.inf) -> tuple[Exact, Tensor]:
        """The rows `ids`, and on the host their squared distances, exact but for those found to be at most `enough` away."""
        exact = Exact.of(self.features.rows(index))
        limits = torch.full((len(ids),), enough, dtype=torch.float64, device=index.device)
        found = self._lower(ids, index, exact, limits, decide=False).cpu()
        self.seen[ids[found.numpy() > enough]] = self.centres.count
        return exact, found

    def update_all(self) -> None:
        """Bring every row up to date: `sq_dists` are then the squared distances themselves."""
        for start in range(0, len(self.seen), LOOKED_AT):
            rows = (self.sq_dists[start : start + LOOKED_AT] > 0).nonzero()[:, 0].add_(start)
            rows = rows[
                self.features.sq_norms[rows].argsort()
            ]  # tiles of about one length: fewer centres could be near
            for index in torch.split(rows, self.tuning.tile) if len(rows) else ():
                self.update(index.cpu().numpy(), index)

    def first_glance(self, most: int) -> int:
        """Lower all bounds by all centres, or by `most` of them, which do not count; the number of those that do."""
        some = torch.arange(self.centres.count, device=self.sq_dists.device)
        if len(some) > most:
            some = some[torch.linspace(0, len(some) - 1, most, device=some.device).long()]
        else:
            self.glanced[:] = self.centres.count
        self._glance(list(self.features.tiles(LARGE_TILE_BYTES, beside=len(some))), some)
        return self.centres.count if len(some) == self.centres.count else 0

    def glance(self, above: float) -> int:
        """Lower the bounds above `above` by the centres since the last glance at each row; the number of these rows.

        These are upper estimates, and no row counts as having seen the centres.
        """
        index = chosen(self.sq_dists > above)
        ids, count = index.cpu().numpy(), self.centres.count
        for since in np.unique(self.glanced[ids]).tolist():
            group = index[torch.from_numpy(self.glanced[ids] == since).to(index.device)]
            some = torch.arange(since, count, device=index.device)
            size = max(1, LARGE_TILE_BYTES // ((self.features.width + len(some)) * self.features.dtype.itemsize))
            self._glance(torch.split(group, size), some)
        self.glanced[ids] = count
        return len(ids)

    def _glance(self, tiles: Sequence[slice | Tensor], centres: Tensor) -> None:
        lens = Lens(origin=self.centres.lens.origin)
        for some in torch.split(centres, self.tuning.part) if len(centres) else ():
            views = lens(self.centres.exact.rows[some])
            for tile in tiles:
                rows = lens(self.features.rows(tile), self.features.sq_norms[tile])
                self.sq_dists[tile] = torch.minimum(self.sq_dists[tile], lens.nearest(rows, views))

    def _lower(self, ids: NDArray[np.int64], index: Tensor, exact: Exact, enough: Tensor, decide: bool) -> Tensor:
        """Compare rows with the centres that they have not seen; what is known of their squared distances after that.

        With `decide` only the side of `enough` on which a distance lies matters. Rows go together if the numbers of centres
        that they lack are within a factor of two. On a GPU all go together, so that the host waits less often.
        """
        seen, lens = self.seen[ids], self.centres.lens
        sq_norms = self.features.sq_norms[index]
        probe = lens.probe(lens(exact.rows, sq_norms))
        found = self.at(index)
        everyone = Group(torch.arange(len(ids), device=index.device), exact, sq_norms, probe, found.clone(), enough)
        kinds = np.log2(np.maximum(self.centres.count - seen, self.tuning.young)).astype(np.int64)
        kinds[np.bincount(kinds)[kinds] < self.tuning.few] = kinds.max()
        if index.device.type != "cpu" or kinds.min() == kinds.max():
            self._compare(everyone, int(seen.min()), found, decide)
        else:
            for kind in np.unique(kinds):
                members = np.flatnonzero(kinds == kind)
                self._compare(everyone[torch.from_numpy(members)], int(seen[members].min()), found, decide)
        self.sq_dists.scatter_reduce_(0, index, found, "amin")  # a row may be there more than once
        return found

    def _compare(self, group: Group, first: int, found: Tensor, decide: bool) -> None:
        """Lower what was `found` of a group by the centres from number `first` on: the newest rule out most rows,
        then lengths and outlines most centres."""
        centres, last = self.centres, self.centres.count
        older = last - self.tuning.newest
        pays = centres.leaves_out and (centres.outlined or not decide)  # rows that are only decided are of all lengths
        if not pays or older - first < self.tuning.part:
            self._follow(group, centres.parts(first, last), found, decide)
            return
        group = self._follow(group, centres.parts(older, last), found, decide)
        if not len(group):
            return
        self._make_room(max(self.tuning.part * self.tuning.tile, len(group)))
        blocks = [group]
        if centres.outlined:
            blocks = [group[places] for places in label_blocks(group.exact.rows, self.tuning.few)]
        for block in blocks:
            view = View(block.exact.rows, block.sq_norms)
            left = centres.possible(view, block.probe, goal(block, decide), first, older, self.room)
            self._follow(block, left, found, decide)

    def _follow(self, group: Group, parts: Sequence[slice | Tensor], found: Tensor, decide: bool) -> Group:
        """Compare a group with parts of the centres; those of its rows that are still to be followed.

        Estimates, which are never above the distances, rule out most centres; the others are compared in float64.
        """
        for part in parts:
            view = self.centres.view[part]
            self._make_room(len(view.rows.factors) * len(group) * len(view.rows))
            low = Lowest(self.centres.lens.estimates(group.probe, view, self.room))
            # The most promising centre of each row first, then those that still may be nearer.
            left = chosen(low.values < group.probe.limits(goal(group, decide)))
            if not len(left):
                continue
            first = low.places(left)
            group.best[left] = torch.minimum(group.best[left], self._exact(group, left, part, first))
            i, j = low.below(left, group.probe.limits(goal(group, decide))[left])
            other = chosen(j != first[i])
            i, j = left[i[other]], j[other]
            group.best.scatter_reduce_(0, i, self._exact(group, i, part, j), "amin")
            follow = chosen(group.best > group.enough)
            if len(follow) < self.tuning.follow * len(group):
                found[group.place] = group.best
                group = group[follow]
                if not len(group):
                    return group
        found[group.place] = group.best
        return group

    def _exact(self, group: Group, i: Tensor, part: slice | Tensor, j: Tensor) -> Tensor:
        """Squared distances of the rows i of a group to the centres j of a part."""
        j = j + part.start if isinstance(part, slice) else part[j]
        return group.exact.sq_dists(i, self.centres.exact, j)

    def _make_room(self, size: int) -> None:
        if len(self.room) < size:
            self.room = self.room.new_empty(size)


def goal(group: Group, decide: bool) -> Tensor:
    """What squared distances matter to the rows of a group."""
    matters = torch.minimum(group.best, group.enough) if decide else group.best
    return matters.masked_fill(group.best <= group.enough, -torch.inf)
