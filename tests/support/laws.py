"""The laws of the samplers, by enumeration, and the one test that compares draws with them: chi-square on counts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from torch import Tensor

import badge
from badge.features import Features, Rows
from badge.samplers.kcenter import kcenter_over
from badge.samplers.kmeanspp import kmeanspp_over
from badge.samplers.nearest import Tuning
from badge.samplers.nearest.sketch import Sketch
from local_shards import LocalShards

Law = dict[tuple[int, ...], float]

#: A right sampler with a fixed seed is accepted above, a wrong one rejected below; nothing may fall in between.
ACCEPTED, REJECTED = 1e-3, 1e-6


def chi_square(counts: Mapping[Any, int], law: Mapping[Any, float], smallest: float = 5.0) -> float:
    """p-value of counts against exact probabilities; cells that expect fewer than `smallest` are pooled.

    What the law calls impossible must not occur: one such draw gives 0.
    """
    assert abs(sum(law.values()) - 1) < 1e-9, "the probabilities must sum to 1"
    if any(law.get(outcome, 0.0) <= 0 for outcome, count in counts.items() if count):
        return 0.0
    draws = sum(counts.values())
    cells = [(draws * p, counts.get(outcome, 0)) for outcome, p in law.items() if p > 0]
    large = [cell for cell in cells if cell[0] >= smallest]
    small = np.array([cell for cell in cells if cell[0] < smallest]).reshape(-1, 2).sum(axis=0)
    if small[0] >= smallest or not large:
        large.append(tuple(small))
    elif small[0] > 0:  # still too small for a cell of its own: to the smallest of the others
        large.sort()
        large[0] = (large[0][0] + small[0], large[0][1] + small[1])
    assert len(large) > 1, "too few draws to tell anything"
    expected, observed = np.array(large, dtype=float).T
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(large) - 1))


def two_sample(x: NDArray[np.int64], y: NDArray[np.int64]) -> float:
    """p-value of the hypothesis that two rows of counts over the same cells come from one law."""
    table = np.array([x, y], dtype=float)
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    assert expected.min() >= 5, "pool the small cells"
    return float(chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1))


def tally(draw: Callable[[np.random.Generator], Any], draws: int, seed: int) -> Counter[Hashable]:
    """Counts of what `draw(rng)` gives (positions in pick order), all from one generator."""
    rng = np.random.default_rng(seed)
    return Counter(tuple(int(i) for i in draw(rng)) for _ in range(draws))


def as_sets(counts: Mapping[Any, int]) -> Counter[Hashable]:
    """The counts with the order of the picks forgotten."""
    total: Counter[Hashable] = Counter()
    for picks, count in counts.items():
        total[tuple(sorted(picks))] += count
    return total


def sq_dists(x: NDArray[np.float64], y: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Squared distances as the sum of squared differences: the definition."""
    return ((x[:, None] - (x if y is None else y)[None]) ** 2).sum(axis=2)


def kmeanspp_law(
    x: NDArray[np.float64], k: int, first: str = "uniform", given: NDArray[np.float64] | None = None
) -> Law:
    """The probability of every ordered draw of k rows by k-means++ (appendix A of the paper, without repeats)."""
    n, among = len(x), sq_dists(x)
    from_given = np.full(n, np.inf) if given is None else sq_dists(x, given).min(axis=1)
    law: Law = {}
    for picks in itertools.permutations(range(n), k):
        probability, nearest = 1.0, from_given
        for t, pick in enumerate(picks):
            if t == 0 and given is None:
                longest = int((x**2).sum(axis=1).argmax())
                probability *= 1 / n if first == "uniform" else float(pick == longest)
            else:
                mass = np.where(np.isin(np.arange(n), picks[:t]), 0.0, nearest)
                if mass.sum() == 0:
                    mass = np.where(np.isin(np.arange(n), picks[:t]), 0.0, 1.0)
                probability *= mass[pick] / mass.sum()
            nearest = np.minimum(nearest, among[pick])
        law[picks] = float(probability)
    return law


def kdpp_law(x: NDArray[np.float64], k: int) -> Law:
    """The probability of every set of k rows of x: proportional to the determinant of its Gram matrix."""
    gram = x @ x.T
    dets = {s: max(0.0, float(np.linalg.det(gram[np.ix_(s, s)]))) for s in itertools.combinations(range(len(x)), k)}
    total = sum(dets.values())
    return {s: d / total for s, d in dets.items()}


#: Everything as small as it goes: blocks of 3 events, 2 rows at a time, one centre in a product, two rows to pick among.
TINY = Tuning(block=3, first_block=3, tile=2, part=1, top=2, young=1, few=1, anchors=1)


def tuned(function: Any, tuning: Tuning, cuts: Sequence[int] = ()) -> Callable[..., NDArray[np.int64]]:
    """`kmeanspp` or `kcenter` with a tuning of its own, over shards that begin at `cuts`."""
    over = {badge.samplers.kmeanspp: kmeanspp_over, badge.samplers.kcenter: kcenter_over}[function]

    def sampler(
        features: Features, k: int, rng: np.random.Generator, *, given: Features | None = None, **options: Any
    ) -> NDArray[np.int64]:
        centres = None if given is None else given.rows(slice(None)).to(features.dtype)
        return over(LocalShards(features, cuts, tuning), k, rng, given=centres, tuning=tuning, **options)

    return sampler


def force_sketch(monkeypatch: pytest.MonkeyPatch, rank: int = 1, outside: float = 1.0) -> None:
    """Sketches of so few dimensions wherever one is tried; `outside` other than 1 makes them wrong ones."""

    class Forced(Sketch):
        def __call__(self, rows: Rows, sq_norms: Tensor | None = None) -> Tensor:
            sketch = super().__call__(rows, sq_norms)
            sketch[:, -1] *= outside
            return sketch

    monkeypatch.setattr("badge.samplers.nearest.centres.useful_sketch", lambda rows: Forced.of(rows, rank))
