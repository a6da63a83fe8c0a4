"""The drawings of docs/architecture.md are those that docs/drawings.py makes, and their words fit."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def drawings() -> Any:
    spec = importlib.util.spec_from_file_location("drawings", DOCS / "drawings.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["drawings"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_up_to_date(drawings: Any) -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for name, (columns, steps) in drawings.DRAWINGS.items():
        stored = (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert stored == drawings.svg(columns, steps), f"{name}.svg is old: run python docs/drawings.py"
        assert f"(images/{name}.svg)" in page
        ET.fromstring(stored)


def test_words_fit_their_arrows(drawings: Any) -> None:
    for columns, steps in drawings.DRAWINGS.values():
        gap = (drawings.WIDTH - 2 * drawings.MARGIN) / (len(columns) - 1)
        for step in steps:
            if isinstance(step, drawings.Arrow):
                room = gap * abs(columns.index(step.start) - columns.index(step.end))
                assert 6.6 * len(step.text) < room, step.text
