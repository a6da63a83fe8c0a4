"""Files that the labelling page opens: what is read of each format, and what is refused."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from badge.errors import DataError, InputError
from badge.labelling.models import trainer_of
from badge.labelling.sources import classes_of, open_source


def two_texts(folder: Path) -> Path:
    path = folder / "texts.csv"
    path.write_text("text\nfine\ndull\n")
    return path


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    assert open_source(tmp_path / "a.txt").pool == ["one", "two"]
    (tmp_path / "a.csv").write_text(
        'key,review,stars\nk1,"two\nlines, ""quoted""",4\nk2,short,1\n', encoding="utf-8-sig"
    )
    source = open_source(tmp_path / "a.csv", text="review", id="key")
    assert source.pool[0] == 'two\nlines, "quoted"' and source.ids == ["k1", "k2"]
    assert source.shown(1) == {"kind": "text", "text": "short", "fields": [["stars", "1"]]}
    rows = open_source(tmp_path / "a.csv", id="key")
    assert "--text" not in rows.understood
    assert rows.kind == "row" and rows.shown(1)["fields"] == [["review", "short"], ["stars", "1"]]
    (tmp_path / "a.jsonl").write_text('{"id": 7, "text": "x"}\n{"id": 9, "text": "y"}\n')
    assert open_source(tmp_path / "a.jsonl").ids == [7, 9]
    (tmp_path / "b.csv").write_text("text,n\nline\u2028separator,1\n" + "x" * 200_000 + ",2\n", encoding="utf-8")
    assert [len(text) for text in open_source(tmp_path / "b.csv").pool] == [14, 200_000]
    (tmp_path / "b.txt").write_bytes("one\u2028still one\r\ntwo\r\n".encode())
    assert open_source(tmp_path / "b.txt").pool == ["one\u2028still one", "two"]
    (tmp_path / "b.jsonl").write_text('{"text": "half \\ud800", "n": NaN}\n{"text": null, "n": [1]}\n')
    shown = [open_source(tmp_path / "b.jsonl").shown(i) for i in range(2)]
    assert json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()  # as the server sends it
    assert shown[1]["text"] == "" and shown[1]["fields"] == [["n", "[1]"]]
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({"text": ["p", "q"]}), tmp_path / "a.parquet")
    assert open_source(tmp_path / "a.parquet").pool == ["p", "q"]


def test_a_file_that_is_not_there_is_said_before_torch_is_loaded(tmp_path: Path) -> None:
    program = (
        "import sys; from badge.cli import main; sys.argv = ['badge', 'label', 'nothing.csv', '--classes', 'a,b']\n"
        "try: main()\nexcept SystemExit as end: print(end.code, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "2 False\n" and done.stderr.startswith("error: there is no nothing.csv")


def test_the_table_of_a_european_spreadsheet(tmp_path: Path) -> None:
    """Semicolons, commas in texts and numbers, Windows-1252: as a person sees it in the spreadsheet."""
    (tmp_path / "a.csv").write_bytes("id;text;preis\n1;gut, schön;0,5\n2;mäßig;1,25\n".encode("cp1252"))
    source = open_source(tmp_path / "a.csv")
    assert (source.ids, source.pool) == (["1", "2"], ["gut, schön", "mäßig"])
    assert source.shown(1)["fields"] == [["preis", "1.25"]]
    assert source.understood == "a.csv: 2 rows, delimiter ';', decimal comma, header, windows-1252"
    (tmp_path / "a.csv").write_text("nr;anfrage\n1;wo ist mein Paket\n2;die Schuhe sind zu klein\n")
    assert (
        "labelled row by row: for the texts of a column, --text 'anfrage'" in open_source(tmp_path / "a.csv").understood
    )
    (tmp_path / "a.csv").write_text("ville;2019;2020\nParis;1;2\nLyon;3;4\n")  # may look like values
    assert open_source(tmp_path / "a.csv", text="ville").pool == ["Paris", "Lyon"]
    for encoding in ("utf-16", "utf-8-sig"):
        (tmp_path / "a.csv").write_text("id\ttext\n1\tgut\n2\tmäßig\n", encoding=encoding)
        assert open_source(tmp_path / "a.csv").pool == ["gut", "mäßig"]
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in (["id", "text", "preis"], [1, "gut; schön", 0.5], [2, "mäßig", 3]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    source = open_source(tmp_path / "a.xlsx")
    assert (source.ids, source.pool) == (["1", "2"], ["gut; schön", "mäßig"])
    assert [source.shown(i)["fields"] for i in range(2)] == [[["preis", "0.5"]], [["preis", "3"]]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n1,x\n1,y\n", "stands at items 1 and 2"),
        ("a.csv", "text\nonly\n", "at least 2"),
        ("a.csv", "a,b\n1\n2,3\n", "line 2 has 1 cell, the first row 2"),
        ("a.csv", "text\na film, dull\na film, fine\n", "line 2 has 2 cells, the first row 1"),
        ("a.jsonl", '{"text": "x"}\nnope\n', "line 2 is no JSON"),
        ("a.jsonl", "[1]\n[2]\n", "line 1 is a list"),
        ("a.doc", "x", "a.doc is none of .csv"),
        ("a.txt", "\0\0", "it is no text"),
    ],
)
def test_files_that_cannot_be_labelled(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_files_of_classes_in_any_usual_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "list.txt").write_text("gelöst\n\noffen\r\n", encoding=encoding)
    (tmp_path / "table.csv").write_text("name,description,key\ngelöst,erledigt,g\noffen,,\n", encoding=encoding)
    names, about = classes_of(str(tmp_path / "table.csv"))
    assert classes_of(str(tmp_path / "list.txt"))[0] == names == ["gelöst", "offen"]
    assert about["gelöst"]["description"] == "erledigt"


TABLE_OF_CLASSES = "name,description,key\ngood,liked,g\nbad,,\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.xz", lzma.compress(TABLE_OF_CLASSES.encode())),
        ("a.csv.gz", gzip.compress(TABLE_OF_CLASSES.encode())),
        ("a.CSV", TABLE_OF_CLASSES.encode()),
        ("a.tsv", TABLE_OF_CLASSES.replace(",", "\t").encode()),
        ("a.jsonl", b'{"name": "good", "description": "liked", "key": "g"}\n{"name": "bad", "key": null}\n'),
    ],
    ids=["xz", "gz", "upper case", "tsv", "jsonl"],
)  # fmt: skip
def test_classes_in_any_table(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    about = {"good": {"description": "liked", "key": "g"}, "bad": {}}
    assert classes_of(str(tmp_path / name)) == (["good", "bad"], about)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,key\na,1\nb,2\na,3\n", "the class 'a' is there twice"),
        ("name,key\na,x\nb,y\nc,y\n", "the key 'y' is there twice"),
        ("good\nbad\n", r"has no column 'name': it has 'good'; .* a list of names is a .txt file"),
        ("class,key\na,1\nb,2\n", "has no column 'name': it has 'class', 'key'"),
    ],
)
def test_tables_of_classes_that_cannot_be_meant(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        classes_of(str(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda folder: classes_of("nofile.txt"), "--classes nofile.txt: there is no such file"),
        (lambda folder: classes_of("good,bad,good"), "the class 'good' is there twice"),
        (lambda folder: open_source(folder / "nothing.csv"), "there is no"),
        (open_source, "holds 0 images"),
        (lambda folder: open_source(two_texts(folder), text="review"), "no such column"),
        (lambda folder: classes_of("one"), "at least 2 different"),
        (lambda folder: trainer_of("text", 2, "hf:x", "a:b"), "exclude each other"),
        (lambda folder: trainer_of("row", 2, "hf:x"), "rows of a table"),
    ],
)
def test_more_that_cannot(tmp_path: Path, call: Callable[[Path], Any], message: str) -> None:
    with pytest.raises((DataError, InputError), match=message):
        call(tmp_path)
