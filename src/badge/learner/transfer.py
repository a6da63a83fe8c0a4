"""Labels out of a journal and into one, as CSV: the way that is always open, whatever became of pool, model or classes."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from badge.core.names import path_of
from badge.core.spreadsheet import as_meant, safe
from badge.errors import InputError
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner.classes import Code
from badge.learner.history import history
from badge.learner.ledger import Ledger

__all__ = ["labels_in", "tells_from_csv", "write_labels"]

COLUMNS = ("id", "label", "by", "at")


def labels_in(records: Iterable[e.Record], ledger: Ledger | None) -> list[dict[str, Any]]:
    """The label of each id, with who gave it last and when; without a ledger (its first line is lost) the last one told.

    >>> labels_in([e.Tell(ids=[3], labels=["cat"], by="ann")], None)
    [{'id': 3, 'label': 'cat', 'by': 'ann', 'at': None}]
    """
    last = {row.id: row for row in history(records)}
    if ledger is None:
        return [{"id": id, "label": row.label, "by": row.by, "at": row.at} for id, row in last.items()]
    rows = [(id, ledger.classes.decode(code)) for id, code in ledger.labels.items()]
    return [{"id": id, "label": label, "by": last[id].by, "at": last[id].at} for id, label in rows]


def write_labels(rows: Iterable[dict[str, Any]], file: TextIO) -> None:
    """As CSV; a label that is a list is written as JSON."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        label = json.dumps(row["label"]) if isinstance(row["label"], list) else row["label"]
        writer.writerow([safe(str(cell)) for cell in (row["id"], label, row["by"] or "", row["at"] or "")])


def tells_from_csv(path: str | os.PathLike[str], ledger: Ledger) -> list[tuple[e.Tell, list[Code]]]:
    """The events of telling the labels of a CSV file (columns id and label, and by if there is one): one per person.

    All of it is checked before anything is told; labels that are known already are left out.
    """
    people: dict[str | None, tuple[list[Id], list[Any]]] = {}
    for number, row in enumerate(_rows(path), start=2):
        try:
            row = {name: as_meant(cell) for name, cell in row.items()}
            id, label = _id(row["id"], ledger), _label(row["label"], ledger)
            ledger.tell([id], [label], row.get("by") or None, unasked=True)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        ids, labels = people.setdefault(row.get("by") or None, ([], []))
        ids.append(id)
        labels.append(label)
    told = [ledger.tell(ids, labels, by, unasked=True) for by, (ids, labels) in people.items()]
    return [(replace(checked[0], source=Path(path).name), checked[1]) for checked in told if checked]


def _rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    file_name = path_of(path, "a table of labels")
    if file_name.exists() and not file_name.is_file():
        raise InputError(f"{path} is not a file")
    try:
        with file_name.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            names, rows = list(reader.fieldnames or ()), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path} as CSV in UTF-8: {error}") from None
    missing = [name for name in ("id", "label") if name not in names]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    short = [number for number, row in enumerate(rows, start=2) if None in row or None in row.values()]
    if short:
        raise InputError(f"{path}, line {short[0]}: not as many values as columns")
    return rows


def _id(text: str, ledger: Ledger) -> Id:
    """The id that a text in a table means: a whole number where the pool's ids are."""
    if text.strip().lstrip("-").isascii() and text.strip().lstrip("-").isdigit() and ledger.ids.means_number(text):
        return int(text)
    return text


def _label(text: str, ledger: Ledger) -> Any:
    if ledger.classes.multilabel:
        try:
            return json.loads(text)
        except ValueError:
            raise InputError(f"the label {text!r} is not a JSON list of classes") from None
    number = int(text) if text.isascii() and text.lstrip("-").isdigit() else None
    return number if text not in ledger.classes.names and number in ledger.classes.names else text
