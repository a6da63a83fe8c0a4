"""The table of results: what it refuses and notes, read from journals and CSV files and written again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge import stats
from badge.errors import DataError, InputError, JournalError
from badge.stats import Results, Setting
from fake_grid import fake_grid, write_journals
from journal_lines import write_journal


def test_rows_in_any_order_make_the_same_table() -> None:
    columns = fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], rounds=5)
    order = np.random.default_rng(0).permutation(len(columns["data"]))
    mixed = Results.of({name: np.array(values)[order] for name, values in columns.items()})
    same(mixed, Results.of(columns))


def same(one: Results, other: Results) -> None:
    for name in stats.REQUIRED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in stats.OPTIONAL:
        np.testing.assert_array_equal(one.column(name), other.column(name), err_msg=name)


def row(**changes: object) -> dict[str, list[object]]:
    base: dict[str, object] = dict(zip(stats.REQUIRED, ("a", "m", "rand", 10, 0, 10, 0.5), strict=True))
    return {name: [value] for name, value in (base | changes).items()}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"data": ["a"]}, "lack the columns model, strategy"),
        (row(test_accuracy=87.5), "divide percentages by 100"),
        (row(labels=10.5), "labels must be whole numbers; row 1 has 10.5"),
        (row(seed="first"), "the column seed must be numbers, not"),
        (row(batch_size=0), "batch_size must be ≥ 1; the smallest is 0"),
        (row(test_accuracy=math.nan), "no row has a test accuracy"),
        ({name: [] for name in stats.REQUIRED}, "0 rows"),
        (row() | {"labels": [1, 2]}, "differ in length"),
        ({name: value * 2 for name, value in row().items()} | {"test_accuracy": [0.5, 0.6]}, "different seeds"),
    ],
)
def test_tables_that_mean_nothing(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Results.of(columns)


def test_rows_left_out_are_noted() -> None:
    columns = {name: value * 3 for name, value in row().items()} | {"labels": [10, 10, 20]}
    results = Results.of(columns | {"test_accuracy": [0.5, 0.5, math.nan]})
    assert len(results) == 1
    assert [note.text for note in results.notes] == [
        "1 rows without a test accuracy",
        "1 rows that repeat another row exactly",
    ]


def test_completeness_is_repeated() -> None:
    results = Results.of(fake_grid(pairs=[("cifar10", "mlp"), ("letter", "mlp")], batch_sizes=[100], rounds=2, seeds=1))
    assert results.completeness == {"cifar10": "20,000 of 50,000", "letter": "20,000 of 20,000"}


# --- reading and writing ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> Results:
    return Results.of(fake_grid(pairs=[("letter", "mlp")], batch_sizes=[100], strategies=["conf", "rand"], rounds=12))


def test_journals_and_csv_say_the_same(small: Results, tmp_path: Path) -> None:
    write_journals(small, tmp_path / "runs" / "deep")
    stats.write(small, tmp_path / "all.csv")
    same(stats.load(tmp_path / "all.csv"), small)
    loaded = stats.load(tmp_path / "runs")
    same(loaded, small)
    assert np.isneginf(loaded.column("log_det")).any()  # null beside a norm stands for −inf
    assert loaded.notes == ()
    assert len(stats.load(next((tmp_path / "runs").rglob("*-conf-0.jsonl"))).runs) == 1


def test_csv_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(
        "\ufeffseed, labels ,test_accuracy,comment,data,model,strategy,batch_size,log_det,mean_norm\r\n"
        '0,100,0.5,"a, b",a,m,rand,100,,2.5\r\n\r\n0,200.0, 0.6 ,,a, m,rand,100,-inf,\r\n0,300,0.7,,a,m,rand,100,,\r\n',
        encoding="utf-8",
    )
    results = stats.load(path)
    assert results.labels.tolist() == [100, 200, 300]
    assert results.settings == (Setting("a", "m", 100),)
    assert results.column("log_det").tolist()[:2] == [-math.inf, -math.inf] and math.isnan(results.column("log_det")[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks the columns data, .*found: nothing"),
        ("data,model\n", "lacks the columns strategy"),
        (",".join(stats.REQUIRED) + "\n", "a header and no rows"),
        (",".join(stats.REQUIRED) + "\na,m,rand,10,0,10\n", "row 1 after the header has 6 cells, the header 7"),
        (",".join(stats.REQUIRED) + "\na,m,rand,10,0,10,good\n", "test_accuracy has 'good' in row 1"),
        (",".join((*stats.REQUIRED, "seed")) + "\na,m,rand,10,0,10,0.5,1\n", "the column seed 2 times"),
    ],
)
def test_csv_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        stats.load(path)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "picture.csv").write_bytes(b"\x93NUMPY\x00\xff")
    with pytest.raises(DataError, match="is not a CSV file in UTF-8"):
        stats.load(tmp_path / "picture.csv")
    (tmp_path / "picture.csv").unlink()
    with pytest.raises(DataError, match="does not exist"):
        stats.load(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no journals"):
        stats.load(tmp_path)
    (tmp_path / "all.csv").write_text("x")
    with pytest.raises(DataError, match=r"name the file itself, e\.g\. .*all\.csv"):
        stats.load(tmp_path)


def test_journals_with_different_options_are_noted(tmp_path: Path) -> None:
    for seed, width in enumerate((128, 256)):
        cell = {"data": "a", "model": "m", "strategy": "rand", "batch_size": 10, "seed": seed, "width": width}
        first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
        write_journal(tmp_path / f"{seed}.jsonl", {"event": "start", "cell": cell}, first, {"event": "end"})
    note = stats.load(tmp_path).notes
    assert note == (stats.Note("runs with different options", "a · m · B = 10: width is 128 and 256"),)


def test_failed_runs_are_counted_with_their_reasons(tmp_path: Path) -> None:
    """Not "stopped or still running": what the executor wrote down. A run that went on after it is none."""
    cell = {"data": "a", "model": "m", "strategy": "kdpp", "batch_size": 10, "seed": 0}
    first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
    failed = {"event": "failed", "error": "asked for 10 points of a kernel of rank 4"}
    for seed, events in enumerate(
        ([first, failed], [failed], [first, failed, first | {"round": 1, "labels": 20}], [first])
    ):
        write_journal(tmp_path / f"{seed}.jsonl", {"event": "start", "cell": {**cell, "seed": seed}}, *events)
    notes = [(note.topic, note.text) for note in stats.load(tmp_path).notes]
    assert notes == [
        ("failed runs", "2 of 4 journals; what they did before that counts, and the same command tries them again"),
        ("failed runs", "0.jsonl: failed at 10 labels: asked for 10 points of a kernel of rank 4"),
        ("failed runs", "1.jsonl: failed before its first round: asked for 10 points of a kernel of rank 4"),
        ("unfinished runs", "2.jsonl: stopped or still running, at 20 labels"),
        ("unfinished runs", "3.jsonl: stopped or still running, at 10 labels"),
    ]


def test_rounds_below_the_training_target_are_counted() -> None:
    n = 6
    table: Any = {
        "data": ["a"] * n,
        "model": ["m"] * n,
        "strategy": ["rand"] * 3 + ["marg"] * 3,
        "batch_size": [10] * n,
    }
    table |= {"seed": [0] * n, "labels": [10, 20, 30] * 2, "test_accuracy": [0.5] * n}
    accuracies = [0.999, 0.99, 0.98, 0.991, np.nan, 0.985]  # "exceeds 99 %": 0.99 does not
    notes = stats.capped_notes(Results.of({**table, "train_accuracy": accuracies}))
    assert [note.text for note in notes] == [
        "a · m · B = 10: 3 of 6 rounds, down to 0.9800 (marg 1, rand 2); they count as they are"
    ]
    assert stats.capped_notes(Results.of({**table, "train_accuracy": [0.995] * n})) == []


@pytest.mark.parametrize("packed", ["a.csv.gz", "a.csv.xz"])
def test_compressed_tables(packed: str, small: Results, tmp_path: Path) -> None:
    """The same rows, the same bytes: what is kept in a repository changes only where the results do."""
    again = packed.replace("a.", "b.")
    for name in ("a.csv", packed, again):
        stats.write(small, tmp_path / name)
    file = tmp_path / packed
    assert file.read_bytes() == (tmp_path / again).read_bytes()
    assert file.stat().st_size < (tmp_path / "a.csv").stat().st_size / 2
    plain, unpacked = stats.load(tmp_path / "a.csv"), stats.load(file)
    assert (plain.test_accuracy == unpacked.test_accuracy).all() and plain.runs == unpacked.runs
    for damaged in (file.read_bytes()[:-20], b"data,model"):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"{packed} is damaged"):
            stats.load(file)


def test_journals_that_were_interrupted(tmp_path: Path) -> None:
    cell = {"data": "a", "model": "m", "strategy": "rand", "batch_size": 10, "seed": 0}
    start = {"event": "start", "cell": cell}
    first = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.5}
    again = {"event": "round", "round": 0, "labels": 10, "test_accuracy": 0.6}
    second = {"event": "round", "round": 1, "labels": 20, "test_accuracy": 0.7}
    write_journal(tmp_path / "a.jsonl", start, first, start, again, second, '{"n":6, "event":"rou')
    write_journal(tmp_path / "b.jsonl", {"event": "ask", "round": 0, "ids": [1]})
    write_journal(tmp_path / "c.jsonl", {**start, "cell": {**cell, "seed": 1}})
    results = stats.load(tmp_path)
    assert results.test_accuracy.tolist() == [0.6, 0.7]  # a resumed run wrote round 0 again
    assert {(note.topic, note.text) for note in results.notes} == {
        ("files left out", "a.jsonl: the torn last line was ignored"),
        ("unfinished runs", "a.jsonl: stopped or still running, at 20 labels"),
        ("files left out", "b.jsonl: not the journal of an experiment (no start event)"),
        ("files left out", "c.jsonl: no finished round yet"),
    }
    write_journal(tmp_path / "a.jsonl", start, '{"event": "rou\n', first)
    with pytest.raises(JournalError, match="line 2: a line without number and checksum"):
        stats.load(tmp_path)
    write_journal(tmp_path / "a.jsonl", start, {"event": "round", "round": 0, "labels": 10})
    with pytest.raises(JournalError, match="lacks the field 'test_accuracy'"):
        stats.load(tmp_path)
    write_journal(tmp_path / "a.jsonl", start, {**start, "cell": {**cell, "seed": 5}}, first)
    with pytest.raises(JournalError, match="two different runs"):
        stats.load(tmp_path)
    write_journal(tmp_path / "a.jsonl", {**start, "format": 3}, first)
    with pytest.raises(JournalError, match="has format 3"):
        stats.load(tmp_path)
    write_journal(tmp_path / "a.jsonl", start, {"event": "checkpoint"}, first)
    with pytest.raises(JournalError, match="line 2: an event of the unknown kind 'checkpoint'"):
        stats.load(tmp_path)
    write_journal(tmp_path / "a.jsonl", start)
    with pytest.raises(DataError, match="nothing to report yet"):
        stats.load(tmp_path)
