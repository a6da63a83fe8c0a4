"""A request for picks. `Request.of` is the one place that checks it; it needs neither a model nor outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from badge.core.arrays import as_index
from badge.core.rng import generator
from badge.core.rows import Listed, Remaining
from badge.errors import InputError
from badge.samplers.checks import check_k
from badge.strategies.protocol import Declaration, Strategy, declaration, required, title
from badge.strategies.registry import get


@dataclass(frozen=True, eq=False)
class Request:
    """k picks by `strategy` among the rows `left` of a pool; `labeled` are the labelled examples, if they were passed."""

    strategy: Strategy
    k: int
    rng: np.random.Generator
    left: Remaining | Listed
    labeled: Any = None

    @classmethod
    def of(
        cls,
        strategy: str | Strategy,
        k: Any,
        rows: int,
        seed: int | np.random.Generator | None = 0,
        labeled: Any = None,
        exclude: Any = None,
        bias: bool = False,
    ) -> Request:
        """The request for k picks from a pool of `rows` rows, or an error that says what is wrong with it.

        >>> Request.of("badge", 3, rows=10, exclude=range(8))
        Traceback (most recent call last):
        badge.errors.InputError: asked for 3 of 2 candidates: 10 in the pool, 8 excluded
        """
        rng = seed if isinstance(seed, np.random.Generator) else generator(seed)
        done = None if exclude is None else torch.unique(as_index(exclude, rows)).numpy()
        if done is not None and len(outside := done[(done < 0) | (done >= rows)]):
            raise InputError(f"exclude holds {int(outside[0])}: positions go from 0 to {rows - 1}")
        k, left = check_k(k, rows), Remaining(0, rows, done)
        if k > (n := len(left)):
            raise InputError(f"asked for {k} of {n} candidates: {rows} in the pool, {rows - n} excluded")
        request = cls(get(strategy, bias), k, rng, left, labeled)
        if request.declared.labeled == "required" and not len(left.excluded):
            required(labeled, title(strategy))
        return request

    @cached_property
    def declared(self) -> Declaration:
        """What the strategy reads."""
        return declaration(self.strategy)
