"""The k largest scores: the sampler of confidence, margin and entropy sampling."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_array, chunks
from badge.core.names import name_rows
from badge.core.rng import check_rng
from badge.core.rows import Here, RowSource, Shards, shards
from badge.errors import InputError
from badge.samplers.checks import check_k
from badge.samplers.driver import answers

#: rows of a pool, [n, C] in float64 -> a number for each
Score = Callable[[Tensor], Tensor]


def topk(scores: NDArray[np.floating], k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The positions of the k largest scores, largest first. The rng breaks ties.

    Args:
        scores: one score per row, [N].
        k: the number of positions to pick.
        rng: a `numpy.random.Generator` that breaks ties.

    Returns:
        k distinct positions, int64, in pick order.

    Raises:
        InputError: k is not between 1 and the number of rows, or a number is not finite.

    >>> import numpy as np
    >>> topk(np.array([0.1, 0.9, 0.5]), 2, np.random.default_rng(0)).tolist()
    [1, 2]
    """
    scores = as_array(scores, "scores")
    if scores.ndim != 1 or scores.dtype.kind not in "fiu":
        raise InputError(f"scores must be one number per example, not {scores.dtype} of shape {scores.shape}")
    return topk_over(Here(scores, Scores), k, rng)


def topk_by(score: Score, rows: RowSource, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`topk` of the scores that a function gives to rows, wherever the rows are."""
    return topk_over(shards(rows, partial(scored, score)), k, rng)


def topk_over(shards: Shards, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`topk` over scores in shards (`Scores`). The picks do not depend on where the shards are."""
    k = check_k(k, sum(shards.sizes))
    check_rng(rng)
    everyone = range(len(shards.sizes))
    highest = np.concatenate(answers(shards, Scores.highest, dict.fromkeys(everyone, (k,))))
    threshold = np.partition(highest, len(highest) - k)[len(highest) - k]
    found = answers(shards, Scores.above, dict.fromkeys(everyone, (threshold,)))
    above, scores = (np.concatenate([one[i] for one in found]) for i in range(2))
    # Scores at the threshold are drawn by number. The shards turn the numbers into positions.
    ends = np.cumsum([one[2] for one in found])
    drawn = rng.choice(int(ends[-1]), size=k - len(above), replace=False)
    owner = np.searchsorted(ends, drawn, side="right")
    begins = np.concatenate([[0], ends])
    asked = {i: (threshold, drawn[owner == i] - begins[i]) for i in np.unique(owner).tolist()}
    level = np.empty(len(drawn), dtype=np.int64)
    for i, positions in zip(asked, answers(shards, Scores.level, asked), strict=True):
        level[owner == i] = positions
    order = rng.permutation(len(above))  # a stable sort leaves equal scores in this random order
    above = above[order][np.argsort(-scores[order], kind="stable")]
    return np.concatenate([above, level]).astype(np.int64)


class Scores:
    """The scores of the positions from `start` on: a shard, which answers messages and remembers nothing."""

    def __init__(self, scores: NDArray[np.floating], start: int = 0) -> None:
        unordered = np.flatnonzero(np.isnan(scores))
        if len(unordered):
            rows = name_rows(unordered + start)
            raise InputError(f"scores hold NaN in {rows}: NaN is neither above nor below another score")
        self.scores, self.start = scores, start

    def highest(self, k: int) -> NDArray[np.floating]:
        """The k largest, in no order."""
        least = max(0, len(self.scores) - k)
        return np.partition(self.scores, least)[least:]

    def above(self, threshold: float) -> tuple[NDArray[np.int64], NDArray[np.floating], int]:
        """Positions and scores above the threshold, and how many are at it."""
        at = np.flatnonzero(self.scores > threshold)
        return at + self.start, self.scores[at], int(np.count_nonzero(self.scores == threshold))

    def level(self, threshold: float, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of some of the rows at the threshold; `numbers` counts these rows from 0."""
        return np.flatnonzero(self.scores == threshold)[numbers] + self.start


def scored(score: Score, rows: RowSource, start: int) -> Scores:
    """The scores of rows in float64, worked out a bounded number of rows at a time."""
    return Scores(np.concatenate([score(rows[part].double()).cpu().numpy() for part in chunks(rows)]), start)
