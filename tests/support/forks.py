"""Processes forked from one that has imported what tests need: a start takes a tenth of a second, not the import of torch."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pytest",
        "uvicorn",
        "PIL.Image",
        "sklearn.linear_model",
        "sklearn.feature_extraction.text",
        "badge.experiment",
        "badge.labelling.command",
        "badge.models",
        "badge.cli.select",
    ]
)
