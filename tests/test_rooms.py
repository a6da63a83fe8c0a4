"""The direction of imports: core ← selection ← learning ← study ← doors; left may not import right."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import badge

ROOMS = {
    "core": {"errors", "rng", "types", "journal", "ledger", "names", "outputs_store", "progress"},
    "selection": {"features", "samplers", "strategies", "selection", "explanation"},
    "learning": {"prediction", "trainer", "networks", "data", "learner", "fitting", "pools"},
    "study": {"experiment", "stats", "report", "bench"},
    "doors": {"cli", "__main__"},
}
ORDER = list(ROOMS)
ROOM_OF = {module: room for room, modules in ROOMS.items() for module in modules}
PACKAGE = Path(badge.__file__).parent
WITHOUT_TORCH = {
    "errors",
    "rng",
    "journal",
    "ledger",
    "names",
    "outputs_store",
    "progress",
    "stats",
    "report",
}  # top-level imports may not reach torch


def imports(source: str) -> set[str]:
    """The badge modules (first name below `badge`) that a source text imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{a.name}" if node.module == "badge" else node.module for a in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("badge.")}
    return found & set(ROOM_OF)


def wrong_way(module: str, source: str) -> set[str]:
    """Imports of `source` that lead to a room right of the module's own."""
    rank = ORDER.index(ROOM_OF[module])
    return {name for name in imports(source) if ORDER.index(ROOM_OF[name]) > rank}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    assert module_of(path) in ROOM_OF, "a new module must be given a room"
    assert not wrong_way(module_of(path), path.read_text(encoding="utf-8"))


def test_this_test_can_fail() -> None:
    assert wrong_way("samplers", "from badge.learner import ActiveLearner") == {"learner"}
    assert wrong_way("types", "def f():\n    from badge import samplers\n") == {"samplers"}
    assert wrong_way("cli", "import badge.samplers") == set()


@pytest.mark.parametrize("path", [p for p in modules() if module_of(p) in WITHOUT_TORCH], ids=str)
def test_rooms_without_torch(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "torch" for name in names)
    assert not imports(path.read_text(encoding="utf-8")) & {"types", *ROOMS["selection"], *ROOMS["learning"]}
