"""Margin with weighted k-means: uncertain examples, spread over the pool."""

import math

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.core.numbers import positive
from badge.features import Dense
from badge.outputs import Outputs
from badge.samplers.lloyd import lloyd_from
from badge.strategies.protocol import Picks, listed
from badge.strategies.uncertainty import doubt


@listed("wkmeans")
def wkmeans(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, beta: float = 10.0) -> Picks:
    """Weighted k-means over the smallest margins (Zhdanov 2019, "Diverse mini-batch Active Learning", arXiv 1901.05954).

    The β·k examples of smallest margin are clustered into k clusters of their embeddings, with weights 1 − margin
    (k-means++, then Lloyd). Each centre gives the nearest example that is not taken yet. β = ∞ clusters the whole pool. Of
    equally near candidates the smaller margin wins, and `rng` decides between equal margins; if the whole pool is clustered
    the lowest position wins.

    Cluster-Margin (Citovsky et al. 2021, NeurIPS) clusters the whole pool once, by hierarchical agglomerative clustering and
    without weights; for each batch it takes the smallest margins and goes through their clusters round-robin, from the
    smallest cluster up. This clusters the candidates of each batch, with weights, and takes the nearest to each centre.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5]] * 4 + [[1.0, 0.0]], [[0.0], [0.1], [9.0], [9.1], [5.0]])
    >>> sorted(i // 2 for i in wkmeans(out, 2, np.random.default_rng(0), beta=2).tolist())
    [0, 1]
    """
    n, wanted, weights = len(outputs), positive(beta, "beta", finite=False) * k, doubt(outputs)
    size = n if wanted >= n else max(k, math.ceil(wanted))
    some = torch.arange(n) if size == n else torch.from_numpy(samplers.topk(weights.numpy(force=True), size, rng))
    some = some.to(outputs.device)
    x = Dense.trusted(outputs.embeddings.index_select(0, some))
    first = x.rows(torch.from_numpy(samplers.kmeanspp(x, k, rng)).to(x.device)).as_matrix()
    return some.numpy(force=True)[nearest_distinct(x, lloyd_from(x, first, weights=weights[some])[1])]


def nearest_distinct(x: Dense, centres: Tensor) -> Picks:
    """For each centre in turn the nearest row that no earlier centre took."""
    picks, taken = [], torch.zeros(len(x), dtype=torch.bool, device=x.device)
    origin = centres.mean(dim=0)
    rows = (x.as_matrix().double() - origin).to(x.dtype)
    sq_norms = rows.square().sum(dim=1)
    for part in torch.split((centres - origin).to(x.dtype), max(1, 2**22 // len(x))):
        for sq_dists in sq_norms - 2 * part @ rows.T:
            picks.append(int(sq_dists.masked_fill_(taken, torch.inf).argmin()))
            taken[picks[-1]] = True
    return np.array(picks, dtype=np.int64)
