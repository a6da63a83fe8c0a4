"""The report in a real browser: no error, no request, every figure visible, no overflow on a phone, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from badge.report import build
from badge.stats import Results
from fake_grid import SPEED, fake_grid
from pages import browser

__all__ = ["browser"]
OVERFLOWING = """() => [...document.querySelectorAll("body *")]
  .filter(e => !e.closest(".scroll") && !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 0.5)
  .map(e => e.tagName + " " + e.className)"""
FIGURES = """() => [...document.querySelectorAll("figure")].map(figure => {
  const box = figure.querySelector("svg").getBoundingClientRect();
  return [figure.id, box.width, box.height];
})"""
CLIPPED = """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1;
  }).map(text => svg.getAttribute("aria-label") + ": " + text.textContent);
})"""
SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll("figure svg text")].map(text => {
  const matrix = text.getScreenCTM();
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.a, matrix.b);
}))"""


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section, the nine strategies in the matrices too, and a long list of notes."""
    folder = tmp_path_factory.mktemp("page")
    columns = fake_grid(
        pairs=[("letter", "mlp")], batch_sizes=[100, 10000], strategies=tuple(SPEED), seeds=3, rounds=20
    )
    return build(Results.of(columns), folder, tuple(SPEED), workers=1).page


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")], ids=str)
def opened(request: pytest.FixtureRequest, browser: Any, page_path: Path) -> Iterator[tuple[Any, list[str], list[str]]]:
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asking: asked.append(asking.url))
    page.goto(page_path.as_uri())
    yield page, said, asked
    page.close()


def test_the_page(opened: tuple[Any, list[str], list[str]], page_path: Path) -> None:
    page, said, asked = opened
    width = page.viewport_size["width"]
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page_path.as_uri()]
    figures = page.evaluate(FIGURES)
    assert len(figures) == len(list((page_path.parent / "figures").glob("*.svg"))) > 10
    for name, w, h in figures:
        assert 250 < w <= width and h > 60, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(SMALLEST_TEXT) >= 7.5


def test_light_and_dark(browser: Any, page_path: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(page_path.as_uri())
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('#cdf-all svg text')).fill")
        assert ink == page.evaluate("getComputedStyle(document.body).color")
        assert not page.evaluate(
            """() => [...document.querySelectorAll("figure svg path")].some(path => {
              const style = getComputedStyle(path), box = path.getBoundingClientRect();
              return style.fill == "rgb(255, 255, 255)" && box.width > 100 && box.height > 100;
            })"""
        )  # no white boxes
        seen[scheme] = (background, ink)
        page.close()
    assert seen["light"][0] != seen["dark"][0] and seen["light"][1] != seen["dark"][1]
