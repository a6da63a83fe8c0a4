"""The paper's experiments: cells (data × model × strategy × batch size × seed), grids of them, and what runs them."""

from badge.experiment.cell import Cell, run_cell
from badge.experiment.display import Display
from badge.experiment.executor import Executor, Outcome, Processes, Serial
from badge.experiment.grid import cells_of, read_grid
from badge.experiment.resuming import finished, journal_path
from badge.experiment.runner import run_cells

__all__ = [
    "Cell", "Display", "Executor", "Outcome", "Processes", "Serial", "cells_of", "finished", "journal_path",
    "read_grid", "run_cell", "run_cells",
]  # fmt: skip
