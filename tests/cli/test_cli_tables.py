"""What other programs write goes in right, or is refused with the way out: headers, indices, marks, damage."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import badge
from badge.cli.pool import normalised
from select_command import OUT, N, P, Z, lines, refused, text

E = [f"e{i}" for i in range(5)]
NAMES = [f"img {i:02d}.png" for i in range(N)]


# -- headers ----------------------------------------------------------------------------------------------------------


def test_pandas_default_column_names_are_not_an_example(pick: Any) -> None:
    pd.DataFrame(P).to_csv("p.csv", index=False)  # 0,1,2,3
    pd.DataFrame(Z).to_csv("z.csv", index=False)
    assert Path("p.csv").read_text().startswith("0,1,2,3\n")
    assert pick("p.csv", "z.csv") == (0, lines(7), "")
    two = P[:, :2] / P[:, :2].sum(1, keepdims=True)
    pd.DataFrame(two).to_csv("two.csv", index=False)
    expected = text(badge.select_from(badge.Outputs(two, Z), 7))
    assert pick("two.csv", "z.csv") == (0, expected, "")


def test_a_header_that_cannot_be_told_is_asked_for(pick: Any) -> None:
    """A certain prediction, printed by %g, is `0,1` as well."""
    one_hot = (P[:, :2] == P[:, :2].max(1, keepdims=True)).astype(int)
    for first in ("0,1", "1,0"):
        rows = [first, *(",".join(map(str, row)) for row in one_hot[1:])]
        Path("p.csv").write_text("\n".join(rows) + "\n")
        if first == "1,0":
            assert pick("p.csv", "z.npy")[0] == 0
            continue
        refused(pick("p.csv", "z.npy"), "Give --header or --no-header")
        assert pick("p.csv", "z.npy", "--no-header")[0] == 0
        refused(pick("p.csv", "z.npy", "--header"), "59 rows and embeddings 60")
    Path("few.csv").write_text("0,1\n0.25,0.75\n")
    refused(pick("few.csv", "z.npy"), "(0,1) name the columns? Give --header or --no-header")


@pytest.mark.parametrize("top", ["\ufeff", "\n\n", "# made by us\n", "\ufeff# made by us\n\n"])
@pytest.mark.parametrize("names", ["", "a,b,c,d,e\n"])
def test_marks_comments_and_empty_rows_at_the_top_shift_nothing(top: str, names: str, pick: Any) -> None:
    text = io.StringIO()
    np.savetxt(text, Z, delimiter=",")
    Path("z.csv").write_text(top + names + text.getvalue() + "\n\n", encoding="utf-8")
    assert pick("p.npy", "z.csv") == (0, lines(7), "")


def test_what_numpy_writes(pick: Any) -> None:
    np.savetxt("z.csv", Z, delimiter=",", header="a,b,c,d,e")
    np.savetxt("p.tsv", P, delimiter="\t")
    with gzip.open("p.csv.gz", "wt") as stream:
        np.savetxt(stream, P, delimiter=",")
    for p in ("p.tsv", "p.csv.gz"):
        assert pick(p, "z.csv", "--embedding-columns", "[a-e]") == (0, lines(7), "")


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        (0, "0.1x,0.3,0.2,0.1,1.5", "(0.1x,0.3,0.2,0.1,1.5) name the columns? Give --header or --no-header"),
        (0, "O.1,0.3,0.2,0.1,1.5", "Give --header or --no-header"),
        (0, "#0.1,0.3,0.2,0.1,1.5", "begins with # and has a number for every column"),
        (30, "#0.1,0.3,0.2,0.1,1.5", "has '#0.1', which is not a number, in row 30"),
        (30, "", "line 31 is empty, and rows follow it"),
        (30, "0.1,0.2,x,0.3,0.4", "has 'x', which is not a number, in row 30 (counted from 0) of column '2'"),
        (30, "0.1,0.2,,0.3,0.4", "has an empty cell, in row 30 (counted from 0) of column '2'"),
        (30, "0.1,0.2,0.3,0.4", "line 31 has 4 cells, the first row 5"),
        (30, "0.1,0.2,0.3,0.4,0.5,0.6", "line 31 has 6 cells, the first row 5"),
        (30, "0.1,1_0,0.3,0.4,0.5", "'1_0', which is not a number"),
    ],
)
def test_a_damaged_row_is_found(row: int, line: str, message: str, pick: Any) -> None:
    text = io.StringIO()
    np.savetxt(text, Z, delimiter=",")
    rows = text.getvalue().splitlines()
    rows[row] = line
    Path("z.csv").write_text("\n".join(rows) + "\n")
    refused(pick("p.npy", "z.csv"), message)


def test_a_damaged_row_behind_the_sample_is_found(pick: Any) -> None:
    rows = ["0.5,0.25"] * 1500
    rows[1400] = "0.5,abc"
    Path("z.csv").write_text("\n".join(rows) + "\n")
    refused(pick("p.npy", "z.csv"), "has 'abc', which is not a number, in row 1400")


def test_what_a_european_spreadsheet_writes(run: Any, pick: Any) -> None:
    """Semicolons between cells, commas in numbers, Windows-1252: the same picks, and one line says what was understood."""
    rows = "".join(";".join(f"{x:.17g}".replace(".", ",") for x in row) + f";größe {i}\n" for i, row in enumerate(Z))
    Path("z.csv").write_text("a;b;c;d;e;name\n" + rows, encoding="cp1252")
    code, out, err = pick("p.npy", "z.csv")
    assert (code, out) == (0, lines(7)) and "column left out of the embeddings: 'name'" in err
    assert run.understood == ["z.csv: 60 rows, delimiter ';', decimal comma, header, windows-1252"]
    assert pick("p.npy", "z.csv", "--id-column", "name")[1].splitlines()[0] == "größe 51"
    Path("z.csv").write_text("a;b\n" + "".join(f"{a!r};{b!r}\n" for a, b in Z[:, :2].tolist()))
    expected = text(badge.select_from(badge.Outputs(P, Z[:, :2]), 7))
    assert pick("p.npy", "z.csv")[:2] == (0, expected)


def test_what_is_told_is_not_guessed(pick: Any) -> None:
    Path("z.csv").write_text("\n".join(":".join(map(repr, row)) for row in Z.tolist()), encoding="utf-16-le")
    told = ("--delimiter", ":", "--encoding", "utf-16-le", "--no-header")
    assert pick("p.npy", "z.csv", *told) == (0, lines(7), "")
    refused(pick("p.npy", "z.csv"), "no column of numbers")
    refused(pick("p.npy", "z.csv", "--delimiter", "::"), "cannot be read")
    refused(pick("p.npy", "z.csv", "--encoding", "utf-99"), "unknown encoding: utf-99")


def test_json_lines_and_spreadsheets(run: Any, pick: Any) -> None:
    import json

    from openpyxl import Workbook

    records = [{"id": f"n{i}", "embedding": z, "score": z[0]} for i, z in enumerate(Z.tolist())]
    Path("z.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    expected = "".join(f"n{i}\n" for i in badge.select_from(OUT, 7))
    assert pick("p.npy", "z.jsonl", "--id-column", "id")[:2] == (0, expected)
    book = Workbook()
    for row in [["id", *"abcde"], *([f"n{i}", *z] for i, z in enumerate(Z.tolist()))]:
        book.active.append(row)
    book.save("z.xlsx")
    assert pick("p.npy", "z.xlsx", "--id-column", "id") == (0, expected, "")
    assert run.understood == ["z.xlsx: 60 rows, first sheet, header"]


# -- columns that are no features -------------------------------------------------------------------------------------


def test_the_index_that_pandas_writes_is_left_out(pick: Any) -> None:
    pd.DataFrame(P).to_csv("p.csv")
    pd.DataFrame(Z, columns=E).to_csv("z.csv")
    code, out, err = pick("p.csv", "z.csv")
    assert (code, out) == (0, lines(7))
    assert err.splitlines() == [
        "note: p.csv: column left out of the probabilities: 'the first, unnamed'",
        "note: z.csv: column left out of the embeddings: 'the first, unnamed'",
    ]


@pytest.mark.parametrize(
    ("column", "values", "why"),
    [
        ("label", np.arange(N) % 3, "does not sound like a feature"),
        ("id", np.arange(N), "does not sound like a feature"),
        ("shown", np.arange(N) % 3, "holds whole numbers, and others do not"),
        ("number", np.arange(N), "holds whole numbers, and others do not"),
        ("number", np.arange(N) * 1.0, "counts the rows"),
    ],
)
def test_a_column_that_is_hardly_a_feature_is_refused(column: str, values: Any, why: str, pick: Any) -> None:
    table = pd.DataFrame(Z, columns=E)
    table.insert(0, column, values)
    table.to_csv("z.csv", index=False)
    table.to_parquet("z.parquet")
    for file in ("z.csv", "z.parquet"):
        refused(pick("p.npy", file), f"column {column!r} of {file} {why}: name the columns")
        assert pick("p.npy", file, "--embedding-columns", "e*") == (0, lines(7), "")
        code, out, _ = pick("p.npy", file, "--embedding-columns", "*")
        every = badge.Outputs(P, table.to_numpy(dtype=float))
        assert (code, out) == (0, text(badge.select_from(every, 7)))


def test_an_index_in_an_array_is_refused(pick: Any) -> None:
    np.save("indexed.npy", np.c_[np.arange(N), Z])
    refused(pick("p.npy", "indexed.npy"), "column '0' of indexed.npy counts the rows")
    chosen = pick("p.npy", "indexed.npy", "--embedding-columns", "1,2,3,4,5")
    assert chosen == (0, lines(7), "")


def test_names_in_a_column_are_identifiers(pick: Any) -> None:
    table = pd.DataFrame(Z, columns=E)
    table["file"] = NAMES
    table.to_csv("z.csv", index=False)
    table.to_parquet("z.parquet")
    pd.DataFrame({"file": NAMES, **{f"p{i}": P[:, i] for i in range(4)}}).to_csv("p.csv", index=False)
    Path("done.txt").write_text(f"{NAMES[0]}\n{NAMES[5]}\n")
    picks = badge.select_from(OUT, 7, exclude=[0, 5])
    expected = text(picks, NAMES)
    for p, z in (("p.npy", "z.csv"), ("p.csv", "z.csv"), ("p.csv", "z.parquet"), ("p.csv", "z.npy")):
        assert pick(p, z, "--id-column", "file", "--exclude", "done.txt") == (0, expected, "")
    code, out, err = pick("p.npy", "z.csv")
    assert (code, out) == (0, lines(7)) and "column left out of the embeddings: 'file'" in err
    refused(pick("p.npy", "z.csv", "--id-column", "fil"), "no column 'fil' in p.npy or z.csv")
    table.iloc[::-1].to_csv("z.csv", index=False)
    refused(pick("p.csv", "z.csv", "--id-column", "file"), "bring them into one order")


def test_identifiers_of_digits_stay_as_they_are(pick: Any) -> None:
    names = [f"{i:05d}" for i in range(N)]
    table = pd.DataFrame({"id": names, **{f"e{i}": Z[:, i] for i in range(5)}})
    table.to_csv("z.csv", index=False)
    table.to_parquet("z.parquet")
    expected = text(badge.select_from(OUT, 7), names)
    for file in ("z.csv", "z.parquet"):
        assert pick("p.npy", file, "--id-column", "id") == (0, expected, "")


def test_one_file_with_everything(run: Any) -> None:
    logits = np.log(P)
    frame = pd.DataFrame({**{f"c{i}": logits[:, i] for i in range(4)}, **{f"e{i}": Z[:, i] for i in range(5)}})
    frame.to_csv("all.csv", index=False)
    columns = ("--probability-columns", "c*", "--embedding-columns", "e*")
    arguments = ("--logits", "all.csv", "--embeddings", "all.csv", "-k", 7)
    assert run(*arguments, *columns, arrays=False) == (0, lines(7), "")
    refused(run(*arguments, *columns[:3], "x*", arrays=False), "--embedding-columns 'x*' matches no column")
    refused(run(*arguments, "--probabilities", "p.npy", arrays=False), "stands in place of --probabilities")
    np.save("l.npy", logits)
    assert run("--logits", "l.npy", "--embeddings", "z.npy", "-k", 7, arrays=False) == (0, lines(7), "")


def test_lists_in_parquet(pick: Any) -> None:
    table = {
        "id": list(range(N)),
        "score": Z[:, 0],
        "embedding": list(Z),
        "probabilities": pa.FixedSizeListArray.from_arrays(pa.array(P.ravel()), 4),
        "text": NAMES,
        "where": [{"a": 1}] * N,
    }
    parquet.write_table(pa.table(table), "all.parquet")
    code, out, err = pick("all.parquet", "all.parquet")
    assert (code, out) == (0, lines(7)) and "left out of the embeddings: 'id', 'score', 'probabilities'" in err
    parquet.write_table(pa.table({"where": [{"a": 1}] * N}), "struct.parquet")
    refused(pick("p.npy", "struct.parquet"), "has no column of numbers")
    parquet.write_table(pa.table({"embedding": [[1.0, 2.0]] * (N - 1) + [[1.0]]}), "ragged.parquet")
    refused(pick("p.npy", "ragged.parquet"), "'embedding' holds lists that differ in length")
    parquet.write_table(pa.table({"embedding": [[1.0, None]] * N}), "null.parquet")
    refused(pick("p.npy", "null.parquet"), "embeddings hold NaN or inf in 60 rows (first: 0")


# -- identifiers and labels -------------------------------------------------------------------------------------------


def test_all_exclude_files_count(run: Any) -> None:
    Path("a.txt").write_text("0\n1\n")
    Path("b.txt").write_text("2\n1\n")
    assert run("-k", 7, "--exclude", "a.txt", "--exclude", "b.txt")[1] == lines(7, exclude=[0, 1, 2])


def test_the_column_of_a_file_of_identifiers(run: Any) -> None:
    """--id-column names it where the pool itself has no names; one that is not there is not replaced by another."""
    Path("names.csv").write_text("id,photo\n" + "".join(f"{i},p{i}.jpg\n" for i in range(N)))
    picks = badge.select_from(OUT, 7)
    assert run("-k", 7, "--ids", "names.csv", "--id-column", "photo")[1] == "".join(f"p{i}.jpg\n" for i in picks)
    refused(run("-k", 7, "--ids", "names.csv", "--id-column", "foto"), "no column 'foto' in names.csv: 'id', 'photo'")
    refused(run("-k", 7, "--id-column", "photo"), "there is no column 'photo' in p.npy")


def test_of_two_files_none_is_left_out_unsaid(run: Any) -> None:
    """Options that take one file are refused when they are given two, and so are other options."""
    np.save("other.npy", P[::-1])
    Path("names.txt").write_text("".join(f"n{i}\n" for i in range(N)))
    for option, values in {
        "--probabilities": ["p.npy", "other.npy"],
        "--embeddings": ["z.npy", "z.npy"],
        "--ids": ["names.txt", "names.txt"],
        "--seed": ["1", "2"],
        "--k": ["3"],
    }.items():
        given = [word for value in values for word in (option, value)]
        refused(run("-k", 7, *given), f"{option} is given 2 times: give it once")
    refused(run("-k", 7, "--header", "--no-header"), "--header is given 2 times")


def test_labels_that_came_back_are_excluded(run: Any) -> None:
    Path("names.csv").write_text("\n".join(["file", *NAMES]) + "\n")
    Path("labels.csv").write_text(f"file,label\n{NAMES[0]},cat\n{NAMES[5]},\n")
    picks = badge.select_from(OUT, 7, exclude=[0, 5])
    expected = text(picks, NAMES)
    assert run("-k", 7, "--ids", "names.csv", "--exclude", "labels.csv") == (0, expected, "")
    Path("positions.csv").write_text("position,label\n0,cat\n5,dog\n")
    assert run("-k", 7, "--exclude", "positions.csv")[1] == lines(7, exclude=[0, 5])
    Path("bare.csv").write_text("0,\n5,dog\n")  # no header, and no label yet in the first row
    refused(run("-k", 7, "--exclude", "bare.csv"), "which column has the identifiers? '0', ''")
    Path("which.csv").write_text("who,what\nme,0\n")
    refused(run("-k", 7, "--exclude", "which.csv"), "which column has the identifiers? 'who', 'what'")
    run("-k", 7, "--ids", "names.csv", "--format", "csv", "-o", "next.csv")
    out = run("-k", 7, "--ids", "names.csv", "--exclude", "next.csv")[1]
    first = badge.select_from(OUT, 7)
    assert out == text(badge.select_from(OUT, 7, exclude=first), NAMES)


def test_identifiers_that_are_gone_are_a_note_or_with_strict_an_error(run: Any) -> None:
    Path("names.txt").write_text("\n".join(NAMES))
    Path("done.txt").write_text(f"{NAMES[3]}\ngone.png\n")
    code, out, err = run("-k", 7, "--ids", "names.txt", "--exclude", "done.txt")
    assert (code, err) == (0, "note: --exclude done.txt: 1 of 2 are not in the pool (first: 'gone.png')\n")
    assert out == text(badge.select_from(OUT, 7, exclude=[3]), NAMES)
    refused(run("-k", 7, "--ids", "names.txt", "--exclude", "done.txt", "--strict"), "1 of 2 are not in the pool")
    Path("done.txt").write_text("0\n1\n")  # positions where names are meant: none is known
    refused(run("-k", 7, "--ids", "names.txt", "--exclude", "done.txt"), "2 of 2 are not in the pool")


def test_ids_with_a_header(run: Any) -> None:
    expected = text(badge.select_from(OUT, 7), NAMES)
    for content in ("filename\n", "id\n"):
        Path("names.txt").write_text(content + "\n".join(NAMES))
        assert run("-k", 7, "--ids", "names.txt") == (0, expected, "")
    pd.Series(NAMES).to_csv("names.csv")
    assert run("-k", 7, "--ids", "names.csv") == (0, expected, "")
    np.save("names.npy", np.array(NAMES))
    assert run("-k", 7, "--ids", "names.npy") == (0, expected, "")
    Path("names.txt").write_text("one too many\n" + "\n".join(NAMES))
    refused(run("-k", 7, "--ids", "names.txt"), "'one too many', a header? then take it out")
    Path("names.txt").write_text("\n".join([*NAMES[:30], "", *NAMES[30:]]))
    refused(run("-k", 7, "--ids", "names.txt"), "line 31 is empty")
    odd = [*NAMES[:-1], "a\x85b"]  # a line end for str.splitlines, not for anybody else
    Path("names.txt").write_text("\n".join(odd))
    assert run("-k", 7, "--ids", "names.txt", "--format", "json")[0] == 0


def test_no_candidates_left_has_an_exit_code_of_its_own(run: Any) -> None:
    Path("done.txt").write_text("\n".join(map(str, range(N))))
    assert run("-k", 7, "--exclude", "done.txt") == (
        3, "", "error: no candidates left: all 60 examples of the pool are excluded\n",
    )  # fmt: skip


def test_a_line_of_digits_without_end(run: Any) -> None:
    Path("done.txt").write_text("9" * 5000)
    refused(run("-k", 7, "--exclude", "done.txt"), "is not a position from 0 to 59")


def test_formulas_are_not_run_by_spreadsheets(run: Any) -> None:
    names = ["=cmd|' /C calc'!A0", "@x", "-1+1", "-3", *NAMES[4:]]
    Path("names.txt").write_text("\n".join(names))
    run("-k", N, "--ids", "names.txt", "--format", "csv", "-o", "all.csv")
    cells = {row.split(",")[1] for row in Path("all.csv").read_text().splitlines()}
    assert {"'=cmd|' /C calc'!A0", "'@x", "'-1+1", "-3"} <= cells
    Path("done.csv").write_text("id\n'=cmd|' /C calc'!A0\n'@x\n")
    out = run("-k", 7, "--ids", "names.txt", "--exclude", "done.csv")[1]
    assert out == text(badge.select_from(OUT, 7, exclude=[0, 1]), names)


# -- rounded probabilities --------------------------------------------------------------------------------------------


def test_rounded_probabilities_are_brought_to_sum_to_one(pick: Any) -> None:
    for decimals in (2, 3):
        rounded = P.round(decimals)
        pd.DataFrame(rounded).to_csv("p.csv", index=False)
        code, out, err = pick("p.csv", "z.npy")
        exact = badge.Outputs(rounded / rounded.sum(1, keepdims=True), Z)
        assert (code, out) == (0, text(badge.select_from(exact, 7)))
        assert f"note: p.csv: probabilities rounded to {decimals} decimals, in sum 0.99" in err


def test_what_is_wrong_and_not_rounded_is_not_repaired() -> None:
    for p in (P * 1.01, P * 2, np.log(P), np.zeros((3, 2)), np.array([[0.5, 0.25]]), np.full((2, 3), np.nan)):
        same, note = normalised(p)
        assert note is None and same is p
