"""`badge report` and `badge export` from end to end: files, formats, notes, looks, and life without torch."""

from __future__ import annotations

import csv
import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

import badge
from badge import stats
from badge.cli import app
from badge.core.catalog import PAPER_STRATEGIES, STRATEGIES
from badge.errors import BadgeError, InputError, MissingExtraError
from badge.report import build, evaluate, learning_curves
from badge.report.drawings import Line, accuracy_lines, thinned, zoom_window
from badge.report.saving import inline, svg_text
from badge.report.sections.paper import counterparts, figures_of_the_paper
from badge.report.style import look
from badge.stats import Results
from fake_grid import PAIRS, SPEED, fake_grid, write_journals

TABLES = {
    "curves.csv",
    "penalty_matrix.csv",
    "penalty_matrix_by_batch_size.csv",
    "penalty_matrix_by_model.csv",
    "cdf.csv",
    "diversity.csv",
    "timing.csv",
    "labels_saved.csv",
    "paper_figures.csv",
}
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
    stats.write_csv(results, path / "all.csv")
    outcome = CliRunner().invoke(app, ["report", str(path / "all.csv"), "--out", str(path / "out")])
    assert outcome.exit_code == 0, outcome.output
    (path / "out" / "stdout.txt").write_text(outcome.stdout, encoding="utf-8")
    return path / "out"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lists(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_the_index_of_the_papers_figures(folder: Path, results: Results) -> None:
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
    assert (
        state[11] == "missing: grids/paper.toml makes it" and state[30] == "missing: grids/paper-ablation.toml makes it"
    )
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert '<a href="#curves-letter-mlp-100">' in page and 'id="curves-letter-mlp-100"' in page
    everything = [
        Results.of(fake_grid(pairs=list(PAIRS), batch_sizes=[100, 1000, 10000], strategies=tuple(SPEED), rounds=9))
    ]
    drawn = {name for figure in figures_of_the_paper() for name in figure.names}
    assert {row.state for row in counterparts(everything[0], drawn)} == {"complete"}


def test_every_table_is_written(folder: Path) -> None:
    assert {path.name for path in folder.glob("*.csv")} >= TABLES


def test_the_penalty_matrix_file(folder: Path, results: Results) -> None:
    rows = lists(folder / "penalty_matrix.csv")
    assert rows[0] == ["strategy", *PAPER_STRATEGIES]
    assert [row[0] for row in rows[1:]] == [*PAPER_STRATEGIES, "average"]
    values = np.array([[float(cell) for cell in row[1:]] for row in rows[1:-1]])
    assert (np.diag(values) == 0).all()
    np.testing.assert_allclose(values, stats.penalty_matrix(results, PAPER_STRATEGIES).overall.values, atol=1e-9)
    np.testing.assert_allclose([float(cell) for cell in rows[-1][1:]], values.mean(axis=0), atol=1e-9)
    badge_wins, badge_loses = values[0].sum(), values[:, 0].sum()
    assert badge_wins > badge_loses  # the made-up results let badge be best


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


def test_the_other_tables(folder: Path, results: Results) -> None:
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


def test_every_figure_is_svg_and_png(folder: Path) -> None:
    svgs = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert svgs == {path.stem for path in (folder / "figures").glob("*.png")}
    assert {"penalty-all", "penalty-batch-size-100", "penalty-model-mlp", "cdf-all", "cdf-model-mlp"} <= svgs
    assert {"labels-saved", "curves-letter-mlp-100", "curves-letter-mlp-100-zoomed"} <= svgs
    assert {"log-det-letter-mlp-100", "mean-norm-letter-mlp-100", "seconds-letter-mlp-100"} <= svgs
    page = (folder / "report.html").read_text(encoding="utf-8")
    for name in svgs:
        assert f'<figure id="{name}"' in page
        ElementTree.parse(folder / "figures" / f"{name}.svg")
    assert (folder / "figures" / "penalty-all.png").read_bytes()[:4] == b"\x89PNG"


def test_the_page_is_self_contained(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<image" not in page  # nothing is run, nothing is rasterised
    links = set(re.findall(r'(?:href|src|data)="([^"]+)"', page))
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"url\((?!#)", page) and "@import" not in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "#010203" not in page and "currentColor" in page


def test_titles_hold_the_number_of_settings(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    for title in ("All settings (4)", "Batch size 100 (2)", "Batch size 1,000 (2)", "Model mlp (2)"):
        assert f'aria-label="{title}"' in page


def test_the_page_says_what_is_missing(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
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
    results = Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=tuple(SPEED), rounds=9))
    results = Results.of({name: getattr(results, name) for name in stats.REQUIRED})
    stats.write_csv(results, tmp_path / "all.csv")
    arguments = ["report", str(tmp_path / "all.csv"), "-o", str(tmp_path / "out"), "--strategies", "kdpp, badge"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert (tmp_path / "out" / "penalty_matrix.csv").read_text(encoding="utf-8").startswith("strategy,kdpp,badge\n")
    with pytest.raises(BadgeError, match="no results of the strategy 'typo'; there are of badge, coreset"):
        CliRunner().invoke(app, [*arguments[:-1], "typo"], catch_exceptions=False)
    with pytest.raises(InputError, match="named twice"):
        evaluate(results, ["badge", "badge"])


def test_strategies_from_elsewhere_are_compared_where_the_papers_are_not_there() -> None:
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["badge", "rand"], rounds=20)
    columns["strategy"] = ["mine" if name == "badge" else name for name in columns["strategy"]]
    assert evaluate(Results.of(columns)).strategies == ("rand", "mine")


def test_export_says_what_it_leaves_out(tmp_path: Path) -> None:
    table = Path(tmp_path / "in.csv")
    head, row = "data,model,strategy,batch_size,seed,labels,test_accuracy\n", "digits,mlp,badge,10,0,{},{}\n"
    table.write_text(head + row.format(10, 0.5) + row.format(20, ""), encoding="utf-8")
    outcome = CliRunner().invoke(app, ["export", str(table), "-o", str(tmp_path / "out.csv")])
    assert outcome.exit_code == 0
    assert "1 rows of 1 runs" in outcome.stdout
    assert "rows left out: 1 rows without a test accuracy" in outcome.stderr


def test_export_writes_the_form_that_report_reads(results: Results, tmp_path: Path) -> None:
    write_journals(results, tmp_path / "runs")
    outcome = CliRunner().invoke(app, ["export", str(tmp_path / "runs"), "-o", str(tmp_path / "sub" / "all.csv")])
    assert outcome.exit_code == 0 and "108 runs" not in outcome.output and "106 runs" in outcome.output
    header = (tmp_path / "sub" / "all.csv").read_text(encoding="utf-8").splitlines()[0].split(",")
    assert header[:7] == list(stats.REQUIRED)
    again = stats.load(tmp_path / "sub" / "all.csv")
    np.testing.assert_array_equal(again.test_accuracy, results.test_accuracy)
    np.testing.assert_array_equal(again.column("log_det"), results.column("log_det"))
    assert again.completeness == results.completeness


@pytest.mark.parametrize("missing", ["rand", "diversity", "everything but one run"])
def test_reports_of_incomplete_results(missing: str, tmp_path: Path) -> None:
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["badge", "rand"], seeds=2, rounds=20)
    whole = Results.of(columns)
    keep = np.ones(len(whole), dtype=bool)
    if missing == "rand":
        keep = whole.strategy != "rand"
    if missing == "everything but one run":
        keep = (whole.strategy == "badge") & (whole.seed == 0)
    table = {name: getattr(whole, name)[keep] for name in stats.REQUIRED}
    if missing != "diversity":
        table |= {name: values[keep] for name, values in whole.optional.items()}
    report = build(Results.of(table), tmp_path)
    page = report.page.read_text(encoding="utf-8")
    assert "curves-letter-mlp-100" in page
    if missing == "diversity":
        assert 'id="diversity"' not in page
        assert (tmp_path / "diversity.csv").read_text(encoding="utf-8").count("\n") == 1
    else:
        assert "no rand, so no label budgets" in page and "No setting has label budgets" in page
        assert report.statistics.penalty.overall.settings == 0


def test_a_setting_without_budgets_does_not_count(tmp_path: Path) -> None:
    grids = [
        fake_grid(pairs=[("letter", "mlp")], strategies=["badge", "rand"], batch_sizes=[size], rounds=rounds)
        for size, rounds in ((100, 20), (10000, 2))
    ]
    columns = {name: grids[0][name] + grids[1][name] for name in stats.REQUIRED}
    report = build(Results.of(columns), tmp_path, workers=1)
    page = report.page.read_text(encoding="utf-8")
    assert report.statistics.penalty.overall.settings == 1
    assert "All settings (1)" in page and "none: n₀ = 10,100 is fewer than two batches above M = 100" in page


def test_odd_names(tmp_path: Path) -> None:
    """Long, alike as file names, with characters that HTML, XML and matplotlib would take for their own."""
    grids = []
    for data in ("my <b>data</b> $x$ & more.than.that:load_everything", "a b", "a-b"):
        grid = fake_grid(pairs=[("letter", "mlp")], strategies=["badge", "rand"], batch_sizes=[100], rounds=12, seeds=2)
        grid["data"] = [data] * len(grid["data"])
        grid["strategy"] = ["my_own <strategy> & $more$" if n == "badge" else n for n in grid["strategy"]]
        grids.append(grid)
    columns = {name: [value for grid in grids for value in grid[name]] for name in stats.REQUIRED}
    report = build(Results.of(columns), tmp_path, workers=1)
    page = report.page.read_text(encoding="utf-8")
    assert "<b>" not in page and "my &lt;b&gt;data&lt;/b&gt; $x$ &amp; more" in page
    names = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert len(names) == report.figures and {"curves-a-b-mlp-100", "curves-a-b-mlp-100-2"} <= names
    for name in names:
        ElementTree.parse(tmp_path / "figures" / f"{name}.svg")


def test_a_missing_extra_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else find(name))
    with pytest.raises(MissingExtraError, match=r"the report needs jinja2: pip install 'badge-learn\[study\]'"):
        build(stats.example(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_out_must_be_a_folder(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        build(results, tmp_path / "file")


def test_the_names_are_those_of_the_registry() -> None:
    assert tuple(badge.strategies.NAMES) == STRATEGIES and tuple(badge.strategies.PAPER) == PAPER_STRATEGIES


# --- figures ---------------------------------------------------------------------------------------------------------


def test_every_strategy_has_a_look_of_its_own() -> None:
    looks = [look(name) for name in STRATEGIES]
    assert len({style.colour for style in looks}) == len({style.marker for style in looks}) == len(STRATEGIES)
    assert look("somebody's") not in looks


def test_learning_curves_for_other_callers(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="4 settings: name one of"):
        learning_curves(results)
    for ending in ("svg", "png"):
        learning_curves(
            results, tmp_path / f"curve.{ending}", setting=results.settings[0], strategies=["badge", "rand"]
        )
        assert (tmp_path / f"curve.{ending}").stat().st_size > 1000


def test_the_legend_does_not_cover_the_data(results: Results) -> None:
    figure = learning_curves(results, setting=results.settings[0], strategies=STRATEGIES)
    figure.canvas.draw()
    legend, axes = figure.legends[0].get_window_extent(), figure.axes[0].get_tightbbox()
    assert axes is not None and not legend.overlaps(axes)
    assert figure.bbox.containsx(legend.x0) and figure.bbox.containsx(legend.x1) and legend.y0 >= 0


def test_figures_are_the_same_every_time(results: Results) -> None:
    texts = {svg_text(learning_curves(results, setting=results.settings[0])) for _ in range(2)}
    assert len(texts) == 1


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
    assert window is not None
    assert window[:2] == (800.0, 1190.0) and window[2] < 50 and window[3] > 60
    assert zoom_window([Line("a", x, same)]) is None


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


# --- the full grid, and life without torch ----------------------------------------------------------------------------


def test_statistics_of_the_full_grid(tmp_path: Path) -> None:
    """1,155 runs × 50 rounds here; `python tests/fake_grid.py` writes 300 rounds for measuring by hand."""
    stats.write_csv(Results.of(fake_grid(rounds=50)), tmp_path / "all.csv")
    full = stats.load(tmp_path / "all.csv")
    statistics = evaluate(full)
    assert (len(full.runs), statistics.penalty.overall.settings) == (1155, 33)


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Blocker())
"""
JOURNEY = """
import sys, badge, badge.stats, badge.report
from pathlib import Path
from badge.cli import main
from badge.stats import Results, example, write_csv
out = Path(sys.argv[1])
write_csv(example(), out / "in.csv")
for arguments in (["report", str(out / "in.csv"), "--out", str(out / "report")],
                  ["export", str(out / "in.csv"), "-o", str(out / "again.csv")]):
    sys.argv = ["badge", *arguments]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
assert "torch" not in sys.modules
try:
    import torch
except ImportError:
    print("no torch")
"""


def check_journey(out: Path, run: subprocess.CompletedProcess[str]) -> None:
    assert run.returncode == 0, run.stderr
    assert "no torch" in run.stdout and "Penalty matrix, 1 setting" in run.stdout
    assert (out / "report" / "report.html").exists()
    assert (out / "again.csv").read_text(encoding="utf-8") == (out / "in.csv").read_text(encoding="utf-8")


def test_without_torch_by_a_blocked_import(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", BLOCKED + JOURNEY, str(tmp_path)]
    check_journey(tmp_path, subprocess.run(command, capture_output=True, text=True, env=environment, check=False))


def test_without_torch_in_an_environment_that_lacks_it(tmp_path: Path) -> None:
    """Site-packages without torch and what came with it: links to everything else, and `-S` keeps the real one out."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in {Path(entry) for entry in sys.path if Path(entry).name == "site-packages"}:
        for entry in folder.iterdir():
            if not entry.name.lower().startswith(("torch", "functorch", "nvidia", "triton", "__pycache__")):
                target = packages / entry.name
                if not target.exists():
                    target.symlink_to(entry)
    environment = os.environ | {"PYTHONPATH": f"{SRC}{os.pathsep}{packages}"}
    command = [sys.executable, "-S", "-c", JOURNEY, str(tmp_path)]
    check_journey(tmp_path, subprocess.run(command, capture_output=True, text=True, env=environment, check=False))
