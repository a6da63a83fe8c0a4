"""Picks for a Label Studio project: its tasks are the pool, its annotations the labels, and the picks come first."""

from badge.labelling.label_studio.client import Client
from badge.labelling.label_studio.rounds import Picks, Round, Settings, run_round, watch

__all__ = ["Client", "Picks", "Round", "Settings", "run_round", "watch"]
