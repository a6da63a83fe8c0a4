"""The k largest scores: the sampler of confidence, margin and entropy sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from badge.core.arrays import as_array, name_rows
from badge.core.rng import check_rng
from badge.errors import InputError
from badge.samplers.checks import check_k

__all__ = ["topk"]


def topk(scores: NDArray[np.floating], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions of the k largest scores, largest first; ties are broken by the rng and not by position.

    >>> import numpy as np
    >>> topk(np.array([0.1, 0.9, 0.5]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    scores = as_array(scores, "scores")
    if scores.ndim != 1 or scores.dtype.kind not in "fiu":
        raise InputError(f"scores must be one number per example, not {scores.dtype} of shape {scores.shape}")
    unordered = np.flatnonzero(np.isnan(scores))
    if len(unordered):
        raise InputError(f"scores hold NaN in {name_rows(unordered)}: NaN is neither above nor below another score")
    n = len(scores)
    k = check_k(k, n)
    check_rng(rng)
    threshold = np.partition(scores, n - k)[n - k]
    above = np.flatnonzero(scores > threshold)
    level = rng.choice(np.flatnonzero(scores == threshold), size=k - len(above), replace=False)
    above = rng.permutation(above)  # a stable sort leaves equal scores in this random order
    picks: NDArray[np.int64] = np.concatenate([above[np.argsort(-scores[above], kind="stable")], level]).astype(
        np.int64
    )
    return picks
