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
    """The cluster of every row, a number below k, [N]: until no row changes its cluster, or for so many `iterations`.

    Lloyd (1982): each row goes to its nearest centre, each centre to the mean of its rows. A centre without rows stays.

    >>> import badge, numpy as np
    >>> x = badge.Dense([[0.0], [0.1], [9.0], [9.1]])
    >>> found = lloyd(x, 2, np.random.default_rng(0)).tolist()
    >>> found[0] == found[1], found[2] == found[3], found[0] == found[2]
    (True, True, False)
    """
    first = features.rows(torch.from_numpy(kmeanspp(features, k, rng)).to(features.device))
    centres = first.as_matrix().double()
    cluster = torch.full((len(features),), -1, dtype=torch.int64, device=features.device)
    for _ in range(whole(iterations, "iterations")):
        sums, counts = torch.zeros_like(centres), centres.new_zeros(k)
        near, changed = Rows((centres.to(features.dtype),)), False
        for tile in features.tiles():
            x = Rows((features.rows(tile).as_matrix(),))
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
    x = features.rows(rows)
    means = torch.empty(len(rows), dtype=torch.float64, device=features.device)
    step = max(1, 2**22 // len(rows))  # a block of distances of some 16 MB
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        sq_dists = x[block].sq_dists(x)
        at = torch.arange(len(sq_dists), device=sq_dists.device)
        sq_dists[at, at + start] = torch.inf  # itself
        means[block] = sq_dists.topk(neighbours, dim=1, largest=False).values.double().sqrt().mean(dim=1)
    return means
