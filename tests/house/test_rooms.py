"""The direction of imports: a room imports only from those before it in `ROOMS`, the one place where the order stands."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import badge

#: The way of the data. `errors` stands before all of them.
ROOMS = (
    "errors",
    "core",
    "tables",
    "outputs",
    "features",
    "samplers",
    "strategies",
    "testing",
    "models",
    "data",
    "training",
    "journal",
    "learner",
    "experiment",
    "stats",
    "report",
    "cluster",
    "labelling",
    "cli",
    "__main__",
)
PACKAGE = Path(badge.__file__).parent
ROOT = Path(__file__).parents[2]
#: These never reach torch: a report rebuilds where it is not installed.
WITHOUT_TORCH = ("errors", "journal", "stats", "report")


def imports(source: str) -> set[str]:
    """The rooms (first name below `badge`) that a source text imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{a.name}" if node.module == "badge" else node.module for a in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("badge.")}
    return found & set(ROOMS)


def wrong_way(room: str, source: str) -> set[str]:
    """Imports of `source` that lead to a room behind the room's own."""
    return {name for name in imports(source) if ROOMS.index(name) > ROOMS.index(room)}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    assert room_of(path) in ROOMS, "a new room must be given its place in ROOMS"
    assert not wrong_way(room_of(path), path.read_text(encoding="utf-8"))


def test_this_test_can_fail() -> None:
    assert wrong_way("samplers", "from badge.learner import ActiveLearner") == {"learner"}
    assert wrong_way("core", "def f():\n    from badge import samplers\n") == {"samplers"}
    assert wrong_way("cli", "import badge.samplers") == set()


def test_no_loose_modules() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "errors.py"}


def test_every_room_has_its_tests() -> None:
    rooms = [path.name for path in PACKAGE.iterdir() if path.name in ROOMS and path.is_dir()]
    assert [room for room in rooms if not list((ROOT / "tests" / room).glob("test_*.py"))] == []


def test_the_readme_shows_the_rooms_in_this_order() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = [line.split("/")[0].strip() for line in readme.splitlines() if line.startswith("  ") and "/  " in line]
    assert [room for room in shown if room in ROOMS] == [room for room in ROOMS if (PACKAGE / room).is_dir()]


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_rooms_without_torch(room: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; import badge.{room}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
