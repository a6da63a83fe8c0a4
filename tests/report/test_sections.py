"""A section of the report is one module and one line of the list: everything else follows from what it returns."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from badge import stats
from badge.report import build, sections
from badge.report.drawings import Lines, mean_lines
from badge.report.section import Section, Study
from badge.report.tables import Table

build_module = importlib.import_module("badge.report.build")


def epochs(study: Study) -> Section:
    curve = stats.mean_curve(stats.learning_curve(study.results, study.results.settings[0], "rand"))
    lines = Lines("epochs", "Epochs <b>", "number of labels", "epochs", mean_lines({"rand": curve}))
    table = Table("epochs", ["labels", "epochs"], zip(curve.labels.tolist(), curve.mean.tolist(), strict=True))
    words = "<p>About {{ many }}, below {{ above }}.</p>{{ figures }}"
    return Section("epochs", "Epochs", words, {"many": "<5>", "above": len(study.drawn)}, [[lines]], [table])


def test_every_module_is_on_the_page_once() -> None:
    """A module that is not in the list would never be seen."""
    modules = {module.name for module in pkgutil.iter_modules(sections.__path__)}
    assert {make.__module__.rsplit(".", 1)[-1] for make in sections.SECTIONS} == modules
    assert len(sections.SECTIONS) == len(modules)


@pytest.mark.parametrize("place", [0, 9])
def test_a_section_of_ones_own(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [*sections.SECTIONS[:place], epochs, *sections.SECTIONS[place:]]
    monkeypatch.setattr(build_module, "SECTIONS", listed)
    written = build(stats.example(), tmp_path, workers=1)
    page = written.page.read_text(encoding="utf-8")
    assert '<li><a href="#epochs">Epochs</a></li>' in page and '<section id="epochs">\n<h2>Epochs</h2>' in page
    assert f"About &lt;5&gt;, below {0 if place == 0 else 9}." in page and 'aria-label="Epochs &lt;b&gt;"' in page
    assert (page.index('id="epochs"') < page.index('id="penalty"')) == (place == 0)
    assert (tmp_path / "figures" / "epochs.svg").exists() and "<code>epochs.csv</code>" in page
    assert (tmp_path / "epochs.csv").read_text(encoding="utf-8").startswith("labels,epochs\n100,0.4\n")


def test_a_section_that_is_not_shown_writes_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "SECTIONS", [lambda study: epochs(study)._replace(figures=[], shown=False)])
    written = build(stats.example(), tmp_path, workers=1)
    assert "epochs.csv" in written.page.read_text(encoding="utf-8") and (tmp_path / "epochs.csv").exists()
    assert 'id="epochs"' not in written.page.read_text(encoding="utf-8")
