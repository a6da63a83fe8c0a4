"""Processes forked from one that has imported what tests need: a start takes a tenth of a second, not the import of torch."""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path

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
        "sklearn.decomposition",
        "sklearn.linear_model",
        "sklearn.feature_extraction.text",
        "badge.experiment",
        "badge.labelling.command",
        "badge.labelling.server",
        "badge.models",
        "badge.cli.select",
        "torch._dynamo",  # the first optimizer of a process imports it
    ]
)


def printed(script: Path, *arguments: object) -> dict[str, int]:
    """The JSON that a script prints. It runs in a forked process, in which no thread was started."""
    with tempfile.TemporaryDirectory() as folder:
        process = FORKS.Process(target=_run, args=(str(script), [str(a) for a in arguments], folder))
        process.start()
        process.join(600)
        process.kill()
        process.join()
        said = {name: (Path(folder) / name).read_text(encoding="utf-8") for name in ("1", "2")}
    assert process.exitcode == 0, said["2"] or process.exitcode
    return dict(json.loads(said["1"]))


def _run(script: str, arguments: list[str], folder: str) -> None:
    for number in (1, 2):
        file = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")
    sys.stdout.flush()
