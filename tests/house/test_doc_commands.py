"""Every `badge …` line of README.md and docs/*.md is a command that exists, with options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from badge.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def commands(page: Path) -> list[list[str]]:
    """The arguments of every call of badge in the shell blocks of a page."""
    text = "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    lines = [line.removeprefix("$ ") for line in text.splitlines() if re.match(r"(\$ )?badge ", line)]
    calls = [shlex.split(re.split(r"\s(?:[|>&]|2>)", line)[0], comments=True)[1:] for line in lines]
    return [call for call in calls if call]


def parse(arguments: list[str]) -> None:
    name, *rest = arguments
    if not name.startswith("-"):
        COMMANDS[name].make_context(name, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: Path) -> None:
    for arguments in commands(page):
        parse(arguments)


def test_this_test_can_fail() -> None:
    assert any(commands(page) for page in PAGES)
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        parse(["select", "-k", "3", "--no-such-option"])
    with pytest.raises(KeyError):
        parse(["no-such-command"])
