"""Strategies on gradient embeddings: BADGE, and the paper's two ablations of its sampler.

The paper's output layer is f(x) = σ(W z): g_x is the gradient with respect to W. If the output layer has a bias b too,
`bias=True` appends the gradient with respect to b, which is p − e_ŷ; as if every embedding had one more entry, 1.
"""

import torch
from numpy.random import Generator

from badge import samplers
from badge.features import Factored, gradient_embedding
from badge.outputs import Outputs
from badge.strategies.protocol import Picks, listed


@listed("badge")
def badge(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, bias: bool = False) -> Picks:
    """BADGE (Ash et al. 2020, algorithm 1): k-means++ seeding on the gradients at the classes that the model guesses.

    >>> import numpy as np
    >>> from badge import Outputs
    >>> out = Outputs([[0.5, 0.5], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]])
    >>> sorted(badge(out, 2, np.random.default_rng(0)).tolist())
    [0, 1]
    """
    return samplers.kmeanspp(gradient_embedding(outputs, bias), k, rng)


@listed("badge-origin")
def badge_origin(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, bias: bool = False) -> Picks:
    """BADGE with the origin as a centre: the first pick too is drawn in proportion to ‖g‖².

    An example about which the model is sure has g ≈ 0. BADGE may draw it, because it is far from the other picks. Here it
    is close to the origin, and g = 0 is never drawn while others are left. This matters in small batches.

    >>> import numpy as np
    >>> from badge import Outputs
    >>> out = Outputs([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [3.0, 1.0], [1.0, 5.0]])
    >>> badge_origin(out, 1, np.random.default_rng(0)).tolist()
    [0]
    """
    g = gradient_embedding(outputs, bias)
    a, h = (torch.zeros_like(factor) for factor in g.rows(slice(0, 1)).factors)
    return samplers.kmeanspp(g, k, rng, given=Factored.trusted(a, h))


@listed("kdpp")
def kdpp(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, bias: bool = False) -> Picks:
    """The ablation of section 3: a k-DPP on gradient embeddings, by the swap chain."""
    return samplers.kdpp(gradient_embedding(outputs, bias), k, rng)


@listed("kcenter-grad")
def kcenter_grad(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, bias: bool = False) -> Picks:
    """The ablation FF-k-center: furthest-first traversal on gradient embeddings, not conditioned on labelled ones."""
    return samplers.kcenter(gradient_embedding(outputs, bias), k, rng)
