"""The pictures of picks and docs/strategies.md are those that docs/tools/picks.py makes from the catalog."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from badge.core.catalog import CATALOG

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def picks() -> Any:
    sys.path.insert(0, str(ROOT / "docs" / "tools"))
    try:
        import picks
    finally:
        sys.path.pop(0)
    return picks


def test_pictures_and_page_are_up_to_date(picks: Any) -> None:
    made = picks.files()
    assert len(made) == len(CATALOG) + 2
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: run python docs/tools/picks.py"
        assert len(text) < 500_000
        if path.suffix == ".svg":
            ET.fromstring(text)


def test_every_strategy_has_its_words(picks: Any) -> None:
    from strategies_page import ABOUT

    assert list(ABOUT) == [row.name for row in CATALOG]


def test_a_region_is_where_a_class_scores_highest(picks: Any) -> None:
    import numpy as np

    weights = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -9.0]])
    left = np.array(picks._region(weights, 1))
    assert left[:, 0].max() == 0 and left[:, 0].min() == -1.5 and len(left) == 4
    assert picks._region(weights, 2) == []
