"""The built site: links lead somewhere, nothing comes from elsewhere, every page is two clicks from the first."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

BASE = "http://site/"
#: links of these kinds are fetched by the browser without a click
FETCHED = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest", "preconnect", "dns-prefetch"}
STYLE = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """What a page loads, where it leads, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)
        self.loads += STYLE.findall(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found.get("id", ""), found.get("name", "")}
        if tag == "a":
            self.leads += [found["href"]] if "href" in found else []
            return
        if tag != "link" or set(found.get("rel", "").split()) & FETCHED:
            self.loads += [found[name] for name in ("src", "href", "data", "poster") if found.get(name)]
            self.loads += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]


def foreign(loads: list[str]) -> list[str]:
    return [url for url in loads if re.match(r"(https?:)?//", url)]


def file_of(site: Path, url: str) -> Path:
    path = site / unquote(url.removeprefix(BASE))
    return path / "index.html" if url.endswith("/") or path.is_dir() else path


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Address -> page."""
    files = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    assert len(files) > 15
    addresses = [BASE + path.relative_to(site).as_posix().removesuffix("index.html") for path in files]
    return {url: Page(path.read_text(encoding="utf-8")) for url, path in zip(addresses, files, strict=True)}


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[str, Page]) -> None:
    for url, page in pages.items():
        assert foreign(page.loads) == [], url
    for style in site.rglob("*.css"):
        assert STYLE.findall(style.read_text(encoding="utf-8")) == [], style
    assert not any('class="mermaid"' in path.read_text(encoding="utf-8") for path in site.rglob("*.html"))


def test_a_foreign_load_is_seen() -> None:
    text = (
        '<script src="https://cdn.example/a.js"></script><link rel="stylesheet" href="//fonts.example/b.css">'
        '<img srcset="c.png 1x, http://d.example/d.png 2x"><style>@import "https://e.example/e.css"</style>'
        '<a href="https://example.org">fine: a link</a><link rel="canonical" href="https://example.org/">'
    )
    assert len(foreign(Page(text).loads)) == 4


def test_formulas_are_drawn_without_a_script(site: Path) -> None:
    page = (site / "explanation" / "mathematics" / "index.html").read_text(encoding="utf-8")
    drawn = re.findall(r"<math.*?</math>", page, re.DOTALL)
    assert len(drawn) > 40
    assert not [one for one in drawn if "\\" in one], "a command of TeX that the converter does not know"
    assert "arithmatex" not in page and "$$" not in page


def test_links_lead_somewhere(site: Path, pages: dict[str, Page]) -> None:
    dead = []
    for url, page in pages.items():
        for link in [*page.leads, *page.loads]:
            target, anchor = urldefrag(urljoin(url, link))
            if not target.startswith(BASE):
                continue
            there = file_of(site, target).is_file()
            if not there or (target in pages and unquote(anchor) not in pages[target].anchors):
                dead.append((url, link))
    assert dead == []


def test_every_page_is_two_clicks_from_the_first(pages: dict[str, Page]) -> None:
    reached = {BASE}
    for _ in range(2):
        reached |= {urldefrag(urljoin(url, link))[0] for url in reached if url in pages for link in pages[url].leads}
    assert set(pages) <= reached
