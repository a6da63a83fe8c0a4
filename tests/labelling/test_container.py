"""The container's files name what exists: sources, extras, options. Building needs a network and is not tested here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import typer.main

from badge.cli import app

ROOT = Path(__file__).parents[2]
LABEL: Any = typer.main.get_command(app).commands["label"]  # type: ignore[attr-defined]


def test_the_dockerfile_names_what_exists() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert steps[0][0] == "FROM" and "USER" in [step for step, _ in steps]
    for step, rest in steps:
        if step == "COPY":
            assert all((ROOT / source).exists() for source in rest.split()[:-1]), rest
    extras = re.search(r"\.\[([\w,]+)\]", text)
    assert extras is not None
    known = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", known, re.MULTILINE) for extra in extras[1].split(","))
    entry = json.loads(next(rest for step, rest in steps if step == "ENTRYPOINT"))
    assert entry[:2] == ["badge", "label"]
    command = json.loads(re.search(r"command: (\[.*\])", (ROOT / "compose.yaml").read_text())[1])  # type: ignore[index]
    LABEL.make_context("label", [*entry[2:], *command])
