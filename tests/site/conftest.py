"""The built site, once for all tests and workers: the one that BADGE_SITE names, or one that is built here."""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import browser

__all__ = ["browser"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("material", "mkdocstrings", "jupytext", "latex2mathml"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    if os.environ.get("BADGE_SITE"):
        return Path(os.environ["BADGE_SITE"])
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site" / "built").exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "--site-dir", str(folder / "site")]
            env = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
            (folder / "site" / "built").touch()
    return folder / "site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def home(site: Path) -> Iterator[str]:
    """The address of the site on a server that was started for it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
