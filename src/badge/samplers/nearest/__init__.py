"""The nearest centre of every row, as bounds that are only tightened where it pays."""

from badge.samplers.nearest.bounds import Bounds, sum_of_norms
from badge.samplers.nearest.centres import Centres
from badge.samplers.nearest.lens import Lens
from badge.samplers.nearest.tuning import Tuning

__all__ = ["Bounds", "Centres", "Lens", "Tuning", "sum_of_norms"]
