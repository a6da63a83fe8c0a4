"""Looks of strategies, and what is done to lines and drawings before a page shows them."""

from __future__ import annotations

import numpy as np

import badge
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.report.drawings import Line, look, thinned, zoom_window
from badge.report.saving import inline


def test_every_strategy_has_a_look_of_its_own() -> None:
    assert tuple(badge.strategies.NAMES) == STRATEGIES and tuple(badge.strategies.PAPER) == PAPER_STRATEGIES
    looks = [look(name) for name in STRATEGIES]
    assert len({style.colour for style in looks}) == len({style.marker for style in looks}) == len(STRATEGIES)
    assert look("somebody's") not in looks


def test_inline_figures_share_no_ids() -> None:
    svg = '<svg><defs><clipPath id="p1"/></defs><g id="line_1" clip-path="url(#p1)"/><use xlink:href="#p1"/></svg>'
    expected = '<clipPath id="x-p1"/></defs><g clip-path="url(#x-p1)"/><use xlink:href="#x-p1"/></svg>'
    assert inline(svg, "x", "A & B").endswith(expected)
    assert 'aria-label="A &amp; B"' in inline(svg, "x", "A & B")


def test_thinning_keeps_ends_and_gaps() -> None:
    y = np.arange(1000.0)
    y[500] = np.nan
    line = thinned(Line("conf", np.arange(1000.0), y, None))
    assert len(line.x) <= 160 and {0.0, 499.0, 500.0, 501.0, 999.0} <= set(line.x.tolist())


def test_the_zoom_is_where_the_curves_differ() -> None:
    x = np.arange(0, 2000.0, 10)
    same, other = np.full(200, 50.0), np.full(200, 50.0)
    other[80:120] = 60.0
    window = zoom_window([Line("a", x, same), Line("b", x, other)])
    assert window is not None and window[:2] == (800.0, 1190.0) and window[2] < 50 and window[3] > 60
    assert zoom_window([Line("a", x, same)]) is None
