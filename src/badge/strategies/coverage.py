"""Strategies that cover the pool: MaxHerding, UHerding and ProbCover. One sampler, three kernels and weights.

All three scale embeddings to length 1, count labelled examples as covered and pick greedily what covers most of the rest
(`samplers/coverage.py`). They need no model before the first label, so that one strategy serves every budget. Equal gains go
to the lowest position; when nothing is left to gain the rest is drawn uniformly.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge.core.numbers import positive
from badge.features import Dense
from badge.features.kinds import unit_rows
from badge.outputs import Outputs
from badge.samplers.cover import Cover
from badge.samplers.coverage import coverage
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.lloyd import lloyd
from badge.strategies.protocol import Picks, listed
from badge.strategies.uncertainty import doubt

#: σ before there are two labelled rows at different places; MaxHerding's σ always.
WIDTH = 1.0
#: ProbCover: the share of balls that hold one cluster only, and how many balls are looked at.
PURE, BALLS = 0.95, 1000


@dataclass(frozen=True)
class Objective:
    """Σ_j u_j max_i κ(x_i, x_j) over picks and given rows i; u is 1 where `weights` is None."""

    x: Dense
    kernel: Gauss | Ball
    given: Dense | None
    weights: Tensor | None = None
    unit: int = 1  #: what `added` is counted in

    def picks(self, k: int, rng: Generator) -> Picks:
        return coverage(self.x, k, rng, self.kernel, self.weights, self.given)

    def added(self, ids: list[int]) -> list[float]:
        """What each of the rows `ids`, in this order, adds to it."""
        ones = torch.ones(len(self.x), dtype=torch.float64, device=self.x.device)
        cover = Cover(self.x, self.kernel, ones if self.weights is None else self.weights.double())
        if self.given is not None:
            cover.add(self.given.rows(slice(None)).to(self.x.dtype))
        gains = []
        for i in ids:
            gains.append(cover.gain(i) / self.unit)
            cover.pick(i)
        return gains


@listed("maxherding")
def maxherding(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """MaxHerding (Bae, Noh & Sutherland 2024, "Generalized Coverage for More Robust Low-Budget Active Learning", ECCV):
    the examples that raise Σ_j max_i exp(−‖x_i − x_j‖²) most; of equal ones the lowest position.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
    >>> maxherding(out, 2, np.random.default_rng(0)).tolist()
    [2, 3]
    """
    return all_alike(outputs, k, rng, labeled).picks(k, rng)


def all_alike(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None) -> Objective:
    """The objective of `maxherding`."""
    return Objective(unit_rows(outputs.embeddings), Gauss(WIDTH), _given(labeled))


@listed("uherding")
def uherding(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """UHerding (Bae, Oliveira & Sutherland 2025, "Uncertainty Herding: One Active Learning Method for All Label Budgets",
    ICLR): the examples that raise Σ_j u_j max_i exp(−‖x_i − x_j‖²/σ²) most, with u_j = 1 − (p₁ − p₂), 1 − margin.

    σ is the smallest distance between two labelled rows that differ. Before any label u and σ are 1, and this is
    MaxHerding. The authors also fit a temperature to held-out labels; `Outputs` hold no labels, so calibrate the model
    first if it is far off. Their code looks at 35,000 random rows at most, this at all rows. Equal gains go to the lowest
    position.

    >>> import badge
    >>> out = badge.Outputs([[0.99, 0.01], [0.5, 0.5], [0.6, 0.4]], [[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    >>> uherding(out, 1, np.random.default_rng(0), labeled=out[[0]]).tolist()
    [1]
    """
    return by_doubt(outputs, k, rng, labeled).picks(k, rng)


def by_doubt(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None) -> Objective:
    """The objective of `uherding`."""
    given = _given(labeled)
    if given is None:
        return all_alike(outputs, k, rng, labeled)
    return Objective(unit_rows(outputs.embeddings), Gauss(_closest(given)), given, doubt(outputs))


@listed("probcover")
def probcover(
    outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, delta: float | None = None
) -> Picks:
    """ProbCover (Yehuda, Dekel, Hacohen & Weinshall 2022, "Active Learning Through a Covering Lens", NeurIPS): the examples
    with balls of radius δ that hold most of what no labelled example's ball holds.

    `delta=None` takes the paper's rule: the largest δ at which over 95 % of the balls hold rows of one k-means cluster only,
    with as many clusters as classes (k clusters where there are no probabilities). Balls are looked at around 1,000 rows.
    Equal counts go to the lowest position. When every row is covered the rest is drawn uniformly; the authors' code then
    picks the first row again and again.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
    >>> probcover(out, 2, np.random.default_rng(0), delta=0.15).tolist()
    [1, 3]
    """
    return balls(outputs, k, rng, labeled, delta).picks(k, rng)


def balls(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None, delta: float | None = None) -> Objective:
    """The objective of `probcover`, as a share of the pool."""
    x = unit_rows(outputs.embeddings)
    if delta is None:
        delta = pure_radius(x, min(outputs.classes if outputs.has_probabilities else k, len(x)), rng)
    return Objective(x, Ball(positive(delta, "delta")), _given(labeled), unit=len(x))


def pure_radius(x: Dense, clusters: int, rng: Generator) -> float:
    """The largest δ at which less than 5 % of the balls hold a row of another cluster than their centre's.

    A ball is pure while δ is at most the distance to the nearest row of another cluster: δ is a quantile of these.
    """
    cluster = lloyd(x, clusters, rng)
    centres = torch.from_numpy(rng.choice(len(x), size=min(BALLS, len(x)), replace=False)).to(x.device)
    rows, nearest = x.rows(centres), torch.full((len(centres),), torch.inf, device=x.device)
    for tile in x.tiles(beside=len(centres)):
        sq_dists = rows.sq_dists(x.rows(tile))
        sq_dists.masked_fill_(cluster[centres][:, None] == cluster[tile], torch.inf)
        nearest = torch.minimum(nearest, sq_dists.amin(dim=1).to(nearest.dtype))
    found = float(nearest.sqrt().quantile(1 - PURE, interpolation="lower"))
    return found if 0 < found < float("inf") else WIDTH


def _given(labeled: Outputs | None) -> Dense | None:
    return unit_rows(labeled.embeddings) if labeled else None


def _closest(given: Dense) -> float:
    """The smallest distance between two of the rows that differ; WIDTH where there are no two."""
    smallest, every = torch.inf, given.rows(slice(None)).double()
    for tile in given.tiles(beside=len(given)):
        sq_dists = given.rows(tile).double().sq_dists(every)
        sq_dists.masked_fill_(sq_dists <= 1e-12, torch.inf)  # rows of length 1 that are nearer than this are the same
        smallest = min(smallest, float(sq_dists.amin()))
    return float(np.sqrt(smallest)) if smallest < torch.inf else WIDTH
