"""Seeds and generators: host-side, explicit, the same everywhere."""

import secrets
from typing import Any

import numpy as np

from badge.core.numbers import whole
from badge.errors import InputError

#: Version of the picks: with the same version, the same seed gives the same picks. Raise it when the picks of any strategy
#: change on purpose; `tests/strategies/test_picks_version.py` fails when they change without it.
PICKS_VERSION = 2


def generator(seed: int | None) -> np.random.Generator:
    """The generator of a seed; None draws entropy from the system.

    >>> int(generator(0).integers(100)) == int(generator(0).integers(100))
    True
    """
    return np.random.default_rng(None if seed is None else whole(seed, "seed", least=0))


def check_rng(rng: Any) -> None:
    """Samplers take a generator: a seed in its place would give the same draws in every call."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator, not {rng!r}: numpy.random.default_rng(seed) makes one")


def derive(seed: int, *path: int | str) -> np.random.Generator:
    """An independent generator for one named use of a seed, e.g. `derive(seed, "train", round)`.

    >>> a, b = derive(0, "train", 1), derive(0, "ask", 1)
    >>> int(a.integers(2**40)) == int(b.integers(2**40))
    False
    """
    words: list[Any] = [seed]
    for part in path:
        words += [part] if isinstance(part, int) else [int.from_bytes(part.encode(), "big")]
    return np.random.default_rng(np.random.SeedSequence(words))


def fresh_seed() -> int:
    """A seed drawn from the system, small enough to be written down exactly in JSON."""
    return secrets.randbelow(2**31)
