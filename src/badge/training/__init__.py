"""Training: the paper's rule and networks, and anything else that can fit."""

from badge.training import networks
from badge.training.frozen import Frozen
from badge.training.trainer import Trainer

__all__ = ["Frozen", "Trainer", "networks"]
