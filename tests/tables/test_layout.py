"""What is found out about a text file, as a table of cases; and what the one door makes of files."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from badge.errors import BadgeError, DataError, InputError
from badge.tables import Told, read_lines, read_table
from badge.tables.layout import detect

ROWS = "0.5,0.25\n" * 30

#: content, encoding -> (encoding, delimiter, decimal sign, header, names)
CASES = {
    "commas, names": ("id,text\n1,fine\n2,dull\n", "utf-8", ("utf-8", ",", ".", True, ["id", "text"])),
    "semicolons, commas in texts": ("id;text\n1;fine, yes\n2;dull\n", "utf-8", ("utf-8", ";", ".", True, ["id", "text"])),
    "tabs": ("a\tb\n1\tx\n2\ty\n", "utf-8", ("utf-8", "\t", ".", True, ["a", "b"])),
    "bars": ("a|b\n1|x, y\n2|z\n", "utf-8", ("utf-8", "|", ".", True, ["a", "b"])),
    "decimal commas": ("a;b\n0,5;1\n1,25;2\n", "utf-8", ("utf-8", ";", ",", True, ["a", "b"])),
    "decimal commas, no names": ("0,5;0,5\n" * 30, "utf-8", ("utf-8", ";", ",", False, ["0", "1"])),
    "decimal points, a comma in a text": ("a;b\n0.5;1,5\n1.5;x\n", "utf-8", ("utf-8", ";", ".", True, ["a", "b"])),
    "numbers, no names": (ROWS, "utf-8", ("utf-8", ",", ".", False, ["0", "1"])),
    "names that count": ("0,1\n" + ROWS, "utf-8", ("utf-8", ",", ".", True, ["0", "1"])),
    "an index, unnamed": (",0,1\n0,0.5,0.5\n1,0.2,0.8\n2,0.1,0.9\n", "utf-8", ("utf-8", ",", ".", True, ["", "0", "1"])),
    "whole numbers, no names": ("1,0\n0,1\n1,0\n", "utf-8", ("utf-8", ",", ".", False, ["0", "1"])),
    "words above words": ("a,b\nx,y\nz,u\n", "utf-8", ("utf-8", ",", ".", True, ["a", "b"])),
    "an ordinary name": ("name,2019\nann,1\nben,3\n", "utf-8", ("utf-8", ",", ".", True, ["name", "2019"])),
    "one column": ("text\nfine\ndull\n", "utf-8", ("utf-8", ",", ".", True, ["text"])),
    "a quoted line end": ('a,b\n"x\n\ny",1\nz,2\n', "utf-8", ("utf-8", ",", ".", True, ["a", "b"])),
    "names in a comment": ("# a,b\n" + ROWS, "utf-8", ("utf-8", ",", ".", False, ["a", "b"])),
    "a mark of UTF-8": ("a,b\n1,ü\n", "utf-8-sig", ("utf-8-sig", ",", ".", True, ["a", "b"])),
    "UTF-16 with a mark": ("a;b\n1;ü\n", "utf-16", ("utf-16", ";", ".", True, ["a", "b"])),
    "UTF-16 without one": ("a;b\n1;ü\n", "utf-16-le", ("utf-16-le", ";", ".", True, ["a", "b"])),
    "big-endian UTF-16": ("a;b\n1;ü\n", "utf-16-be", ("utf-16-be", ";", ".", True, ["a", "b"])),
    "Windows-1252": ("a;b\n1;5 € für ü\n", "cp1252", ("windows-1252", ";", ".", True, ["a", "b"])),
    "a late umlaut": ("a\n" + "x\n" * 5000 + "ü\n", "cp1252", ("windows-1252", ",", ".", True, ["a"])),
    "Latin-1": ("a;b\n1;\x81ü\n", "latin-1", ("latin-1", ";", ".", True, ["a", "b"])),
}  # fmt: skip


@pytest.mark.parametrize(("text", "encoding", "expected"), CASES.values(), ids=CASES)
def test_detection(text: str, encoding: str, expected: tuple[str, str, str, bool, list[str]]) -> None:
    found = detect(text.encode(encoding))
    assert (found.encoding, found.delimiter, found.decimal, found.header, found.names) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n# nothing\n", "is empty"),
        ("a,b\n", "has a header and no rows"),
        ("0,1\n1,0\n0,1\n", "name the columns? Give --header or --no-header"),
        ("0,1\n0.5,0.5\n", "name the columns? Give --header or --no-header"),
        ("0.1x,0.3\n" + ROWS, "name the columns? Give --header or --no-header"),
        ("a\0b\0\0c", "it is no text"),
        ("#0.1,0.2\n" + ROWS, "begins with # and has a number for every column"),
    ],
)
def test_what_cannot_be_told_is_asked(text: str, message: str) -> None:
    with pytest.raises(BadgeError) as caught:
        detect(text.encode())
    assert message in str(caught.value)


def test_what_is_told_is_not_looked_for() -> None:
    assert detect(b"0,1\n1,0\n", Told(header=False)).names == ["0", "1"]
    assert detect(b"0,1\n1,0\n", Told(header=True)).names == ["0", "1"]
    assert detect(b"0,1\n1,0\n", Told(header=True)).skip == 1
    assert detect(b"a:b\n1:2\n", Told(delimiter=":")).names == ["a", "b"]
    assert detect("日本\n1\n".encode("shift-jis"), Told(encoding="shift-jis")).names == ["日本"]
    assert detect(b"first\nsecond\n", names=("id",)).names == ["0"]
    assert detect(b"id\nsecond\n", names=("id",)).names == ["id"]


def test_cells_keep_what_they_hold(tmp_path: Path) -> None:
    """Records are texts as they stand, but for the decimal sign of numbers; columns of numbers are numbers."""
    file = tmp_path / "a.csv"
    file.write_text('id;text;n\n007;"a;b\n\n""c""";0,50\n008; x, 1,5 ;1,5\n\n\n', encoding="cp1252")
    table = read_table(file)
    assert table.rows() == [
        {"id": "007", "text": 'a;b\n\n"c"', "n": "0.50"},
        {"id": "008", "text": " x, 1,5 ", "n": "1.5"},
    ]
    assert table.understood == "a.csv: 2 rows, delimiter ';', decimal comma, header, utf-8"
    id, text, n = read_table(file, numbers=True).columns
    assert list(id) == [7, 8] and text[1] == " x, 1,5 " and list(n) == [0.5, 1.5]


def test_a_gap_between_rows_counts_where_positions_do(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,text\n1,x\n\n2,y\n")
    assert [row["text"] for row in read_table(file).rows()] == ["x", "y"]
    with pytest.raises(DataError, match="line 3 is empty, and rows follow it"):
        read_table(file, numbers=True)


def test_an_empty_cell_in_the_only_column_of_numbers_is_no_row_less(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("n,t\n" + "1.5,a\n" * 5 + ",a\n" + "2.5,a\n" * 5)
    with pytest.raises(DataError, match=r"an empty cell, in row 5 \(counted from 0\) of column 'n'"):
        read_table(file, numbers=True)


def test_rows_of_another_width(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,text\n1,x\n2\n")
    with pytest.raises(DataError, match="line 3 has 1 cell, the first row 2: correct it, or give --delimiter"):
        read_table(file)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.csv", "id,text\n" + "".join(f"{i},{chr(34) * (i == 50)}film {i}\n" for i in range(100)), 52),
        ("a.tsv", "text\tlabel\n" + "".join(f"{chr(34) * (i in (20, 70))}film {i}\ta\n" for i in range(100)), 22),
        ("a.csv", 'id,text,more\n1,"two\nlines","one\n2,x,y\n', 3),
        ("a.csv", '# above\n"id,text\n1,a\n2,b\n', 2),
    ],
)  # fmt: skip
def test_a_quote_that_is_not_closed_takes_in_no_rows(name: str, text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    for numbers in (False, True):
        with pytest.raises(DataError, match=f"begins with a quote on line {line} does not end with one: close it"):
            read_table(tmp_path / name, numbers=numbers)


def test_quotes_that_end_where_they_should_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(
        b'id,text\r\n1,5" pipe\r\n2,"a\nb" \r\n3,"x ""y"" \r\n\r\n,z"\r\n4,he "said\r\n5,"yes" or\r\n6,"a\n"'
    )
    texts = ['5" pipe', "a\nb ", 'x "y" \r\n\r\n,z', 'he "said', "yes or", "a\n"]
    assert [row["text"] for row in read_table(file).rows()] == texts


def test_long_tables_are_read_whole(tmp_path: Path) -> None:
    """Behind the rows that are looked at first, cells may go over several lines."""
    text = io.StringIO()
    csv.writer(text).writerows([["id", "text"], *([str(i), f"line\nof {i}\n" * 3] for i in range(3000))])
    with gzip.open(tmp_path / "a.csv.gz", "wt", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())
    rows = read_table(tmp_path / "a.csv.gz").rows()
    assert len(rows) == 3000 and rows[-1] == {"id": "2999", "text": "line\nof 2999\n" * 3}


def test_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\u2028still one\r\n\r\nzwö".encode("utf-16"))
    assert read_lines(tmp_path / "a.txt") == ["one\u2028still one", "", "zwö"]


def test_what_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.doc").write_text("x")
    with pytest.raises(DataError, match=r"--ids: .*a.doc is none of .csv"):
        read_table(tmp_path / "a.doc", what="--ids")
    with pytest.raises(DataError, match="there is no file"):
        read_table(tmp_path / "b.csv")
    (tmp_path / "a.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "a.parquet")
    assert issubclass(InputError, ValueError)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(alphabet="ab01.,;|\t\"'#\n\r -eé\0", max_size=60) | st.binary(max_size=60), numbers=st.booleans()
)
def test_whatever_a_file_holds_it_is_read_or_refused(content: str | bytes, numbers: bool, tmp_path: Path) -> None:
    """No other error, no row of another width, and numbers and texts agree on the number of rows."""
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.csv.gz"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            table = read_table(tmp_path / name, numbers=numbers)
        except BadgeError as error:
            assert "\n" not in str(error)
            continue
        assert len(table.names) == len(table.columns)
        assert len({len(column) for column in table.columns}) <= 1
