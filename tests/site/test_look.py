"""The site in a browser: desktop and phone, light and dark, search; axe-core has no serious finding."""

from __future__ import annotations

from typing import Any

import pytest

from pages import check

PAGES = [
    "", "strategies/", "tutorials/images/", "loop/", "explanation/mathematics/", "data-types/", "reference/commands/",
    "reference/select/", "results/",
]  # fmt: skip
#: axe-core needs a second for a page. It sees each in one of the two ways, and text, code, tables and pictures in both.
CHECKED = {"light": PAGES[::2], "dark": ["", *PAGES[1::2]]}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages(browser: Any, home: str, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for name in PAGES:
        page.goto(home + name)
        wanted = "slate" if scheme == "dark" else "default"
        assert page.get_attribute("body", "data-md-color-scheme") == wanted
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if name in CHECKED[scheme]:
            check(page)
    assert said == []
    assert [url for url in asked if not url.startswith(home)] == []
    context.close()


def test_search_finds_a_page(browser: Any, home: str) -> None:
    page = browser.new_page()
    page.goto(home)
    page.click(".md-search__input")
    page.wait_for_function("document.querySelector('.md-search-result__meta').innerText.startsWith('Type to')")  # ready
    page.keyboard.type("journal repair")  # the page listens to keys
    page.wait_for_selector(".md-search-result__item a")
    found = [link.get_attribute("href") for link in page.query_selector_all(".md-search-result__item a")]
    assert any("reference/commands/" in link for link in found) and any(
        "explanation/journal/" in link for link in found
    )
    page.close()
