"""Processes forked from one that has imported what tests need: a start takes a tenth of a second, not the import of torch."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pytest",
        "uvicorn",
        "uvicorn.lifespan.on",
        "uvicorn.loops.auto",
        "uvicorn.protocols.http.auto",
        "uvicorn.protocols.websockets.auto",
        "typer._adapters",
        "PIL.Image",
        "sklearn.linear_model",
        "sklearn.feature_extraction.text",
        "badge.experiment",
        "badge.labelling.command",
        "badge.labelling.server",
        "badge.models",
        "badge.cli.select",
    ]
)
