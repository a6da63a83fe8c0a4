"""Ray's workers, forked from a process that has imported what they need: a start takes half a second, not two.

A raylet runs this file to set up a worker. It hands its arguments, environment and open files to the process that forks.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

#: the environment variable with the socket of the process that forks
AT = "BADGE_TEST_RAY_WORKERS"
#: what takes time, of this and of Ray's, but not Ray itself: it reads the environment of a worker while it is imported
IMPORTS = ["fastapi", "jsonschema", "pandas", "psutil", "pyarrow.dataset", "pytest", "requests", "torch"]
IMPORTS += [
    "badge.cluster.predicting",
    "badge.cluster.selecting",
    "badge.experiment",
    "badge.models",
    "badge.outputs.far",
]


def hand_over() -> None:
    """Have a worker forked. Ray knows it by the id among its arguments, so this process ends."""
    with socket.socket(socket.AF_UNIX) as forks:
        forks.connect(os.environ[AT])
        socket.send_fds(forks, [json.dumps([sys.argv, str(Path.cwd()), dict(os.environ)]).encode()], [0, 1, 2])


class Forks:
    """A process that forks workers until `close`, or until this process ends. The nodes of a cluster need `AT`."""

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/forks"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.path)
        listening.listen(100)  # before anybody asks
        command = [sys.executable, __file__, str(listening.fileno())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listening.fileno()])
        listening.close()

    def close(self) -> None:
        self.process.communicate()


def forked(listening: socket.socket) -> list[str]:
    """Fork a worker for each request until stdin is closed. Return in the worker, with its arguments."""
    gc.disable()  # what is imported stays
    for module in IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.freeze()
    gc.enable()
    assert "ray" not in sys.modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        request, _ = listening.accept()
        content, files, *_ = socket.recv_fds(request, 2**20, 3)
        request.close()
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    else:
        sys.exit()
    listening.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    arguments, folder, environment = json.loads(content)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return list(arguments)


def work(arguments: list[str]) -> None:
    """What `ray/_private/workers/setup_worker.py` does, in this process."""
    from ray._private.workers import setup_worker

    args, sys.argv = setup_worker.parser.parse_known_args(arguments[1:])
    assert not json.loads(args.serialized_runtime_env_context or "{}").get("command_prefix")
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        work(forked(socket.socket(fileno=int(sys.argv[1]))))
    else:
        hand_over()
