"""Tests for samplers and strategies that you write: the same that ours pass.

    check_sampler(sampler)     a function (features, k, rng) that returns k distinct positions
    check_strategy(strategy)   a name, or a callable (outputs, k, rng, labeled=None)

Each raises AssertionError with one line that says what is wrong, and on which pool. No test runner is needed. `law` says
how often each outcome should come up; `kmeanspp_law` and `kdpp_law` are two such laws.
"""

from badge.testing.checks import check_sampler, check_strategy
from badge.testing.laws import kdpp_law, kmeanspp_law

__all__ = ["check_sampler", "check_strategy", "kdpp_law", "kmeanspp_law"]
