"""Coreset: diversity of penultimate embeddings alone."""

from numpy.random import Generator

from badge import samplers
from badge.errors import InputError
from badge.features import Dense
from badge.outputs import Outputs
from badge.strategies.protocol import Picks, listed


@listed("coreset")
def coreset(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Coreset (Sener & Savarese 2018): furthest-first on embeddings, conditioned on all labelled examples."""
    if labeled is None:
        way_out = "pass labeled= (their Outputs), or exclude="
        raise InputError("coreset is conditioned on the labelled examples", in_python=way_out)
    return samplers.kcenter(Dense.embeddings(outputs), k, rng, given=Dense.embeddings(labeled))
