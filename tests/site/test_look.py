"""The site in a browser: desktop and phone, light and dark, search; axe-core has no serious finding."""

from __future__ import annotations

from typing import Any

import pytest

from pages import check

PAGES = [
    "", "strategies/", "tutorials/images/", "loop/", "explanation/mathematics/", "data-types/", "reference/commands/",
    "reference/select/", "results/",
]  # fmt: skip
#: The width and colours of each look, and the button that changes to them. Going back and forth, half of the pages are
#: loaded in each of the two looks, and all are seen in both.
LOOKS = [(1280, "default", "To the light colours"), (390, "slate", "To the dark colours")]


#: The theme lets the keyboard reach code that is too wide, some frames after the page has changed its width.
FOCUSABLE = """() => [...document.querySelectorAll('pre > code')].every(
  (code) => code.scrollWidth <= code.clientWidth || code.hasAttribute('tabindex'))"""


def test_pages(browser: Any, home: str) -> None:
    """At a desk in light colours and on a phone in dark ones."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    for number, name in enumerate(PAGES):
        page.goto(home + name)
        page.add_style_tag(content="* {transition: none !important}")
        for width, scheme, button in LOOKS if number % 2 == 0 else LOOKS[::-1]:
            if page.get_attribute("body", "data-md-color-scheme") != scheme:
                page.click(f"label[title='{button}']")
            page.set_viewport_size({"width": width, "height": 800})
            assert page.get_attribute("body", "data-md-color-scheme") == scheme
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            page.wait_for_function(FOCUSABLE)
            check(page)
    assert said == []
    assert [url for url in asked if not url.startswith(home)] == []
    page.close()


@pytest.mark.parametrize(("wish", "scheme"), [("light", "default"), ("dark", "slate")])
def test_the_colours_are_those_of_the_system(browser: Any, home: str, wish: str, scheme: str) -> None:
    page = browser.new_page(color_scheme=wish)
    page.goto(home)
    assert page.get_attribute("body", "data-md-color-scheme") == scheme
    page.close()


#: All of these pages are among the results, and the first of them is the first result if it has to be.
FOUND = """([pages, first]) => {
    const found = [...document.querySelectorAll('.md-search-result__item a')].map(link => link.getAttribute('href'));
    return pages.every(page => found.some(link => link.includes(page))) && (!first || found[0].includes(pages[0]));
}"""


@pytest.mark.parametrize(
    ("words", "pages"),
    [
        ("journal repair", ("reference/commands/", "explanation/journal/")),
        ("cold start", ("tutorials/cold_start/", "strategies/")),
        ("multi-label", ("data-types/", "reference/select/")),
    ],
)
def test_search_finds_pages(browser: Any, home: str, words: str, pages: tuple[str, ...]) -> None:
    page = browser.new_page()
    page.goto(home)
    page.click(".md-search__input")
    page.wait_for_function("document.querySelector('.md-search-result__meta').innerText.startsWith('Type to')")  # ready
    page.keyboard.type(words)  # the page listens to keys
    first = words != "journal repair"  # two pages explain that as well
    page.wait_for_function(FOUND, arg=[list(pages), first])  # what the first letters find comes before it
    page.close()
