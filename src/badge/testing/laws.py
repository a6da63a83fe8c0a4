"""The laws of samplers by enumeration, and the test that compares draws with them: chi-square on counts."""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: picks, in pick order -> their probability
Law = dict[tuple[int, ...], float]


def p_value(observed: NDArray[np.float64], expected: NDArray[np.float64], freedom: int) -> float:
    """The probability of a chi-square statistic at least as large as that of the counts.

    >>> round(p_value(np.array([60.0, 40.0]), np.array([50.0, 50.0]), freedom=1), 4)
    0.0455
    """
    statistic = torch.tensor(((observed - expected) ** 2 / expected).sum() / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), statistic))


def chi_square(counts: Mapping[Any, int], law: Mapping[Any, float], smallest: float = 5.0) -> float:
    """p-value of counts against exact probabilities; cells that expect fewer than `smallest` are pooled.

    An outcome that the law excludes must not occur: one such draw gives 0.
    """
    assert abs(sum(law.values()) - 1) < 1e-9, "the probabilities must sum to 1"
    if any(law.get(outcome, 0.0) <= 0 for outcome, count in counts.items() if count):
        return 0.0
    draws = sum(counts.values())
    cells = [(draws * p, counts.get(outcome, 0)) for outcome, p in law.items() if p > 0]
    if len(cells) == 1:  # the law leaves no choice
        return 1.0
    large = [cell for cell in cells if cell[0] >= smallest]
    small = np.array([cell for cell in cells if cell[0] < smallest]).reshape(-1, 2).sum(axis=0)
    if small[0] >= smallest or not large:
        large.append(tuple(small))
    elif small[0] > 0:  # too small for a cell: it joins the smallest of the others
        large.sort()
        large[0] = (large[0][0] + small[0], large[0][1] + small[1])
    assert len(large) > 1, "too few draws to tell anything"
    expected, observed = np.array(large, dtype=float).T
    return p_value(observed, expected, len(large) - 1)


def tally(draw: Callable[[np.random.Generator], Any], draws: int, seed: int) -> Counter[Hashable]:
    """Counts of the positions that `draw(rng)` returns, in pick order, all from one generator."""
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
    found: NDArray[np.float64] = ((x[:, None] - (x if y is None else y)[None]) ** 2).sum(axis=2)
    return found


def kmeanspp_law(
    x: NDArray[np.float64], k: int, first: str = "uniform", given: NDArray[np.float64] | None = None
) -> Law:
    """The probability of every ordered draw of k rows by k-means++ (appendix A of the paper, without repeats).

    Args:
        x: the rows, [N, D].
        k: the number of rows drawn.
        first: "uniform" or "max-norm", as in `badge.samplers.kmeanspp`.
        given: rows that count as drawn already.

    Returns:
        {positions in pick order: probability}.

    >>> law = kmeanspp_law(np.array([[0.0], [1.0], [3.0]]), 2)
    >>> round(law[0, 1], 4), round(law[0, 2], 4)  # after 0 the others weigh 1 and 9
    (0.0333, 0.3)
    """
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
    """The probability of every set of k rows of x, in ascending order: proportional to the determinant of its Gram matrix.

    Args:
        x: the rows, [N, D].
        k: the number of rows drawn.

    Returns:
        {positions, ascending: probability}.

    >>> kdpp_law(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 2)
    {(0, 1): 0.0, (0, 2): 0.5, (1, 2): 0.5}
    """
    gram = x @ x.T
    dets = {s: max(0.0, float(np.linalg.det(gram[np.ix_(s, s)]))) for s in itertools.combinations(range(len(x)), k)}
    total = sum(dets.values())
    return {s: d / total for s, d in dets.items()}
