"""The k largest scores: the sampler of confidence, margin and entropy sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from badge.samplers.checks import check_k

__all__ = ["topk"]


def topk(scores: NDArray[np.floating], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions of the k largest scores, largest first; ties are broken by the rng and not by position.

    >>> import numpy as np
    >>> topk(np.array([0.1, 0.9, 0.5]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    n = len(scores)
    check_k(k, n)
    threshold = np.partition(scores, n - k)[n - k]
    above = np.flatnonzero(scores > threshold)
    level = rng.choice(np.flatnonzero(scores == threshold), size=k - len(above), replace=False)
    above = rng.permutation(above)  # a stable sort leaves equal scores in this random order
    picks: NDArray[np.int64] = np.concatenate([above[np.argsort(-scores[above], kind="stable")], level]).astype(
        np.int64
    )
    return picks
