"""Cells that a spreadsheet would run are marked, and come back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from badge.core.spreadsheet import as_meant, safe

CELLS = st.text(alphabet=st.sampled_from("'=+-@\t\r0123456789.e aé"), max_size=8)


@given(CELLS)
def test_the_way_back(cell: str) -> None:
    assert as_meant(safe(cell)) == cell


@given(CELLS)
def test_nothing_that_runs_is_left(cell: str) -> None:
    written = safe(cell)
    if written[:1] in ("=", "+", "-", "@", "\t", "\r"):
        float(written)  # a number is no formula


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(A1)", "+cmd", "-2+3", "\tx", "'=1"])
def test_formulas_are_marked(cell: str) -> None:
    assert safe(cell) == f"'{cell}"
