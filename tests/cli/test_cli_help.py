"""Help at every width, and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import badge
from badge import data
from badge.cli import app
from badge.core import catalog
from badge.core.rng import PICKS_VERSION
from badge.experiment.cell import LINEAR
from badge.training import networks

ROOT: Any = typer.main.get_command(app)
COMMANDS = [(name,) for name in ROOT.commands if name != "journal"]
COMMANDS += [("journal", name) for name in ROOT.commands["journal"].commands]


def command(words: tuple[str, ...]) -> Any:
    found = ROOT
    for word in words:
        found = found.commands[word]
    return found


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_option_is_cut(words: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert shown.exit_code == 0 and "[bold]" not in shown.output and "Examples" not in shown.output[:60]
    for option in command(words).params:
        for name in option.opts if option.param_type_name == "option" else ():
            assert name in shown.output, f"{name} is cut at {columns} columns"


def test_the_version_of_the_code_and_of_its_picks() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"badge {badge.__version__}, picks version {PICKS_VERSION}\n")


def test_examples_stay_on_their_lines_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = CliRunner().invoke(app, ["select", "--help"]).output
    assert "badge select --probabilities p.npy --embeddings z.npy -k 100\n" in shown


@pytest.mark.parametrize("columns", ["60", "119", "250"])
def test_the_table_of_strategies(columns: str) -> None:
    shown = " ".join(CliRunner().invoke(app, ["strategies"], env={"COLUMNS": columns}).output.split())
    assert "…" not in shown  # no word is cut
    for row in catalog.CATALOG:
        assert row.name in shown and row.picks in shown and row.source in shown


def test_help_lists_the_strategies() -> None:
    for command in ("run", "select", "label", "report"):
        text = " ".join(CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "90"}).output.split())
        assert ", ".join(catalog.STRATEGIES) in text.replace("- ", "-"), command  # a line may end behind a hyphen


def test_help_names_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "90"}).output.split())
    assert f"Data sets: {', '.join(data.NAMES)}." in text
    assert f"Models: {', '.join([*networks.NETWORKS, LINEAR])}." in text


@pytest.mark.parametrize(("typed", "expected"), [("badge sel", "select"), ("badge select --prob", "--probabilities")])
def test_completion(typed: str, expected: str) -> None:
    program = "import sys; sys.argv = ['badge']; from badge.cli import main; main()"
    asked = {
        "_BADGE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **asked}, capture_output=True, text=True)
    assert expected in done.stdout.split(), done.stderr
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output
