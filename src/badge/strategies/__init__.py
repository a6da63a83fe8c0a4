"""Strategies: which k examples to label next, given what the model says. A strategy is an embedding and a sampler.

    badge         k-means++ on gradient embeddings                          (the paper's algorithm 1)
    coreset       furthest-first on embeddings, conditioned on the labelled (Sener & Savarese 2018)
    conf          smallest probability of the predicted class               (Wang & Shang 2014)
    marg          smallest margin between the two largest probabilities     (Roth & Small 2006)
    entropy       largest entropy of the predicted probabilities            (Wang & Shang 2014)
    albl          a bandit over coreset and conf                            (Hsu & Lin 2015)
    rand          uniform
    kdpp          a k-DPP on gradient embeddings                            (the paper's ablation)
    kcenter-grad  furthest-first on gradient embeddings                     (the paper's ablation)
    kmeanspp      k-means++ on embeddings, for a cold start                 (Arthur & Vassilvitskii 2007)
    typiclust     typical examples of clusters, for a cold start            (Hacohen et al. 2022)

`strategy(outputs, k, rng, labeled=None)` gives k distinct positions into `outputs`; what a strategy declares of itself, and
what one with memory has besides, is in `protocol`.
"""

from badge.strategies.albl import ALBL
from badge.strategies.protocol import Reads, Stateful, Strategy, declare, needs_labeled, reads, wants_labeled
from badge.strategies.registry import NAMES, PAPER, get

__all__ = [
    "ALBL",
    "NAMES",
    "PAPER",
    "Reads",
    "Stateful",
    "Strategy",
    "declare",
    "get",
    "needs_labeled",
    "reads",
    "wants_labeled",
]
