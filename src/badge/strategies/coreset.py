"""Coreset: diversity of penultimate embeddings alone."""

from numpy.random import Generator

from badge import samplers
from badge.features import Dense
from badge.outputs import Outputs
from badge.strategies.protocol import Picks, listed, required


@listed("coreset")
def coreset(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Coreset (Sener & Savarese 2018): furthest-first on embeddings, conditioned on all labelled examples."""
    return samplers.kcenter(Dense.embeddings(outputs), k, rng, given=Dense.embeddings(required(labeled, "coreset")))
