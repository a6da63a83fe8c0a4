"""A section of the report is one module and one line of the list: everything else follows from what it returns."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

from badge import stats
from badge.report import build, evaluate, sections
from badge.report.build import headline
from badge.report.drawings import Lines, mean_lines
from badge.report.section import Section, Study, Table
from badge.stats import Results
from fake_grid import fake_grid

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
    assert f"About &lt;5&gt;, below {0 if place == 0 else 4}." in page and 'aria-label="Epochs &lt;b&gt;"' in page
    assert (page.index('id="epochs"') < page.index('id="curves"')) == (place == 0)
    assert (tmp_path / "figures" / "epochs.svg").exists() and "<code>epochs.csv</code>" in page
    assert (tmp_path / "epochs.csv").read_text(encoding="utf-8").startswith("labels,epochs\n100,0.4\n")


def test_a_section_that_is_not_shown_writes_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "SECTIONS", [lambda study: epochs(study)._replace(figures=[], shown=False)])
    written = build(stats.example(), tmp_path, workers=1)
    assert "epochs.csv" in written.page.read_text(encoding="utf-8") and (tmp_path / "epochs.csv").exists()
    assert 'id="epochs"' not in written.page.read_text(encoding="utf-8")


def small(strategies: list[str], seeds: int = 2, sizes: tuple[int, ...] = (100,)) -> Results:
    return Results.of(
        fake_grid(pairs=[("letter", "mlp")], batch_sizes=sizes, strategies=strategies, seeds=seeds, rounds=20)
    )


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_one_setting_and_two_seeds(tmp_path: Path) -> None:
    """Curves first, one matrix, no distribution of one setting, no interval from two repeats, the index folded."""
    page = build(small(["badge", "marg", "rand"]), tmp_path, workers=1).page.read_text(encoding="utf-8")
    assert headings(page)[:3] == ["Learning curves", "Who beats whom", "Labels saved"]
    assert page.count('<figure id="penalty-') <= 1 and 'id="cdf' not in page and "By setting" not in page
    assert "no interval from 2 repeats" in page and "95 % interval " not in page.split("<nav")[0]
    assert re.search(r"<details><summary>31 figures: .*missing</summary>", page)
    for table in ("cdf", "penalty_matrix_by_model", "penalty_matrix_by_batch_size"):
        assert (tmp_path / f"{table}.csv").exists()


def test_nobody_is_beaten_least_where_nobody_is_beaten(tmp_path: Path) -> None:
    whole = small(["badge", "marg", "rand"])
    rand = whole.test_accuracy[whole.strategy == "rand"]
    alike = Results.of(
        {name: getattr(whole, name) for name in stats.REQUIRED} | {"test_accuracy": np.concatenate([rand] * 3)}
    )
    page = build(alike, tmp_path, workers=1).page.read_text(encoding="utf-8")
    assert "In this one setting, no strategy beats another." in page and "beaten least" not in page
    assert "every entry is 0" in page and 'id="penalty-all"' not in page


@pytest.mark.parametrize(
    ("averages", "words"),
    [
        ([0, 0, 1], "In 2 settings, no strategy beats a or b."),
        ([0.5, 1, 1], "In 2 settings, a is beaten least: on average, another strategy wins in 0.75 settings."),
        ([0, 0, 0], "In 2 settings, no strategy beats another."),
    ],
)
def test_the_headline(averages: list[float], words: str) -> None:
    matrix = stats.Matrix(("a", "b", "c"), 2, np.array([averages] * 3))
    assert headline(matrix, stats.LabelsSaved((), (), ()), matrix) == [words]


def test_two_batch_sizes_have_a_matrix_each(tmp_path: Path) -> None:
    page = build(small(["badge", "rand"], 3, (100, 200)), tmp_path, workers=1).page.read_text(encoding="utf-8")
    assert 'id="penalty-batch-size-200"' in page and 'id="penalty-model-mlp"' not in page and 'id="cdf-all"' in page


def test_a_strategy_with_fewer_settings_or_seeds_is_not_ranked_with_the_others(tmp_path: Path) -> None:
    """marg has one of two settings, and only there can it lose: it must not be the one that is beaten least."""
    whole = small(["badge", "marg", "rand"], 4, (100, 200))
    for lacking in (
        (whole.strategy == "marg") & (whole.batch_size == 200),
        (whole.strategy == "marg") & (whole.seed > 1),
    ):
        part = Results.of({name: getattr(whole, name)[~lacking] for name in stats.REQUIRED})
        statistics = evaluate(part)
        paired = part.paired(["badge", "marg", "rand"])
        assert paired is not None and statistics.ranking is not None
        assert (statistics.ranking.values == stats.penalty_matrix(paired).overall.values).all()
        assert (
            statistics.ranking.settings < statistics.penalty.overall.settings or lacking[whole.batch_size == 100].any()
        )
        page = build(part, tmp_path, workers=1).page.read_text(encoding="utf-8")
        assert "with the seeds that all strategies share" in page
    medians = evaluate(Results.of({n: getattr(whole, n)[~(whole.strategy == "marg") | (whole.batch_size == 100)]
                                   for n in stats.REQUIRED})).saved.medians  # fmt: skip
    assert {entry.repeats for entry in medians} == {1}  # over the setting that both have


def test_nothing_is_ranked_where_nothing_is_shared() -> None:
    whole = small(["badge", "rand"], 4)
    apart = Results.of({name: getattr(whole, name) for name in stats.REQUIRED} | {
        "seed": whole.seed + 4 * (whole.strategy == "badge")})  # fmt: skip
    statistics = evaluate(apart)
    assert statistics.ranking is None
    words = headline(statistics.penalty.overall, statistics.saved, statistics.ranking)
    assert words == ["No setting with label budgets has two seeds that all strategies share, so none is ranked."]
