"""What a release needs: the check knows every command and extra, and the files that hosts read are well-formed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
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


def test_the_oldest_versions_are_those_that_are_promised() -> None:
    """What `make test-oldest` installs is what pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras, tools = (
        re.findall(rf"^OLDEST_{name} \?= (.*)$", makefile, re.MULTILINE)[0] for name in ("EXTRAS", "TOOLS")
    )
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    groups = project["optional-dependencies"]
    asked = [*project["dependencies"], *(one for extra in extras.split(",") for one in groups[extra])]
    asked += [
        one for one in groups["dev"] if one.split(">")[0] in {*tools.split(), "pytest", "pytest-xdist", "hypothesis"}
    ]
    bounds = [re.findall(r"^([\w-]+)>=([\d.]+)", one)[0] for one in asked]
    assert len(bounds) > 20
    assert [
        (name, low, pinned.get(name)) for name, low in bounds if not f"{pinned.get(name)}.".startswith(f"{low}.")
    ] == []


def test_the_sdist_is_the_repository() -> None:
    """Its tests read Dockerfile, examples and grids."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no clone")
    tracked = {path.split("/")[0] for path in listed.stdout.splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # hatch adds these two by itself
    assert tracked - {".gitignore", "pyproject.toml"} == set(
        project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    )


def test_the_citation_has_the_day_of_the_release() -> None:
    (day,) = re.findall(r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert day in re.findall(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0]


def test_hosted_ci_calls_the_script_and_nothing_else() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.*)", text) == [".ci/run"]


@pytest.mark.parametrize("name", ["CITATION.cff", ".pre-commit-config.yaml", ".github/workflows/ci.yml",
                                  ".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"])  # fmt: skip
def test_yaml(name: str) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
