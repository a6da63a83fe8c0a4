"""Strategies on embeddings: coreset, cold starts, and those that cover the pool.

A *cold start* picks the first batch from embeddings of a pretrained backbone, before any label and so before any model:
`badge.Outputs(embeddings=z)` is all it needs. It goes on from labelled examples where there are some.

MaxHerding, UHerding and ProbCover are one sampler (`samplers/coverage.py`) with three kernels and weights. They scale
embeddings to length 1, count labelled examples as covered and pick greedily what covers most of the rest.
"""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.core.numbers import positive
from badge.core.rng import generator
from badge.errors import InputError
from badge.features import Dense
from badge.features.kinds import unit_rows
from badge.outputs import Outputs
from badge.samplers.cover import Cover
from badge.samplers.coverage import coverage
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.lloyd import least_mean_distance, lloyd
from badge.strategies.protocol import Picks, listed
from badge.strategies.uncertainty import doubt

#: K of the K nearest neighbours that typicality looks at, the clusters at most, and the size from which one is too small:
#: K_NN, MAX_NUM_CLUSTERS and MIN_CLUSTER_SIZE of the authors' code (deep-al/pycls/al/typiclust.py).
NEIGHBOURS, MOST_CLUSTERS, SMALLEST = 20, 500, 5
#: σ before there are two labelled rows at different places; MaxHerding's σ always.
WIDTH = 1.0
#: ProbCover: the share of balls that hold one cluster only, and how many balls are looked at.
PURE, BALLS = 0.95, 1000


@listed("coreset")
def coreset(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Coreset (Sener & Savarese 2018): furthest-first on embeddings, conditioned on all labelled examples."""
    if labeled is None:
        raise InputError("coreset is conditioned on the labelled examples: pass labeled= (their Outputs), or exclude=")
    return samplers.kcenter(Dense.embeddings(outputs), k, rng, given=Dense.embeddings(labeled))


@listed("kmeanspp")
def kmeanspp(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """k-means++ seeding (Arthur & Vassilvitskii 2007) on the embeddings themselves: diverse, and no more.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[0.0], [0.1], [9.0], [9.1]])
    >>> sorted(i // 2 for i in badge.select_from(out, k=2, strategy="kmeanspp").tolist())
    [0, 1]
    """
    given = Dense.embeddings(labeled) if labeled else None
    return samplers.kmeanspp(Dense.embeddings(outputs), k, rng, given=given)


@listed("typiclust")
def typiclust(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, squared: bool = False) -> Picks:
    """TypiClust (Hacohen, Dekel & Weinshall 2022, "Active Learning on a Budget: Opposite Strategies Suit High and Low
    Budgets", ICML, algorithm 1): the most typical example of each of the largest clusters that hold no label yet.

    The embeddings of pool and labelled examples are clustered by K-means into min(|L| + k, 500) clusters. Clusters are gone
    through by how many labels they hold, then by size, largest first; clusters of 5 examples or fewer are left out while
    there are others. From each comes the example that is not taken yet of the largest

        typicality(x) = ( 1/K Σ ‖x − x_i‖ )⁻¹    over the K nearest neighbours x_i of x in its cluster

    with K = min(20, half of what is left of the cluster), as in the authors' code. That code averages *squared* distances,
    the paper's formula does not: this follows the paper, and `squared=True` the code. The code also scales embeddings to
    length 1 first; do so where lengths mean nothing. Costs N² D / k for the neighbours.

    >>> import badge, numpy as np
    >>> z = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0], [2.5], [97.0], [98.0], [99.0], [100.0], [101.0], [102.0], [103.0]])
    >>> badge.select_from(badge.Outputs(embeddings=z), k=2, strategy="typiclust").tolist()
    [7, 3]
    """
    n, x = len(outputs), outputs.embeddings
    features = Dense.trusted(torch.cat([x[:], labeled.embeddings[:]]) if labeled else x)
    clusters = min(len(features) - n + k, MOST_CLUSTERS, len(features))
    cluster = lloyd(features, clusters, rng)
    sizes, labels = (torch.bincount(c, minlength=clusters).tolist() for c in (cluster, cluster[n:]))
    members = [(cluster[:n] == c).nonzero()[:, 0] for c in range(clusters)]
    picks: list[int] = []
    for small in (False, True):  # the small ones only when the others are used up
        turns = [c for c in range(clusters) if (sizes[c] <= SMALLEST) == small]
        turns.sort(key=lambda c: (labels[c], -sizes[c], c))
        while len(picks) < k and (turns := [c for c in turns if len(members[c])]):
            for c in turns[: k - len(picks)]:
                best = most_typical(features, members[c], squared)
                picks.append(int(members[c][best]))
                members[c] = torch.cat([members[c][:best], members[c][best + 1 :]])
    return np.array(picks, dtype=np.int64)


def most_typical(features: Dense, rows: Tensor, squared: bool = False) -> int:
    """The place in `rows` of the most typical one, the first of equals."""
    if len(rows) < 2:
        return 0
    return least_mean_distance(features, rows, max(1, min(NEIGHBOURS, len(rows) // 2)), squared)


@listed("maxherding")
def maxherding(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """MaxHerding (Bae, Noh & Sutherland 2024, "Generalized Coverage for More Robust Low-Budget Active Learning", ECCV):
    the examples that raise Σ_j max_i exp(−‖x_i − x_j‖²) most.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
    >>> maxherding(out, 2, np.random.default_rng(0)).tolist()
    [2, 3]
    """
    return coverage(unit_rows(outputs.embeddings), k, rng, Gauss(WIDTH), given=_given(labeled))


@listed("uherding")
def uherding(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """UHerding (Bae, Oliveira & Sutherland 2025, "Uncertainty Herding: One Active Learning Method for All Label Budgets",
    ICLR): the examples that raise Σ_j u_j max_i exp(−‖x_i − x_j‖²/σ²) most, with u_j = 1 − (p₁ − p₂), 1 − margin.

    σ is the smallest distance between two labelled rows that differ. Before any label u and σ are 1, and this is
    MaxHerding. The authors also fit a temperature to held-out labels; `Outputs` hold no labels, so calibrate the model
    first if it is far off. Their code looks at 35,000 random rows at most, this at all.

    >>> import badge
    >>> out = badge.Outputs([[0.99, 0.01], [0.5, 0.5], [0.6, 0.4]], [[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    >>> uherding(out, 1, np.random.default_rng(0), labeled=out[[0]]).tolist()
    [1]
    """
    given = _given(labeled)
    if given is None:
        return maxherding(outputs, k, rng)
    return coverage(unit_rows(outputs.embeddings), k, rng, Gauss(_closest(given)), doubt(outputs), given)


@listed("probcover")
def probcover(
    outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, delta: float | None = None
) -> Picks:
    """ProbCover (Yehuda, Dekel, Hacohen & Weinshall 2022, "Active Learning Through a Covering Lens", NeurIPS): the examples
    with balls of radius δ that hold most of what no labelled example's ball holds.

    `delta=None` takes the paper's rule: the largest δ at which over 95 % of the balls hold rows of one k-means cluster only,
    with as many clusters as classes (k clusters where there are no probabilities). Balls are looked at around 1,000 rows.
    When every row is covered the rest is drawn uniformly; the authors' code then picks the first row again and again.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
    >>> probcover(out, 2, np.random.default_rng(0), delta=0.15).tolist()
    [1, 3]
    """
    x = unit_rows(outputs.embeddings)
    if delta is None:
        delta = pure_radius(x, min(outputs.classes if outputs.has_probabilities else k, len(x)), rng)
    return coverage(x, k, rng, Ball(positive(delta, "delta")), given=_given(labeled))


@listed("auto")
def auto(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """One strategy for every budget: `typiclust` before there is a label, then `uherding`, which covers what is unsure.

    The rule was fixed before the runs of docs/which-strategy.md. On the data sets that were not looked at before, it is
    within a point of the best pair of first batch and strategy at low, middle and high budgets.

    A learner with embeddings (a `Frozen` trainer, or `embeddings=`) picks its first batch this way too. Time grows with the
    square of the pool: above some 50,000 examples take one that compares no pairs, e.g. power-marg or wkmeans.

    >>> import badge
    >>> out = badge.Outputs(embeddings=[[0.0], [0.1], [9.0], [9.1]])
    >>> sorted(i // 2 for i in badge.select_from(out, k=2, strategy="auto").tolist())
    [0, 1]
    """
    return uherding(outputs, k, rng, labeled=labeled) if labeled else typiclust(outputs, k, rng)


def coverage_added(outputs: Outputs, ids: list[int], labeled: Outputs | None, name: str) -> list[float]:
    """What each of the rows `ids`, in this order, adds to the objective of the strategy `name`.

    For probcover this is the share of the pool that is newly covered. δ is that of its default and seed 0: k-means draws.
    """
    x, given = unit_rows(outputs.embeddings), _given(labeled)
    weights = torch.ones(len(x), dtype=torch.float64, device=x.device)
    kernel: Gauss | Ball = Gauss(WIDTH)
    if name == "probcover":
        kernel = Ball(pure_radius(x, min(outputs.classes, len(x)), generator(0)))
        weights /= len(x)
    elif name == "uherding" and given is not None:
        kernel, weights = Gauss(_closest(given)), doubt(outputs).double()
    cover = Cover(x, kernel, weights)
    if given is not None:
        cover.add(given.rows(slice(None)).to(x.dtype))
    added = []
    for i in ids:
        added.append(cover.gain(i))
        cover.pick(i)
    return added


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
