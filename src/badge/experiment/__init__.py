"""The paper's experiments: cells (data × model × strategy × batch size × seed), grids of them, and what runs them."""

from badge.experiment.cell import run_cell
from badge.experiment.display import Display
from badge.experiment.executor import Executor, Outcome, Processes, Serial
from badge.experiment.grid import Cell, cells_of, journal_path, read_grid
from badge.experiment.origin import finished
from badge.experiment.runner import run_cells

__all__ = [
    "Cell", "Display", "Executor", "Outcome", "Processes", "Serial", "cells_of", "finished", "journal_path",
    "read_grid", "run_cell", "run_cells",
]  # fmt: skip
