"""Every ```python block of README.md, CONTRIBUTING.md and docs/ runs: one namespace per file, in an empty directory."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from stand_ins import stand_in

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: paths of the repository, and links to files of it
PATH = re.compile(r"`((?:src|tests|docs|grids|results|benchmarks)/[\w./-]+)`|\]\((?!https?:)([\w./-]+)")
#: pages that the build of the site makes (tests/site looks at these)
MADE = {
    str(ROOT / "docs" / name) for name in re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """(line number, source) of every python block."""
    return [(text[: match.start(1)].count("\n"), match.group(1)) for match in BLOCK.finditer(text)]


def run_page(page: Path, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the blocks of a page in order; a failure shows the line of the page. Returns how many there were."""
    monkeypatch.chdir(workdir)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page.read_text(encoding="utf-8"))
    for line, source in found:
        exec(compile("\n" * line + source, str(page), "exec"), namespace)
    return len(found)


#: page -> a library that its program needs, and the oldest version that knows the argument
NEEDS = {"hf-trainer.md": ("transformers", "4.46"), "web-service.md": ("fastapi", "0.110")}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEEDS:
        library, oldest = NEEDS[page.name]
        pytest.importorskip(library, oldest, reason=f"the page is for {library} {oldest} and later")
    stand_in(page.read_text(encoding="utf-8"), monkeypatch)
    run_page(page, tmp_path, monkeypatch)


def dead_paths(text: str, folder: Path) -> list[str]:
    """Paths in backticks, from the root, and links, from the page, that lead nowhere."""
    found = [(ROOT / path, path) if path else (folder / link, link) for path, link in PATH.findall(text)]
    return [shown for path, shown in found if not path.exists() and os.path.normpath(path) not in MADE]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_paths_exist(page: Path) -> None:
    assert dead_paths(page.read_text(encoding="utf-8"), page.parent) == []


def test_a_dead_path_is_seen() -> None:
    text = "see `src/badge/nowhere.py`, [there](docs/nothing.md), `docs/loop.md` and [here](https://example.org)"
    assert dead_paths(text, ROOT) == ["src/badge/nowhere.py", "docs/nothing.md"]


@pytest.mark.parametrize("name", ["pytorch.md", "huggingface.md", "scikit-learn.md", "arrays.md"])
def test_the_first_program_of_an_adapter_page_is_complete_and_short(name: str) -> None:
    (_, source), *_ = blocks((ROOT / "docs" / name).read_text(encoding="utf-8"))
    assert "import badge" in source
    assert len(source.splitlines()) < 40


def test_a_block_that_fails_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n```python\nx = 1\n```\n\ntext\n\n```python\nassert x == 2\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError) as caught:
        run_page(page, tmp_path, monkeypatch)
    assert caught.traceback[-1].lineno == 9  # counted from 0: the line of the page
    assert run_page(ROOT / "docs" / "arrays.md", tmp_path, monkeypatch) == 2
