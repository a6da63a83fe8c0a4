"""What tests of pages need: a browser, axe-core, and the labelling page in a forked process, which starts at once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import badge
from forks import FORKS

#: The first one has no windows: a page costs a quarter of the time that it costs in the others.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SOURCE = str(Path(badge.__file__).parents[1])
AXE = Path(__file__).parent / "vendor" / "axe.min.js"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; tests that need it are skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def check(page: Any) -> None:
    """No finding of axe-core that is serious or critical. Its script comes in past the page's own policy."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    # "region" is a moderate finding wherever it is one, and looks at every node
    options = "{resultTypes: ['violations'], rules: {region: {enabled: false}}, selectors: false, preload: false}"
    found = page.evaluate(f"axe.run(document, {options}).then(found => found.violations)")
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == [], serious


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def command(arguments: list[str], folder: Path, log: Path) -> None:
    """`badge` with these arguments, in a folder; what it prints goes to the log."""
    import torch

    from badge.cli import main

    torch.set_num_threads(1)
    os.environ["HF_HUB_CACHE"] = str(folder / "no-encoder-is-installed")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    os.chdir(folder)
    printed = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(printed, stream.fileno())
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = ["badge", *arguments]
    main()


class Server:
    """`badge label` with these arguments, in a folder; can be killed and started again on its port."""

    def __init__(self, folder: Path, *arguments: str, seconds: float = 60) -> None:
        pytest.importorskip("uvicorn", reason="uvicorn is not installed")
        self.folder, self.arguments, self.seconds, self.port = folder, arguments, seconds, free_port()
        self.start()

    def start(self) -> None:
        self.log = self.folder / "server.log"
        self.log.write_text("")
        arguments = ["label", *self.arguments, "--port", str(self.port)]
        self.process = FORKS.Process(target=command, args=(arguments, self.folder, self.log), daemon=True)
        self.process.start()
        end = time.monotonic() + self.seconds
        while not (found := re.search(r"https?://\S+", self.log.read_text())) or not self._answers():
            if not self.process.is_alive() or time.monotonic() > end:
                raise AssertionError(f"no server: {self.log.read_text()}")
            time.sleep(0.05)
        self.url = found[0]
        self.home = f"http://127.0.0.1:{self.port}"

    def _answers(self) -> bool:
        with socket.socket() as attempt:
            attempt.settimeout(0.2)
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def stop(self) -> str:
        """Ctrl-C; what it printed."""
        os.kill(self.process.pid or 0, signal.SIGINT)
        self.process.join(20)
        self.kill()
        return self.log.read_text()


#: what the page says and shows
SHOWN = "() => ['said', 'item'].map(id => document.getElementById(id).innerText).join()"


class Person:
    """A page in a new browser context, used as a person would use it."""

    def __init__(self, browser: Any, url: str, name: str = "ann", **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 800}, **context})
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.add_init_script(f"localStorage.getItem('badge-name') ?? localStorage.setItem('badge-name', '{name}')")
        self.page.goto(url)
        self.settle()

    def settle(self) -> None:
        self.wait("() => document.querySelector('#work').getAttribute('aria-busy') === 'false'")

    def text(self) -> str:
        return str(self.page.inner_text("#item .text"))

    def press(self, key: str) -> None:
        """Press a key that answers, and wait for what comes of it."""
        before = self.page.evaluate(f"() => ({SHOWN})()")
        self.page.keyboard.press(key)
        self.wait(
            f"before => document.getElementById('work').ariaBusy === 'false' && ({SHOWN})() !== before",
            before,
        )

    def wait(self, condition: str, given: Any = None) -> None:
        """Until a function of the page says so. It is asked by a timer: by default each look would draw the page."""
        self.page.wait_for_function(condition, arg=given, polling=10)

    def close(self) -> None:
        self.context.close()


def events(server: Server, *kinds: str) -> list[dict[str, Any]]:
    """The events of these kinds that the page has written."""
    return [e for e in badge.journal.read(server.folder / "pool.labels.jsonl") if e["event"] in kinds]
