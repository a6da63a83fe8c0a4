"""The page of our own runs: from the table alone, the same to the last byte, without torch; and the table from journals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import journal, stats
from badge.experiment import read_grid
from badge.stats import Results, Setting
from fake_grid import SPEED, fake_grid, write_journals
from journal_lines import write_journal
from results import ABOUT, ROOT, TABLE
from results.budgets import labels_needed
from results.claims import claims
from results.claims_of_samplers import cost
from results.collect import collect_runs
from results.page import FROZEN_PART, evaluated, frozen_tables, page_text, pictured, readme_part, timings, write_page
from results.variants import read_variants

GRID = """
initial = 100
seeds = 3
strategy = ["badge", "coreset", "conf", "marg", "entropy", "albl", "rand", "kdpp", "kcenter-grad"]
pairs = ["letter/mlp", "mnist/mlp"]
batch_size = 100
labels = 1500
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table collected from made-up journals of two settings, of which one seed is not finished."""
    folder = tmp_path_factory.mktemp("results")
    pairs = [("letter", "mlp"), ("mnist", "mlp")]
    whole = Results.of(fake_grid(pairs=pairs, batch_sizes=[100], strategies=tuple(SPEED), seeds=3, rounds=15))
    write_journals(whole, folder / "runs")
    for path in (folder / "runs").glob("mnist-*-2.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join(lines[:-2]) + "\n", encoding="utf-8")
    (folder / "grid.toml").write_text(GRID, encoding="utf-8")
    said = collect_runs(folder / "runs", [folder / "grid.toml"], folder / "runs.csv.gz", folder / "about.json")
    assert said == "45 runs added, 45 of 54 cells are in runs.csv.gz"
    return folder


def build(made: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    (to / "README.md").write_text("above\n<!-- results -->\nold\n<!-- /results -->\nbelow\n", encoding="utf-8")
    write_page(to, made / "runs.csv.gz", made / "about.json")
    return to


def test_the_same_table_makes_the_same_files(made: Path, tmp_path: Path) -> None:
    one, two = build(made, tmp_path / "one"), build(made, tmp_path / "two")
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert [path.name for path in files] == [
        "README.md", "results-curves.png", "results-headline.png", "results-penalty.png", "results-saved.png", "results.md"
    ]  # fmt: skip
    for path in files:
        assert (one / path).read_bytes() == (two / path).read_bytes(), path
    page = (one / "docs" / "results.md").read_text(encoding="utf-8")
    assert "**45 of 54 planned cells**" in page and "mnist · mlp · B = 100 |" in page and "| 18 of 27 |" in page
    for image in re.findall(r"\]\((images/[^)]+)\)", page):
        assert (one / "docs" / image).exists()
    readme = (one / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("above\n<!-- results -->\nHow many labels") and readme.endswith(
        "<!-- /results -->\nbelow\n"
    )
    assert "old" not in readme and "45 of 54 planned runs" in readme and "| `badge` |" in readme


def test_labels_needed_by_budget() -> None:
    """In the example badge is at 0.8, rand's accuracy with 500 labels, with 300; at 0.6, rand's with 300, with 200."""
    needed = {share: labels_needed(stats.example(), ["badge", "rand"], share) for share in (0.5, 1.0)}
    assert needed == {0.5: {"badge": 2 / 3, "rand": 1.0}, 1.0: {"badge": 0.6, "rand": 1.0}}


def test_without_torch(made: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\nfrom results.page import write_page\n"
        f"write_page(Path({str(tmp_path)!r}), Path({str(made / 'runs.csv.gz')!r}), Path({str(made / 'about.json')!r}))\n"
    )
    paths = os.pathsep.join([str(ROOT), *(p for p in sys.path if p)])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "docs" / "results.md").exists()


def test_a_second_machine_adds_its_cells(made: Path, tmp_path: Path) -> None:
    """What is in the table stays, journals or not; what has ended since is added."""
    table, about = tmp_path / "runs.csv.gz", tmp_path / "about.json"
    table.write_bytes((made / "runs.csv.gz").read_bytes())
    whole = Results.of(
        fake_grid(pairs=[("mnist", "mlp")], batch_sizes=[100], strategies=tuple(SPEED), seeds=3, rounds=15, seed=9)
    )
    (setting,) = {str(run.setting) for run in whole.runs}
    known = json.loads((made / "about.json").read_text(encoding="utf-8"))
    about.write_text(json.dumps(known | {"by_setting": {setting: ["older"]}}), encoding="utf-8")
    write_journals(whole, tmp_path / "runs")
    before = stats.load(table)
    for path in (tmp_path / "runs").glob("*-badge-*.jsonl"):
        first, *rest = ({k: v for k, v in e.items() if k not in ("n", "sum")} for e in journal.read(path))
        write_journal(path, first | {"versions": {"picks": "7"}, "git": "newer"}, *rest)
    assert collect_runs(tmp_path / "runs", [made / "grid.toml"], table, about).startswith("9 runs added, 54 of 54")
    said = json.loads(about.read_text(encoding="utf-8"))
    assert said["picks"] == ["7", "before 1"] and said["by_setting"] == {setting: ["newer", "older"]}
    after = stats.load(table)
    kept = [(run.setting, run.strategy, run.seed) for run in before.runs]
    for run in after.runs:
        if (run.setting, run.strategy, run.seed) in kept:
            old = before.runs[kept.index((run.setting, run.strategy, run.seed))]
            assert (after.test_accuracy[run.rows] == before.test_accuracy[old.rows]).all()
    content = table.read_bytes()
    assert collect_runs(tmp_path / "runs", [made / "grid.toml"], table, about).startswith("0 runs added")
    assert table.read_bytes() == content


def test_before_there_are_pairs() -> None:
    """One seed: curves are shown, nothing is compared, every verdict is open."""
    results = Results.of(fake_grid(pairs=[("mnist", "mlp")], batch_sizes=[100], seeds=1, rounds=15))
    about: dict[str, Any] = {"grids": ["g.toml"], "commits": ["abc"], "planned": [
        {"data": "mnist", "model": "mlp", "batch_size": 100, "labels": 1500, "width": None, "seeds": {"rand": 2}}
    ]}  # fmt: skip
    assert evaluated(results) is None and pictured(results) == [Setting("mnist", "mlp", 100)]
    assert page_text(results, None, about).count("nothing to compare") == 2
    part = readme_part(results, None, about)
    assert "7 of 2 planned runs, too few to\ncompare strategies" in part and "demo.png" in part
    assert {claim.verdict for claim in claims(results)} == {"cannot be told"}


def test_only_settings_that_all_have_are_compared() -> None:
    """A strategy that lacks a setting would be spared what it might lose there."""
    pairs = [("letter", "mlp"), ("mnist", "mlp")]
    whole = Results.of(fake_grid(pairs=pairs, batch_sizes=[100], seeds=3, rounds=15))
    lacking = (whole.strategy == "badge") & (whole.data == "mnist") & (whole.seed > 0)
    lacking |= (whole.strategy == "conf") & (whole.data == "letter") & (whole.seed == 2)
    part = Results.of({name: getattr(whole, name)[~lacking] for name in stats.REQUIRED})
    paired = part.paired(["badge", "conf", "rand"])
    assert paired is not None
    assert {(run.setting.data, run.seed) for run in paired.runs} == {("letter", 0), ("letter", 1)}


def test_the_cost_of_selection_comes_from_runs_by_themselves(made: Path, tmp_path: Path) -> None:
    """In the big table the k-DPP takes a third of k-means++'s time; on an idle machine forty times as long."""
    folder = tmp_path / "results"
    folder.mkdir()
    for name in ("runs.csv.gz", "about.json"):
        (folder / name).write_bytes((made / name).read_bytes())
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[1000], strategies=["badge", "kdpp"], seeds=3, rounds=15)
    busy = Results.of(columns | {"select_seconds": np.where(np.array(columns["strategy"]) == "kdpp", 1.0, 3.0)})
    alone = Results.of(columns | {"select_seconds": np.where(np.array(columns["strategy"]) == "kdpp", 4.0, 0.1)})
    assert cost(busy).verdict == "does not hold" and cost(alone).verdict == "holds"
    assert cost(alone) in claims(busy, alone)
    write_page(tmp_path, folder / "runs.csv.gz", folder / "about.json")
    page = tmp_path / "docs" / "results.md"
    assert "There are no runs by themselves yet" in page.read_text(encoding="utf-8")
    stats.write(alone, folder / "times.csv.gz")
    (folder / "times.json").write_text('{"commits": ["0123abc"]}', encoding="utf-8")
    write_page(tmp_path, folder / "runs.csv.gz", folder / "about.json")
    assert "| letter · mlp · B = 1,000 | 0.1 | 4 |" in page.read_text(encoding="utf-8")
    assert "with `0123abc`) had the" in page.read_text(encoding="utf-8")
    assert "letter · mlp · B = 1,000: 40.0 times as long, 3 seeds | **holds** |" in page.read_text(encoding="utf-8")


@pytest.mark.skipif(not TABLE.exists(), reason="no results/runs.csv.gz")
def test_the_page_in_the_repository_is_the_tables(tmp_path: Path) -> None:
    """docs/results.md and the README's part are what `make results` writes; figures depend on matplotlib's version."""
    results, about = stats.load(TABLE), json.loads(ABOUT.read_text(encoding="utf-8"))
    statistics, frozen = evaluated(results), frozen_tables()
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == page_text(
        results, statistics, about, timings(), read_variants(), frozen
    )
    assert readme_part(results, statistics, about) in (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ("README.md", "docs/which-strategy.md"):
        for _, name, lines, _ in FROZEN_PART.findall((ROOT / page).read_text(encoding="utf-8")):
            assert lines.strip().split("\n") == frozen[name], (page, name)
    planned = sum(sum(entry["seeds"].values()) for entry in about["planned"])
    assert planned == sum(len(read_grid(ROOT / grid)) for grid in about["grids"])
