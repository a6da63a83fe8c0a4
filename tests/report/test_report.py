"""`badge report` and `badge export` from end to end: files, formats, notes, looks, and life without torch."""

from __future__ import annotations

import csv
import doctest
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import badge
from badge import stats
from badge.cli import app
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.errors import BadgeError, InputError, MissingExtraError
from badge.report import Report, build, evaluate, learning_curves
from badge.report.drawings import accuracy_lines
from badge.report.saving import svg_text
from badge.report.sections.paper import counterparts, figures_of_the_paper
from badge.stats import Results
from fake_grid import PAIRS, SPEED, fake_grid, write_journals
from select_command import runner

SRC = Path(badge.__file__).parents[1]


@pytest.fixture(scope="module")
def results() -> Results:
    """Two (data, model) pairs × two batch sizes, all nine strategies; some repeats and rounds are missing."""
    pairs, sizes = [("letter", "mlp"), ("cifar10", "resnet18")], [100, 1000]
    of_the_paper = STRATEGIES[:9]  # with its ablations
    whole = Results.of(fake_grid(pairs=pairs, batch_sizes=sizes, strategies=of_the_paper, seeds=3, rounds=30))
    drop = (whole.strategy == "conf") & (whole.seed == 2) & (whole.batch_size == 100)
    drop |= (whole.strategy == "marg") & (whole.data == "letter") & (whole.labels > 2000) & (whole.seed == 0)
    columns = {name: getattr(whole, name)[~drop] for name in stats.REQUIRED}
    return Results.of(columns | {name: values[~drop] for name, values in whole.optional.items()})


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report made by the command from a flat CSV file, drawn in several processes."""
    path = tmp_path_factory.mktemp("report")
    stats.write(results, path / "all.csv")
    outcome = command("report", path / "all.csv", "--out", path / "out")
    (path / "out" / "stdout.txt").write_text(outcome.stdout, encoding="utf-8")
    return path / "out"


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def command(*arguments: object) -> Any:
    outcome = runner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome


def small(strategies: Sequence[str] = ("badge", "rand"), size: int = 100, **more: int) -> dict[str, list[Any]]:
    """The columns of one setting."""
    return fake_grid(pairs=[("letter", "mlp")], batch_sizes=[size], strategies=strategies, **more)


def build_here(columns: Mapping[str, Any], out: Path) -> tuple[Report, str]:
    """A report drawn in this process, and the text of its page."""
    report = build(Results.of(columns), out, workers=1)
    return report, report.page.read_text(encoding="utf-8")


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def lists(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def test_the_index_of_the_papers_figures(folder: Path, page: str) -> None:
    """Every figure of the paper in its place, linked where we have it, and else the grid that makes it."""
    rows = read(folder / "paper_figures.csv")
    assert [int(row["paper_figure"]) for row in rows] == list(range(1, 32))
    written = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert all(set(row["figures"].split()) <= written for row in rows)
    state = {int(row["paper_figure"]): row["state"] for row in rows}
    assert state[25] == "complete"  # letter, badge and kdpp, both batch sizes
    assert state[6] == "in part, 2 of 3 settings have all strategies; grids/paper.toml makes the rest"
    assert state[4] == "in part, 4 of 33 settings have all strategies; grids/paper.toml makes the rest"
    assert state[24] == "in part, 1 of 2 settings have all strategies; grids/paper-ablation.toml makes the rest"
    assert state[11] == "missing: grids/paper.toml makes it"
    assert state[30] == "missing: grids/paper-ablation.toml makes it"
    assert '<a href="#curves-letter-mlp-100">' in page and 'id="curves-letter-mlp-100"' in page
    grid = fake_grid(pairs=list(PAIRS), batch_sizes=[100, 1000, 10000], strategies=tuple(SPEED), rounds=9)
    drawn = {name for figure in figures_of_the_paper() for name in figure.names}
    assert {row.state for row in counterparts(Results.of(grid), drawn)} == {"complete"}


def test_the_penalty_matrix_file(folder: Path, results: Results) -> None:
    rows = lists(folder / "penalty_matrix.csv")
    assert rows[0] == ["strategy", *PAPER_STRATEGIES]
    assert [row[0] for row in rows[1:]] == [*PAPER_STRATEGIES, "average"]
    values = np.array([[float(cell) for cell in row[1:]] for row in rows[1:-1]])
    np.testing.assert_allclose(values, stats.penalty_matrix(results, PAPER_STRATEGIES).overall.values, atol=1e-9)
    np.testing.assert_allclose([float(cell) for cell in rows[-1][1:]], values.mean(axis=0), atol=1e-9)
    assert values[0].sum() > values[:, 0].sum()  # the made-up results let badge be best


@pytest.mark.parametrize("by", ["batch_size", "model"])
def test_the_grouped_matrices(folder: Path, by: str) -> None:
    rows = lists(folder / f"penalty_matrix_by_{by}.csv")
    assert rows[0] == [by, "strategy", *PAPER_STRATEGIES]
    groups = list(dict.fromkeys(row[0] for row in rows[1:]))
    assert groups == {"batch_size": ["100", "1000"], "model": ["mlp", "resnet18"]}[by]
    total = np.zeros((7, 7))
    for group in groups:
        block = [row for row in rows[1:] if row[0] == group]
        assert [row[1] for row in block] == [*PAPER_STRATEGIES, "average"]
        total += np.array([[float(cell) for cell in row[2:]] for row in block[:-1]])
    whole = lists(folder / "penalty_matrix.csv")
    np.testing.assert_allclose(total, [[float(cell) for cell in row[1:]] for row in whole[1:-1]], atol=1e-8)


def test_the_other_tables(folder: Path) -> None:
    curves = read(folder / "curves.csv")
    assert len({(r["data"], r["model"], r["batch_size"], r["strategy"]) for r in curves}) == 4 * 9
    first = next(r for r in curves if r["strategy"] == "conf" and r["batch_size"] == "100")
    assert first["repeats"] == "2" and float(first["standard_error"]) > 0
    cdf = read(folder / "cdf.csv")
    assert {(r["group_by"], r["group"]) for r in cdf} == {
        ("all", "all"), ("batch_size", "100"), ("batch_size", "1000"), ("model", "mlp"), ("model", "resnet18"),
    }  # fmt: skip
    badge_rows = [r for r in cdf if r["strategy"] == "badge" and r["group_by"] == "all"]
    assert sum(float(r["weight"]) for r in badge_rows) == pytest.approx(1)
    assert badge_rows[-1]["cdf"] == "1"
    diversity = read(folder / "diversity.csv")
    assert {r["strategy"] for r in diversity} == set(STRATEGIES[:9])
    assert any(r["log_det"] == "-inf" for r in diversity if r["strategy"] == "conf")
    assert all(float(r["select_seconds"]) > 0 for r in read(folder / "timing.csv") if r["select_seconds"])
    saved = read(folder / "labels_saved.csv")
    assert {r["strategy"] for r in saved} == {*PAPER_STRATEGIES} - {"rand"}
    entry = next(r for r in saved if r["data"] == "letter" and r["strategy"] == "badge")
    assert float(entry["ratio_low"]) <= float(entry["ratio"]) <= float(entry["ratio_high"])
    median = next(r for r in saved if r["data"] == "median" and r["strategy"] == "badge")
    assert float(median["ratio"]) < 1 and median["ratio_low"] == ""  # two data sets


def test_every_figure_is_written_in_the_formats_asked_for(tmp_path: Path) -> None:
    stats.write(stats.example(), tmp_path / "all.csv")
    command("report", tmp_path / "all.csv", "--out", tmp_path, "--png", "--pdf")
    figures = tmp_path / "figures"
    svgs, *others = ({path.stem for path in figures.glob(f"*.{end}")} for end in ("svg", "png", "pdf"))
    assert others == [svgs, svgs] and "penalty-all" in svgs
    assert (figures / "penalty-all.png").read_bytes()[:4] == b"\x89PNG"
    assert (figures / "penalty-all.pdf").read_bytes()[:4] == b"%PDF"


def test_every_figure_is_on_the_page(folder: Path, page: str) -> None:
    svgs = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {"penalty-all", "penalty-batch-size-100", "penalty-model-mlp", "cdf-all", "cdf-model-mlp"} <= svgs
    assert {"labels-saved", "curves-letter-mlp-100", "curves-letter-mlp-100-zoomed"} <= svgs
    assert {"log-det-letter-mlp-100", "mean-norm-letter-mlp-100", "seconds-letter-mlp-100"} <= svgs
    for name in svgs:
        assert f'<figure id="{name}"' in page
        ElementTree.parse(folder / "figures" / f"{name}.svg")


def test_without_a_wish_figures_are_svg_alone(tmp_path: Path) -> None:
    build(stats.example(), tmp_path / "out", workers=1)
    assert {path.suffix for path in (tmp_path / "out" / "figures").iterdir()} == {".svg"}
    with pytest.raises(InputError, match="no format 'gif' of figures; there are png, pdf beside SVG"):
        build(stats.example(), tmp_path / "none", formats=["png", "gif"])
    assert not (tmp_path / "none").exists()


def test_the_page_is_self_contained(page: str) -> None:
    assert "<script" not in page and "<image" not in page  # nothing is run, nothing is rasterised
    links = set(re.findall(r'(?:href|src|data)="([^"]+)"', page))
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"url\((?!#)", page) and "@import" not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) and "#010203" not in page and "currentColor" in page


def test_the_page_says_what_it_shows_and_what_is_missing(folder: Path, page: str) -> None:
    for title in ("All settings (4)", "Batch size 100 (2)", "Batch size 1,000 (2)", "Model mlp (2)"):
        assert f'aria-label="{title}"' in page
    assert "cifar10: 20,000 of 50,000" in page
    assert "letter · mlp · B = 100: conf lacks seed 2; it is paired on the 2 it has" in page
    assert "letter · mlp · B = 100: marg stops before 3,000 labels: seed 0 at 2,000" in page
    assert "kdpp, kcenter-grad: not among the paper" in page
    topics = {row["topic"] for row in read(folder / "notes.csv")}
    assert {"data sets used in part", "missing repeats", "unequal numbers of rounds"} <= topics


def test_the_terminal_shows_the_main_matrix(folder: Path) -> None:
    text = (folder / "stdout.txt").read_text(encoding="utf-8")
    assert "Penalty matrix, 4 settings" in text and "average" in text
    assert all(name in text for name in PAPER_STRATEGIES)
    assert "report.html" in text and "missing repeats (" in text


def test_other_strategies_can_be_compared(tmp_path: Path) -> None:
    columns = small(tuple(SPEED), rounds=9)
    results = Results.of({name: columns[name] for name in stats.REQUIRED})
    stats.write(results, tmp_path / "all.csv")
    arguments = ["report", tmp_path / "all.csv", "-o", tmp_path / "out", "--strategies"]
    command(*arguments, "kdpp, badge")
    assert (tmp_path / "out" / "penalty_matrix.csv").read_text(encoding="utf-8").startswith("strategy,kdpp,badge\n")
    with pytest.raises(BadgeError, match="no results of the strategy 'typo'; there are of badge, coreset"):
        command(*arguments, "typo")
    with pytest.raises(InputError, match="named twice"):
        evaluate(results, ["badge", "badge"])


def test_strategies_from_elsewhere_are_compared_where_the_papers_are_not_there() -> None:
    columns = small(rounds=20)
    columns["strategy"] = ["mine" if name == "badge" else name for name in columns["strategy"]]
    assert evaluate(Results.of(columns)).strategies == ("rand", "mine")


def test_export_says_what_it_leaves_out(tmp_path: Path) -> None:
    table = Path(tmp_path / "in.csv")
    head, row = "data,model,strategy,batch_size,seed,labels,test_accuracy\n", "digits,mlp,badge,10,0,{},{}\n"
    table.write_text(head + row.format(10, 0.5) + row.format(20, ""), encoding="utf-8")
    outcome = command("export", table, "-o", tmp_path / "out.csv")
    assert "1 rows of 1 runs" in outcome.stdout
    assert "rows left out: 1 rows without a test accuracy" in outcome.stderr


def test_export_writes_the_form_that_report_reads(results: Results, tmp_path: Path) -> None:
    write_journals(results, tmp_path / "runs")
    outcome = command("export", tmp_path / "runs", "-o", tmp_path / "sub" / "all.csv")
    assert "106 runs" in outcome.output  # of 108
    header = (tmp_path / "sub" / "all.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header[:7] == list(stats.REQUIRED)
    again = stats.load(tmp_path / "sub" / "all.csv")
    np.testing.assert_array_equal(again.test_accuracy, results.test_accuracy)
    np.testing.assert_array_equal(again.column("log_det"), results.column("log_det"))
    assert again.completeness == results.completeness


@pytest.mark.parametrize("missing", ["rand", "diversity", "everything but one run"])
def test_reports_of_incomplete_results(missing: str, tmp_path: Path) -> None:
    whole = Results.of(small(seeds=2, rounds=20))
    keep = np.ones(len(whole), dtype=bool)
    if missing == "rand":
        keep = whole.strategy != "rand"
    if missing == "everything but one run":
        keep = (whole.strategy == "badge") & (whole.seed == 0)
    table = {name: getattr(whole, name)[keep] for name in stats.REQUIRED}
    if missing != "diversity":
        table |= {name: values[keep] for name, values in whole.optional.items()}
    report, page = build_here(table, tmp_path)
    assert "curves-letter-mlp-100" in page
    if missing == "diversity":
        assert 'id="diversity"' not in page
        assert (tmp_path / "diversity.csv").read_text(encoding="utf-8").count("\n") == 1
    else:
        assert "no rand, so no label budgets" in page and "No setting has label budgets" in page
        assert report.statistics.penalty.overall.settings == 0


def test_a_setting_without_budgets_does_not_count(tmp_path: Path) -> None:
    with_budgets, without = small(rounds=20), small(size=10000, rounds=2)
    report, page = build_here({name: with_budgets[name] + without[name] for name in stats.REQUIRED}, tmp_path)
    assert report.statistics.penalty.overall.settings == 1
    assert "All settings (1)" in page and "none: n₀ = 10,100 is fewer than two batches above M = 100" in page


def test_odd_names(tmp_path: Path) -> None:
    """Long, alike as file names, with characters that HTML, XML and matplotlib would take for their own."""
    grids = []
    for data in ("my <b>data</b> $x$ & more.than.that:load_everything", "a b", "a-b"):
        grid = small(rounds=12, seeds=2)
        grid["data"] = [data] * len(grid["data"])
        grid["strategy"] = ["my_own <strategy> & $more$" if n == "badge" else n for n in grid["strategy"]]
        grids.append(grid)
    columns = {name: [value for grid in grids for value in grid[name]] for name in stats.REQUIRED}
    report, page = build_here(columns, tmp_path)
    assert "<b>" not in page and "my &lt;b&gt;data&lt;/b&gt; $x$ &amp; more" in page
    names = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert len(names) == report.figures and {"curves-a-b-mlp-100", "curves-a-b-mlp-100-2"} <= names
    for name in names:
        ElementTree.parse(tmp_path / "figures" / f"{name}.svg")


def test_a_missing_extra_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        sys.modules["badge.report.build"], "find_spec", lambda name: None if name == "jinja2" else find(name)
    )
    with pytest.raises(MissingExtraError, match=r"the report needs jinja2: pip install 'badge-learn\[study\]'"):
        build(stats.example(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_out_must_be_a_folder(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        build(results, tmp_path / "file")


def test_learning_curves_for_other_callers(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="4 settings: name one of"):
        learning_curves(results)
    for ending in ("svg", "png"):
        path = tmp_path / f"curve.{ending}"
        learning_curves(results, path, setting=results.settings[0], strategies=["badge", "rand"])
        assert path.stat().st_size > 1000


def test_the_legend_does_not_cover_the_data(results: Results) -> None:
    figure = learning_curves(results, setting=results.settings[0], strategies=STRATEGIES)
    figure.canvas.draw()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_tightbbox()
    assert axes is not None and not legend.overlaps(axes)
    assert figure.bbox.containsx(legend.x0) and figure.bbox.containsx(legend.x1) and legend.y0 >= 0


def test_figures_are_the_same_every_time(results: Results) -> None:
    assert len({svg_text(learning_curves(results, setting=results.settings[0])) for _ in range(2)}) == 1


def test_accuracies_are_in_per_cent(results: Results) -> None:
    line = accuracy_lines(results, results.settings[0], ["rand"]).lines[0]
    mean = stats.mean_curve(stats.learning_curve(results, results.settings[0], "rand"))
    np.testing.assert_allclose(line.y, 100 * mean.mean)


@pytest.mark.parametrize("name", ["report.md", "statistics.md"])
def test_the_documentation_is_true(name: str) -> None:
    text = (SRC.parent / "docs" / name).read_text(encoding="utf-8")
    examples = re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(examples), {}, name, name, 0)
    assert len(test.examples) > 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_statistics_of_the_full_grid(tmp_path: Path) -> None:
    """1,155 runs × 20 rounds here; `python tests/support/fake_grid.py` writes 300 rounds for measuring by hand."""
    stats.write(Results.of(fake_grid(rounds=20)), tmp_path / "all.csv")
    full = stats.load(tmp_path / "all.csv")
    assert (len(full.runs), evaluate(full).penalty.overall.settings) == (1155, 33)


def test_reports_without_torch(tmp_path: Path) -> None:
    """In an environment of links to everything but torch and what came with it; -S keeps the real one out."""
    packages, table, again = (tmp_path / name for name in ("packages", "in.csv", "again.csv"))
    packages.mkdir()
    for folder in {Path(entry) for entry in sys.path if Path(entry).name == "site-packages"}:
        for entry in folder.iterdir():
            link = packages / entry.name
            if not link.exists() and not entry.name.lower().startswith(("torch", "functorch", "__pycache__")):
                link.symlink_to(entry)

    def python(*arguments: object) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": f"{SRC}{os.pathsep}{packages}"}
        program = [sys.executable, "-S", *map(str, arguments)]
        return subprocess.run(program, capture_output=True, text=True, env=environment, check=False)

    assert "No module named 'torch'" in python("-c", "import torch").stderr
    stats.write(stats.example(), table)
    run = python("-m", "badge", "report", table, "--out", tmp_path / "report")
    assert run.returncode == 0 and "Penalty matrix, 1 setting" in run.stdout, run.stderr
    assert (tmp_path / "report" / "report.html").exists()
    assert python("-m", "badge", "export", table, "-o", again).returncode == 0
    assert again.read_text(encoding="utf-8") == table.read_text(encoding="utf-8")
