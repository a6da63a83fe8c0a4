"""What a release needs: the check knows every command and extra, and the files that hosts read are well-formed."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.fixture(scope="module")
def check() -> Any:
    spec = importlib.util.spec_from_file_location("release_check", ROOT / ".ci" / "release_check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_every_extra_is_checked(check: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exec(check.COMMANDS, {})
    assert {"select", "label", "journal show", "journal repair"} <= set(capsys.readouterr().out.splitlines())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(check.WORKS) | {"bench", "dev", "docs"} >= set(extras)
    assert set(check.WORKS) <= set(extras) and set(check.NEEDS.values()) <= set(extras)


def test_hosted_ci_calls_the_script_and_nothing_else() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.*)", text) == [".ci/run"]


@pytest.mark.parametrize("name", ["CITATION.cff", ".pre-commit-config.yaml", ".github/workflows/ci.yml",
                                  ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"])  # fmt: skip
def test_yaml(name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
