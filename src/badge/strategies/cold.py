"""Cold start: the first batch, before any label and so before any model, from embeddings of a pretrained backbone.

`kmeanspp` and `typiclust` do not look at probabilities: `badge.Outputs(embeddings=z)` is all they need. They go on from
labelled examples if there are some (`labeled=`, or `exclude=`).
"""

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.core.numbers import flag
from badge.features import Dense
from badge.outputs import Outputs
from badge.samplers.lloyd import least_mean_distance, lloyd
from badge.strategies.protocol import Picks, listed

#: K of the K nearest neighbours that typicality looks at, the clusters at most, and the size from which one is too small:
#: K_NN, MAX_NUM_CLUSTERS and MIN_CLUSTER_SIZE of the authors' code (deep-al/pycls/al/typiclust.py).
NEIGHBOURS, MOST_CLUSTERS, SMALLEST = 20, 500, 5


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
    length 1 first; do so where lengths mean nothing. Costs N² D / k for the neighbours. Clusters of one size come in the
    order of their k-means++ centres, which `rng` draws. Of equally typical examples the lowest position wins, but rounding
    may tell them apart.

    >>> import badge, numpy as np
    >>> z = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0], [2.5], [97.0], [98.0], [99.0], [100.0], [101.0], [102.0], [103.0]])
    >>> badge.select_from(badge.Outputs(embeddings=z), k=2, strategy="typiclust").tolist()
    [7, 3]
    """
    n, x, squared = len(outputs), outputs.embeddings, flag(squared, "squared")
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
