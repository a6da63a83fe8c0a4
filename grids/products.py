"""`badge grid` for small pools of wide rows: the products of all pairs are kept from batch to batch, and the picks stay.

    python grids/products.py grids/frozen.toml --out runs-frozen/ --skip results/frozen.csv.gz

`uherding`, `maxherding` and `probcover` take bounds from products of pairs of rows. In an experiment on a frozen encoder
all batches of all runs ask for the same pairs. Products only guide these samplers, and float64 decides. So a cell has the
picks of `badge grid` (tests/results/test_products.py) in less time, and its `select_seconds` are not those of `badge`.
A process keeps 4 N² bytes: in memory for up to IN_MEMORY rows, else in a file in the folder for temporary files, 14 GB for
60,000 rows. Give such pools one worker and a machine whose cache holds the file. Pools of more than MOST rows are left alone.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from badge.features import Features, Rows
from badge.samplers import coverage
from badge.samplers.cover import Cover

#: Rows of the largest pool whose products are kept, and of the largest whose products are in memory.
MOST, IN_MEMORY = 65_536, 12_000


class Pairs:
    """The products of all pairs of rows of one pool."""

    def __init__(self, x: Tensor) -> None:
        keys = _keys(x)
        self.order = np.argsort(keys)
        self.keys = keys[self.order]
        self.products = torch.empty(len(x), len(x)) if len(x) <= IN_MEMORY else in_file(len(x))
        for start in range(0, len(x), 1024):
            torch.mm(x[start : start + 1024], x.T, out=self.products[start : start + 1024])

    def places(self, x: Tensor) -> Tensor | None:
        """Where these rows are among those of the pool; None if one of them is not."""
        wanted = _keys(x)
        if wanted.dtype != self.keys.dtype:  # rows of another width
            return None
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return torch.from_numpy(self.order[found]) if (self.keys[found] == wanted).all() else None


def in_file(n: int) -> Tensor:
    """A matrix [n, n] in a file that is gone when the matrix is."""
    with tempfile.NamedTemporaryFile() as file:
        return torch.from_file(file.name, shared=True, size=n * n).view(n, n)


class Known:
    """Some rows of the pool, by their places: they know their products."""

    def __init__(self, products: Tensor, places: Tensor) -> None:
        self.products, self.places = products, places

    def __len__(self) -> int:
        return len(self.places)

    def gram(self, other: Known, room: Tensor) -> Tensor:
        first, last = map(int, other.places.aminmax())
        if not len(other) <= last - first + 1 <= 2 * len(other):
            return self.products[self.places[:, None], other.places]
        found = self.products[:, first : last + 1].index_select(0, self.places)  # neighbours: rows are copied
        return found if found.shape[1] == len(other) else found.index_select(1, other.places - first)


def _keys(x: Tensor) -> Any:
    """The bytes of each row."""
    return x.contiguous().numpy().view(np.dtype((np.void, 4 * x.shape[1])))[:, 0]


_kept: list[Pairs] = []  # of one pool at a time
_read, _rows = Cover._read, Cover.rows


def _pairs(features: Features) -> tuple[Pairs, Tensor] | None:
    if len(features) > MOST or features.dtype != torch.float32 or len(features.factors) > 1:
        return None
    x = features.rows(slice(None)).as_matrix()
    places = _kept[0].places(x) if _kept else None
    if places is None:
        _kept[:] = [Pairs(x)]
        places = _kept[0].places(x)
    assert places is not None
    return _kept[0], places


def read(self: Any, features: Features, tiny: float) -> None:
    _read(self, features, tiny)
    self.pairs = _pairs(features)


def rows(self: Any, ids: slice | Tensor, through: Rows | None) -> Any:
    if through is not None or self.pairs is None:
        return _rows(self, ids, through)
    return Known(self.pairs[0].products, self.pairs[1][ids])


def keep_products() -> None:
    """From now on, in this process."""
    Cover._read, Cover.rows = read, rows  # type: ignore[method-assign]
    vars(sys.modules[coverage.__module__])["sketched"] = lambda features, kernel: None


if __name__ in ("__main__", "__mp_main__"):  # the script, and processes that it starts
    keep_products()
if __name__ == "__main__":
    from badge.cli import main

    sys.argv[1:1] = ["grid"]
    main()
