"""The model of a cell: what trains it, and how it predicts for a strategy that compares several passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from badge.data import Dataset
from badge.models import predict
from badge.outputs import Outputs
from badge.training import Frozen, networks
from badge.training.linear import Linear, LinearHead
from badge.training.trainer import Trainer

if TYPE_CHECKING:
    from badge.experiment.cell import Cell

#: the model that is a linear head on the features
LINEAR = "linear"
#: what a strategy that compares several passes is given: their number, and the share of its inputs that a linear head drops
PASSES, DROPPED = 20, 0.5


def trainer_of(cell: Cell, dataset: Dataset) -> Trainer | Linear:
    """The paper's training of the cell's network; a linear head; or the frozen encoder that "package.module:make" gives."""
    if cell.model == LINEAR:
        return Linear()
    build = networks.resolve(cell.model, cell.width)
    if ":" in cell.model and isinstance(made := build(dataset.shape, dataset.classes), Frozen):
        return made
    options: dict[str, Any] = {} if cell.max_epochs is None else {"max_epochs": cell.max_epochs}
    return Trainer(lambda: build(dataset.shape, dataset.classes), lr=cell.lr or dataset.lr, **options)


def passes(model: nn.Module, pool: Any) -> Outputs:
    """What several passes with dropout say. A linear head, which is fitted without it, drops half of its inputs."""
    if isinstance(model, LinearHead):
        model = nn.Sequential(nn.Dropout(DROPPED), model)
    return predict(model, pool, passes=PASSES)
