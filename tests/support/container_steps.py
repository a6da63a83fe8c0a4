"""The steps of the Dockerfile in a clean virtual environment, for machines without Docker.

    python tests/support/container_steps.py

Reads the Dockerfile: copies what it copies, runs what it runs (but for adding a user, which would change this machine), then
starts what the container starts with a small pool and opens its page. An index of packages that cannot be reached is left
out, and said so. The environment is deleted at the end.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile in order, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, rest in (line.split(maxsplit=1) for line in lines)]


def build(folder: Path) -> dict[str, str]:
    """Do what COPY and RUN say, in `folder`; the environment to start the command in."""
    app, venv = folder / "app", folder / "venv"
    app.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    environment = {**os.environ, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for name, rest in steps():
        if name == "COPY":
            for source in rest.split()[:-1]:
                if (ROOT / source).is_dir():
                    shutil.copytree(
                        ROOT / source, app / source, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
                    )
                else:
                    shutil.copy(ROOT / source, app)
        if name == "RUN":
            for command in rest.split("&&"):
                if shlex.split(command)[0] == "useradd":
                    print(f"left out: {command.strip()}")
                    continue
                command = without_unreachable(command.strip())
                print(f"run: {command}", flush=True)
                subprocess.run(command, shell=True, cwd=app, env=environment, check=True)
    return environment


def without_unreachable(command: str) -> str:
    """The command without extra indexes that do not answer: pip would try each package there for minutes."""
    for option, url in re.findall(r"(--extra-index-url (\S+) )", command):
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except OSError:
            print(f"left out, cannot be reached: {option.strip()}")
            command = command.replace(option, "")
    return command


def serve(folder: Path, environment: dict[str, str]) -> None:
    """Start what ENTRYPOINT says with a pool, as compose.yaml does, and open the page."""
    (folder / "reviews.csv").write_text("text\n" + "".join(f"film number {i}\n" for i in range(20)))
    entry = json.loads(next(rest for name, rest in steps() if name == "ENTRYPOINT"))
    options = json.loads(re.search(r"command: (\[.*\])", (ROOT / "compose.yaml").read_text())[1])  # type: ignore[index]
    with (folder / "log").open("w") as log:
        command = [*entry, *options, "--port", "0"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while not (
            found := re.search(r"open   ann \(admin\): http://[^:/]+:(\d+)/(\S+)", (folder / "log").read_text())
        ):
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"no page: {(folder / 'log').read_text()}")
            time.sleep(0.2)
        time.sleep(1)
        with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/{found[2]}") as answer:
            page = answer.read().decode()
        assert answer.status == 200 and "<title>Label" in page, page[:200]
        print(f"{' '.join(command)}: the page is there")
    finally:
        server.terminate()
        server.wait(20)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        serve(Path(folder), build(Path(folder)))


if __name__ == "__main__":
    main()
