"""The pool in tiles of similar norm, and which of them are worth bringing up to date as a whole."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Tiles"]

#: Rows that are sorted together. A sort needs three times the memory of its result, so a large pool is sorted in parts.
SORTED = 2**20


class Tiles:
    """What single rows of each tile have cost since it was up to date, in centres compared.

    >>> tiles = Tiles(torch.tensor([9.0, 1.0, 4.0, 16.0]), size=2)
    >>> tiles.members(0).tolist(), tiles.members(1).tolist()
    ([1, 2], [0, 3])
    >>> tiles.charge(tiles.of(torch.tensor([3, 0]), torch.tensor([16.0, 9.0])), columns=5)
    >>> tiles.due(count=4), tiles.due(count=6)
    ([1], [])
    """

    def __init__(self, sq_norms: Tensor, size: int) -> None:
        self.size = min(size, len(sq_norms))
        parts = [sq_norms[start : start + SORTED] for start in range(0, len(sq_norms), SORTED)]
        self.order = torch.empty(len(sq_norms), dtype=torch.int32, device=sq_norms.device)
        self.edges, self.first = [], []  # per part: the smallest norm of each tile, and the number of its first tile
        tiles: list[slice] = []
        for p, part in enumerate(parts):
            start = p * SORTED
            values, order = part.sort()
            self.order[start : start + len(part)] = order.add_(start).to(torch.int32)
            self.edges.append(values[:: self.size].clone())
            self.first.append(len(tiles))
            stop = start + len(part)
            tiles += [slice(s, min(s + self.size, stop)) for s in range(start, stop, self.size)]
        self.tiles = tiles
        self.spent = torch.zeros(len(tiles), dtype=torch.int64, device=sq_norms.device)
        self.seen = torch.zeros(len(tiles), dtype=torch.int64, device=sq_norms.device)

    def members(self, tile: int) -> Tensor:
        """The rows of a tile."""
        return self.order[self.tiles[tile]].long()

    def of(self, ids: Tensor, sq_norms: Tensor) -> Tensor:
        """The tile of each of the rows `ids`, of these squared norms (one beside it where norms are equal)."""
        tile, part = torch.empty_like(ids), ids // SORTED
        for p, edges in enumerate(self.edges):
            mine = part == p
            tile[mine] = torch.searchsorted(edges, sq_norms[mine], right=True).clamp_(min=1) + (self.first[p] - 1)
        return tile

    def charge(self, tile: Tensor, columns: int) -> None:
        """Rows of these tiles were compared with so many centres."""
        self.spent.index_add_(0, tile, torch.full_like(tile, columns))

    def due(self, count: int) -> list[int]:
        """Tiles whose rows have cost as much one by one as the whole tile would against the centres that it lacks."""
        lacking = count - self.seen
        due: list[int] = ((self.spent >= self.size * lacking) & (lacking > 0)).nonzero()[:, 0].tolist()
        return due

    def settled(self, tile: int, count: int) -> None:
        """The tile is up to date with so many centres."""
        self.seen[tile], self.spent[tile] = count, 0
