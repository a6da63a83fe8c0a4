"""The nearest centre of every row, as bounds that are only tightened where it pays."""

from badge.samplers.nearest.bounds import Bounds, sum_of_norms
from badge.samplers.nearest.centres import Centres
from badge.samplers.nearest.lens import Lens, far_origin
from badge.samplers.nearest.sketch import useful_sketch
from badge.samplers.nearest.tuning import Tuning

__all__ = ["Bounds", "Centres", "Lens", "Tuning", "far_origin", "sum_of_norms", "useful_sketch"]
