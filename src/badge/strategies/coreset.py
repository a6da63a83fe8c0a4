"""Coreset: diversity of penultimate embeddings alone."""

import numpy as np
from numpy.typing import NDArray

from badge import samplers
from badge.errors import InputError
from badge.features import Dense
from badge.outputs import Outputs
from badge.strategies.protocol import listed


@listed("coreset")
def coreset(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> NDArray[np.int64]:
    """Coreset (Sener & Savarese 2018): furthest-first on embeddings, conditioned on all labelled examples."""
    if labeled is None:
        raise InputError("coreset is conditioned on the labelled examples: pass labeled= (their Outputs), or exclude=")
    return samplers.kcenter(Dense.embeddings(outputs), k, rng, given=Dense.embeddings(labeled))
