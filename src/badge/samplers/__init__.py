"""Samplers: pure functions of (features, k, rng) that return k distinct positions in pick order.

`topk` takes scores in place of features. The plain loops that the fast samplers are tested against are in `plain`.
"""

from badge.samplers.coverage import coverage
from badge.samplers.kcenter import kcenter
from badge.samplers.kdpp import kdpp
from badge.samplers.kernels import Ball, Gauss
from badge.samplers.kmeanspp import kmeanspp
from badge.samplers.topk import topk

__all__ = ["Ball", "Gauss", "coverage", "kcenter", "kdpp", "kmeanspp", "topk"]
