"""Is this the pool of that journal? A pool may grow at its end, and with ids of its own it may be reordered.

What identifies a pool is its length and a digest of 64 of its examples. An example that comes out different from one look
to the next (random crops and flips) says nothing about the pool: then its length alone is compared.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from badge.errors import JournalError
from badge.learner.ids import Ids
from badge.models.borrowed import random_state_kept
from badge.models.digest import SAMPLE, value_digest
from badge.models.pools import open_pool

__all__ = ["check_pool", "identify"]

#: how often each example is looked at: rare augmentations differ in one of three looks at one of 64 examples
LOOKS = 3


def identify(pool: Any, ids: Ids) -> dict[str, Any]:
    """Length, the ids of the sample (where ids are one's own) and its digest: None where examples are random.

    >>> identify(np.arange(6.0), Ids(6))["length"]
    6
    """
    order = ids.order if ids.own is not None else np.arange(ids.length)
    sample = order[np.unique(np.linspace(0, ids.length - 1, SAMPLE).astype(np.int64))]
    named = {} if ids.own is None else {"sample": ids.at(sample)}
    return {"length": ids.length, **named, "digest": _digest(pool, sample.tolist())}


def check_pool(recorded: dict[str, Any], pool: Any, ids: Ids, path: object) -> None:
    """Refuse a pool that is not the recorded one, or that with more behind it."""
    theirs, yours = recorded["length"], ids.length
    sizes = f"its pool has {theirs:,} examples, yours {yours:,}"
    if ("sample" in recorded) != (ids.own is not None):
        kind = "has ids of its own: pass ids=" if "sample" in recorded else "calls examples by position: leave out ids="
        raise JournalError(f"{path} {kind}")
    if yours < theirs:
        raise JournalError(f"{path} belongs to another pool, or it shrank: {sizes}; a pool may grow, not lose examples")
    if ids.own is None:
        sample = np.unique(np.linspace(0, theirs - 1, SAMPLE).astype(np.int64)).tolist()
    else:
        gone = [id for id in recorded["sample"] if id not in ids]
        if gone:
            raise JournalError(f"{path} belongs to another pool: {sizes}, and the id {gone[0]!r} is not in yours")
        sample = ids.positions(recorded["sample"]).tolist()
    digest = _digest(pool, sample)
    if None not in (digest, recorded["digest"]) and digest != recorded["digest"]:
        grown = f"the first {theirs:,} of yours" if yours > theirs and ids.own is None else "its examples"
        raise JournalError(
            f"{path} belongs to another pool, or its examples were changed: {sizes}, and {grown} are different (digest "
            f"{recorded['digest']}, yours {digest}); `badge journal export` carries the labels on to a new journal"
        )


def _digest(pool: Any, positions: list[int]) -> str | None:
    whole, item = hashlib.sha256(), open_pool(pool).item
    with random_state_kept():
        for position in positions:
            looks = {value_digest(item(position)) for _ in range(LOOKS)}
            if len(looks) > 1:
                return None
            whole.update(looks.pop())
    return whole.hexdigest()[:16]
