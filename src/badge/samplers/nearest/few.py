"""Few rows against few others, at once: products decide nearly all pairs, and no bounds are kept."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Exact, Rows
from badge.features.rows import resolution
from badge.samplers.nearest.lens import VANISHED


def within(
    x: Rows, y: Rows, limits: NDArray[np.float64], sq_norms: tuple[Tensor, Tensor] | None = None
) -> NDArray[np.bool_]:
    """Whether ‖x_i − y_j‖² is at most the limit of x_i, [n, m], for rows on the host.

    `sq_norms` are those of x and of y. Where y is x they come from the product.

    >>> x = Rows((torch.tensor([[0.0], [3.0], [4.0]]),))
    >>> within(x, x, np.array([0.0, 1.0, 16.0])).tolist()
    [[True, False, False], [False, True, True], [True, True, True]]
    """
    inner, dtype = x.gram(y).numpy(), x.factors[0].dtype
    mine, others = (inner.diagonal(),) * 2 if sq_norms is None else (some.numpy() for some in sq_norms)
    sums = mine[:, None] + others
    above = sums - 2 * inner - limits[:, None]
    found: NDArray[np.bool_] = above <= 0
    slack = resolution(dtype) * (8 + sum(f.shape[1] for f in x.factors))
    unsure = np.abs(above) <= slack * sums + 3 * VANISHED * torch.finfo(dtype).tiny
    if unsure.any():
        i, j = np.nonzero(unsure)
        exact = Exact.of(x)
        sq_dists = exact.sq_dists(torch.from_numpy(i), exact if x is y else Exact.of(y), torch.from_numpy(j))
        found[i, j] = sq_dists.numpy() <= limits[i]
    return found
