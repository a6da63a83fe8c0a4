"""What `mkdocs build` calls: pages made from files outside docs/, links to the repository, mathematics without a script."""

from __future__ import annotations

import html
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File
from reference import COMMANDS, FORMAT, PYTHON, commands_page, format_page, python_page
from tutorials import EXAMPLES, index_page, tutorial

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: pages of the site -> the file of the repository that is shown there
PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "vision.md": "VISION.md",
}
UNNAMED = 'data-md-component="search" role="dialog"'
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)")
MATH = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text(encoding="utf-8")))
    made: dict[str, str | bytes] = {uri: python_page(page) for uri, page in PYTHON.items()}
    made |= {COMMANDS: commands_page(), FORMAT: format_page(), "tutorials/index.md": index_page()}
    for name in EXAMPLES:
        found = tutorial(name)
        made |= {f"tutorials/{name}.md": found.page, f"tutorials/{name}.ipynb": found.notebook}
        made |= {f"tutorials/{file}": image for file, image in found.pictures.items()}
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files of the repository lead to their page, or to a copy under files/."""
    uri = page.file.src_uri
    if uri == "changelog.md":  # it mentions everything and explains nothing
        page.meta["search"] = {"boost": 0.2}
    markdown = markdown.replace("<!-- labels saved -->", labels_saved())
    folder = (ROOT / PAGES[uri]).parent if uri in PAGES else (DOCS / uri).parent

    def resolved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        place = place_of(target)
        if place is None:
            return match[1]  # mkdocs says that it leads nowhere
        if place.startswith("files/") and files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, abs_src_path=str(target)))
        return posixpath.relpath(place, posixpath.dirname(uri) or ".")

    return LINK.sub(resolved, markdown)


def labels_saved() -> str:
    """The README's section, whose tables `make results` writes."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## Labels saved\n")[1].split("\n## ")[0]
    return section.replace("](docs/", "](")


def place_of(target: Path) -> str | None:
    """Where a file of the repository is on the site; None where there is no such file."""
    for uri, source in PAGES.items():
        if target == ROOT / source:
            return uri
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return f"files/{target.relative_to(ROOT).as_posix()}" if target.is_file() and target.is_relative_to(ROOT) else None


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    return MATH.sub(mathml, content)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The theme's search dialog has no name for those who do not see it."""
    return output.replace(UNNAMED, f'{UNNAMED} aria-label="Search"')


def mathml(match: re.Match[str]) -> str:
    """MathML of a formula in TeX: every browser of today draws it, without a script and without a font of ours."""
    display = "block" if match[1] == "div" else "inline"
    made = convert(html.unescape(match[2]).strip(), display=display)
    return f'<div class="formula" tabindex="0">{made}</div>' if display == "block" else made
