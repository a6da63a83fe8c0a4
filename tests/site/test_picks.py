"""The pictures of picks and docs/strategies.md are those that docs/tools/picks.py makes from the catalog."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.core.catalog import CATALOG
from badge.strategies import ALBL

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


def test_every_option_has_its_words_and_default(picks: Any) -> None:
    """What signatures say, against what sets an option: a partial with the default picks what the name picks."""
    from strategies_page import OPTIONS, options, page

    rng = np.random.default_rng(0)
    out = badge.Outputs.from_logits(rng.normal(size=(60, 3)), rng.normal(size=(60, 4)))
    out.expected_entropy = torch.rand(60, 1, generator=torch.Generator().manual_seed(0)) / 2
    sections = dict(part.split("`\n", 1) for part in page().split("\n## `")[1:])
    for row in CATALOG:
        found = options(row.name)
        assert set(found) == set(OPTIONS.get(row.name, {})), row.name
        assert ("- **Options:**" in sections[row.name]) == bool(found)
        assert all(f"`{name}={default!r}`: " in sections[row.name] for name, default in found.items())
        given: dict[str, Any] = {"k": 6, "exclude": [1, 2, 3]}
        same = ALBL(**found) if row.name == "albl" else partial(badge.strategies.get(row.name), **found)
        expected = badge.select_from(out, strategy=row.name, **given).tolist()
        assert badge.select_from(out, strategy=same, **given).tolist() == expected, row.name
    assert options("wkmeans") == {"beta": 10.0} and options("typiclust") == {"squared": False} and not options("auto")


def test_a_region_is_where_a_class_scores_highest(picks: Any) -> None:
    weights = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -9.0]])
    left = np.array(picks._region(weights, 1))
    assert left[:, 0].max() == 0 and left[:, 0].min() == -1.5 and len(left) == 4
    assert picks._region(weights, 2) == []
