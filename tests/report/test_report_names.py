"""Reports and tables under names and in places as people have them: shown as they are, written whole, or refused."""

from __future__ import annotations

import csv
import html
import os
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from badge import stats
from badge.cli import app
from badge.errors import DataError, InputError, WriteError
from badge.report import build, learning_curves
from badge.report.section import chosen_strategies
from badge.stats import Results
from journal_lines import write_journal


def renamed(**names: str) -> Results:
    """The example with another name for one strategy, or for the data."""
    results = stats.example()
    columns = {name: getattr(results, name).tolist() for name in stats.REQUIRED}
    for column, name in names.items():
        columns[column] = [name if old in ("badge", "letter") else old for old in columns[column]]
    return Results.of(columns)


def test_a_strategy_of_ones_own_is_compared_by_default(tmp_path: Path) -> None:
    table = stats.example().to_pandas()
    own = table[table.strategy == "badge"].assign(strategy="mypkg:fn")
    ablation = table[table.strategy == "badge"].assign(strategy="kdpp")
    joined = pd.concat([table, own, ablation])
    results = Results.of({name: joined[name].to_numpy() for name in joined})
    names, notes = chosen_strategies(results)
    assert names == ("badge", "rand", "mypkg:fn")
    assert next(note.text for note in notes if "left out" in note.topic).startswith("kdpp")


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    for name in ("v0.123456", 'x id="y" url(#z)', "#010203"):
        written = build(renamed(strategy=name), tmp_path, workers=1)
        page = html.unescape(written.page.read_text(encoding="utf-8"))
        svg = html.unescape((tmp_path / "figures" / "curves-letter-mlp-100.svg").read_text(encoding="utf-8"))
        assert f">{name}<" in page and f">{name}<" in svg


def test_long_names_have_files_and_unprintable_ones_are_refused(tmp_path: Path) -> None:
    written = build(renamed(data="x" * 290), tmp_path, workers=1)
    assert written.page.exists() and len(list((tmp_path / "figures").glob("*.svg"))) == written.figures
    for name in ("x" * 301, "a\x00b", "a\nb", "\ud800", "a\x1b[31m"):
        with pytest.raises(InputError, match="rename it") as caught:
            renamed(data=name)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


def test_formulas_in_names_are_not_run_by_spreadsheets(tmp_path: Path) -> None:
    name = "=cmd|' /C calc'!A0"
    build(renamed(strategy=name), tmp_path, workers=1)
    for file in tmp_path.glob("*.csv"):
        for row in csv.reader(file.read_text(encoding="utf-8").splitlines()):
            assert not any(cell.startswith("=") for cell in row), file
    stats.write(renamed(strategy=name), tmp_path / "flat.csv")
    assert f"'{name}" in (tmp_path / "flat.csv").read_text()
    assert name in stats.load(tmp_path / "flat.csv").strategies


def test_tables_for_a_paper(tmp_path: Path) -> None:
    build(renamed(strategy="my_own & 100%"), tmp_path, workers=1)
    matrix = (tmp_path / "penalty_matrix.tex").read_text()
    assert r"my\_own \& 100\%" in matrix and matrix.startswith(r"\begin{tabular}{lrr}") and matrix.count(r" \\") == 4
    saved = (tmp_path / "labels_saved.tex").read_text()
    assert (
        r"Data & Model & Batch size & Strategy & Repeats & Accuracy (\texttt{rand}) & Labels" in saved
        and "_" not in saved.split("midrule")[0]
    )


def test_data_are_called_by_the_name_of_the_data_set(tmp_path: Path) -> None:
    """Where it tells them apart: three loaders, two of which call their data by one name."""
    for number, (data, name) in enumerate((("my.code:moons", "moons"), ("a:load", "own"), ("b:load", "own"))):
        cell = {"data": data, "model": "mlp", "strategy": "rand", "batch_size": 5, "seed": 0}
        start = {"event": "start", "cell": cell, "data": {"name": name}}
        rounds = [{"event": "round", "round": i, "labels": 5 + i, "test_accuracy": 0.5} for i in range(3)]
        write_journal(tmp_path / f"{number}.jsonl", start, *rounds, {"event": "end"})
    results = stats.load(tmp_path)
    assert {setting.data for setting in results.settings} == {"my.code:moons", "a:load", "b:load"}
    assert {setting.data for setting in results.named().settings} == {"moons", "a:load", "b:load"}
    build(results, tmp_path / "report", workers=1)
    assert "my.code" not in (tmp_path / "report" / "budgets.tex").read_text()
    both = stats.Results.joined([results, replace_data(results, "moons")])  # another data set has that name
    assert "my.code:moons" in {setting.data for setting in both.named().settings}


def replace_data(results: stats.Results, name: str) -> stats.Results:
    columns = {column: getattr(results, column) for column in stats.REQUIRED}
    return stats.Results.of(columns | {"data": [name] * len(results), "seed": list(range(len(results)))})


def test_parquet_and_several_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = stats.example()
    table = results.to_pandas()
    halves = [table[table.strategy == name] for name in ("badge", "rand")]
    for name, half in zip("ab", halves, strict=True):
        stats.write(Results.of({column: half[column].to_numpy() for column in half}), tmp_path / f"{name}.csv")
    done = CliRunner().invoke(app, ["export", "a.csv", "b.csv", "-o", "all.parquet"])
    assert done.exit_code == 0, done.output
    assert Path("all.parquet").read_bytes()[:4] == b"PAR1"
    back = stats.load("all.parquet")
    assert back.to_pandas().equals(table)
    assert CliRunner().invoke(app, ["report", "a.csv", "b.csv", "--out", "r"]).exit_code == 0
    refused = CliRunner().invoke(app, ["export", "a.csv", "-o", "all.xlsx"])
    assert (
        "a table is written as .csv, .csv.gz, .csv.xz or .parquet" in str(refused.exception)
        and not Path("all.xlsx").exists()
    )
    Path("no.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(DataError, match=r"no.parquet is not a flat table of results in parquet"):
        stats.load("no.parquet")
    with pytest.raises(InputError, match="two runs claim to be the same"):
        table.assign(test_accuracy=table.test_accuracy / 2).to_csv("c.csv", index=False)
        stats.load(["all.parquet", "c.csv"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"/dev/full cannot be written: No space left on device"):
        stats.write(stats.example(), "/dev/full")
    for name in ("all.csv", "all.parquet"):
        with pytest.raises(WriteError, match=r"file cannot be written: File exists"):
            stats.write(stats.example(), tmp_path / "file" / name)
    with pytest.raises(WriteError, match=r"file/report cannot be written: Not a directory"):
        build(stats.example(), tmp_path / "file" / "report", workers=1)
    with pytest.raises(InputError, match="a figure is written as one of"):
        learning_curves(stats.example(), tmp_path / "curves.xyz")


def test_nothing_half_written_stays_under_the_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full in the middle: what was there before is still there, and nothing else."""
    stats.write(stats.example(), tmp_path / "all.csv")
    before = (tmp_path / "all.csv").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError, match=r"all.csv cannot be written: No space left on device"):
        stats.write(renamed(strategy="other"), tmp_path / "all.csv")
    with pytest.raises(WriteError, match="No space left on device"):
        build(stats.example(), tmp_path / "report", workers=1)
    assert (tmp_path / "all.csv").read_bytes() == before
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["all.csv"]
