"""K-means clustering by Lloyd's iteration, from centres that k-means++ chose."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from badge.core.numbers import whole
from badge.features import Dense, Features, Rows
from badge.samplers.checks import sampler
from badge.samplers.kmeanspp import kmeanspp

__all__ = ["lloyd"]


@sampler
def lloyd(features: Features, k: int, rng: np.random.Generator, iterations: int = 50) -> Tensor:
    """The cluster of every row, a number below k, [N]. Stops when no row changes its cluster, or after `iterations`.

    Lloyd (1982): each row goes to its nearest centre, each centre to the mean of its rows. A centre without rows stays.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [9.0], [9.1]])
    >>> found = lloyd(x, 2, np.random.default_rng(0)).tolist()
    >>> found[0] == found[1], found[2] == found[3], found[0] == found[2]
    (True, True, False)
    """
    first = features.rows(torch.from_numpy(kmeanspp(features, k, rng)).to(features.device))
    start = first.as_matrix().double()
    origin = start.mean(dim=0)  # distances do not depend on it, and have lost their digits far from it
    centres = start - origin
    cluster = torch.full((len(features),), -1, dtype=torch.int64, device=features.device)
    for _ in range(whole(iterations, "iterations")):
        sums, counts = torch.zeros_like(centres), centres.new_zeros(k)
        changed = False
        for tile in features.tiles():
            x = _about(features.rows(tile), origin)
            near = Rows((centres.to(x.factors[0].dtype),))
            nearest = x.sq_dists(near).argmin(dim=1)
            changed |= bool((nearest != cluster[tile]).any())
            cluster[tile] = nearest
            sums.index_add_(0, nearest, x.factors[0].double())
            counts += torch.bincount(nearest, minlength=k)
        if not changed:
            break
        centres = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centres)
    return cluster


def nearest_mean_distance(features: Dense, rows: Tensor, neighbours: int) -> Tensor:
    """The mean distance of each of `rows` to its `neighbours` nearest others among them, [n], in float64."""
    every = features.rows(rows)
    x = _about(every, every.as_matrix().double().mean(dim=0))
    means = torch.empty(len(rows), dtype=torch.float64, device=features.device)
    step = max(1, 2**22 // len(rows))  # a block of distances of some 16 MB
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        sq_dists = x[block].sq_dists(x)
        at = torch.arange(len(sq_dists), device=sq_dists.device)
        sq_dists[at, at + start] = torch.inf  # itself
        means[block] = sq_dists.topk(neighbours, dim=1, largest=False).values.double().sqrt().mean(dim=1)
    return means


def _about(rows: Rows, origin: Tensor) -> Rows:
    """Rows as seen from `origin`, in float32 unless they are float64."""
    x = rows.as_matrix()
    return Rows(((x.double() - origin).to(x.dtype if x.dtype == torch.float64 else torch.float32),))
