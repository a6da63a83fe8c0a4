"""The picks of every strategy on a fixed pool, as hashes: they change with PICKS_VERSION, or not at all.

`PYTHONPATH=src python tests/strategies/test_picks_version.py` prints the table for the code as it is.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

import badge
from badge.core.catalog import STRATEGIES
from badge.core.rng import PICKS_VERSION
from badge.strategies.uncertainty import entropies

#: the version of the picks that the hashes below are of
VERSION = 2
HASHES: dict[str, str] = {
    "badge": "4e7d601efe03",
    "coreset": "d1e1e62f8c27",
    "conf": "17d0d0e58973",
    "marg": "0b920ce1d023",
    "entropy": "9e834b16bb5f",
    "albl": "bdd7668686b0",
    "rand": "dd9f20e4e577",
    "kdpp": "f1aff0237519",
    "kcenter-grad": "93b8d8ab0211",
    "kmeanspp": "89bfa93cf228",
    "typiclust": "84281983ca47",
    "uherding": "8cce5a42a1fd",
    "maxherding": "f6376d2dbe35",
    "probcover": "566cd52ae5e7",
    "wkmeans": "5c2f6c59412f",
    "bait": "19a5b0d50063",
    "bait-binary": "eff29cfb777f",
    "badge-origin": "5659063036ec",
    "power-marg": "110f94f63f27",
    "power-entropy": "ab1b21a0cc6b",
    "power-norm": "3319953a451e",
    "bald": "1d9bed34db95",
    "power-bald": "635923108259",
    "auto": "8cce5a42a1fd",
}


def picks_of(strategy: str, sizes: tuple[int, ...] = (1, 20)) -> str:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 16)) * 2
    z = np.concatenate([centres[rng.integers(12, size=600)] + rng.normal(size=(600, 16)), centres[:4]])
    out = badge.Outputs.from_logits(z @ rng.normal(size=(16, 5)) * 0.4, z)
    out.expected_entropy = entropies(out)[:, None] * torch.from_numpy(rng.random((len(out), 1)))
    found = []
    for seed in range(3):
        for k in sizes:
            chosen = badge.select_from(out, k=k, strategy=strategy, seed=seed, exclude=np.arange(40))
            found += [*chosen.tolist(), -1]
    return hashlib.blake2b(repr(found).encode(), digest_size=6).hexdigest()


#: the picks of all of the pool
WHOLE: dict[str, str] = {"badge": "e5ce1beb4cc1", "kmeanspp": "9283d8ddc136"}


@pytest.mark.parametrize("strategy", WHOLE)
def test_the_order_of_a_whole_pool_is_that_of_its_version(strategy: str) -> None:
    """Most draws are rejected there, so that other rules hold."""
    assert picks_of(strategy, (564,)) == WHOLE[strategy], "see above"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_picks_are_those_of_their_version(strategy: str) -> None:
    assert VERSION == PICKS_VERSION, "the picks' version was raised: print the hashes anew, and store them with it"
    assert strategy in HASHES, f"a new strategy: add {strategy!r}: {picks_of(strategy)!r} to HASHES"
    assert picks_of(strategy) == HASHES[strategy], (
        "other picks for the same seed: raise PICKS_VERSION, store new hashes"
    )


if __name__ == "__main__":
    for name in STRATEGIES:
        print(f'    "{name}": "{picks_of(name)}",')
    for name in WHOLE:
        print(f'WHOLE: "{name}": "{picks_of(name, (564,))}",')
