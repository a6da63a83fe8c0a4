"""Labels out of a journal and into one, as CSV: works without the pool and without a model.

Out and in again is the identity. A text that would be read as a number where there are numbers too, or that begins with a
quotation mark, is written as JSON ("1"); so is a label that is a list. If several people label an example, the columns
`people` and `votes` hold how many and what each of them said; the label is empty while it is open.
"""

import csv
import json
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from badge.core.names import name_of, path_of
from badge.core.spreadsheet import as_meant, safe
from badge.errors import InputError
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner import calls
from badge.learner.calls import Checked
from badge.learner.classes import Classes
from badge.learner.history import history
from badge.learner.ids import Ids
from badge.learner.ledger import Ledger

COLUMNS, VOTES = ("id", "label", "by", "at"), ("people", "votes")
#: whole numbers that an id or a class can be
_NUMBER = re.compile(r"-?[0-9]{1,20}")
#: bytes of a cell: ids may be long
MOST = 2**31 - 1
#: an id, its label, who gave it, and the number of people who label it
Said = tuple[Id, Any, str | None, int]


def labels_in(records: Iterable[e.Record], ledger: Ledger | None) -> list[dict[str, Any]]:
    """The label of each id, with who gave it last and when; without a ledger (its first line is lost) the last one told.

    >>> labels_in([e.Tell(ids=[3], labels=["cat"], by="ann")], None)
    [{'id': 3, 'label': 'cat', 'by': 'ann', 'at': None}]
    """
    last = {row.id: row for row in history(records)}
    if ledger is None:
        return [{"id": id, "label": row.label, "by": row.by, "at": row.at} for id, row in last.items()]
    rows = []
    labels = {**ledger.labels, **{id: code for id, code in ledger.withdrawn.items() if code is not None}}
    for id in {**labels, **ledger.votes}:
        row = {"id": id, "label": ledger.said(labels.get(id)), "by": last[id].by, "at": last[id].at}
        if ledger.votes.get(id):
            row |= {"people": ledger.people[id], "votes": ledger.said_by(id)}
        rows.append(row)
    return rows


def write_labels(rows: list[dict[str, Any]], file: IO[str], ledger: Ledger | None = None) -> None:
    columns = (*COLUMNS, *(VOTES if any("votes" in row for row in rows) else ()))
    ids = any(isinstance(row["id"], int) for row in rows) if ledger is None else ledger.ids.numbers
    names = (row["label"] for row in rows) if ledger is None else ledger.classes.names
    numbers = {"id": ids, "label": any(isinstance(name, int) for name in names)}
    plain = csv.writer(file, lineterminator="\n")
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a carriage return alone gets no quotes else
    plain.writerow(columns)
    for row in rows:
        cells = [safe(_cell(row.get(column), numbers.get(column, False))) for column in columns]
        (quoted if any("\r" in cell for cell in cells) else plain).writerow(cells)


def _cell(value: Any, numbers: bool) -> str:
    """What is written for a value; `numbers`: there are whole numbers among such values."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    text = "" if value is None else str(value)
    ambiguous = isinstance(value, str) and (text.startswith('"') or (numbers and _NUMBER.fullmatch(text.strip())))
    return json.dumps(text, ensure_ascii=False) if ambiguous else text


def imported(
    path: str | Path, ledger: Ledger, id: str = "id", label: str = "label", by: str | None = None
) -> list[Checked]:
    """The events of telling the labels of a CSV file: one per person. `id`, `label` and `by` name its columns.

    All of them are checked, one after the other; labels that are known already are left out. Corrections of votes come last.
    """
    for name in (id, label, *(() if by is None else (by,))):
        name_of(name, "a column")
    told: list[Said] = []
    decided: list[tuple[Id, Any]] = []
    for number, row in _rows(path, [id, label, *([by] if by else [])]):
        try:
            row = {name: as_meant(cell) for name, cell in row.items()}
            plain = _id(row[id], ledger.ids)
            votes, people = _votes(row)
            one = row.get(by or "by") or None
            given = votes or {one: _label(row[label], ledger.classes)}
            for person, said in given.items():
                calls.tell(ledger, [plain], [said], person, unasked=True, people=people)
                told.append((plain, said, person, people))
            if votes and row[label]:
                decided.append((plain, _label(row[label], ledger.classes)))
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error.plain}", in_python=error.in_python) from None
    try:
        return tells(told, decided, ledger, Path(path).name)
    except InputError as error:
        raise InputError(f"{path}: {error.plain}", in_python=error.in_python) from None


def tells(told: list[Said], decided: Iterable[tuple[Id, Any]], ledger: Ledger, source: str) -> list[Checked]:
    """The events of telling labels from a file, one per person and number of people, and of deciding between votes.

    Each is checked after those before it, as a reader of the journal will. Several people who label one example vote.
    """
    voters: dict[Id, set[str | None]] = {}
    columns: dict[tuple[str | None, int], tuple[list[Id], list[Any]]] = {}
    for id, _, by, _ in told:
        voters.setdefault(id, set()).add(by)
    for id, label, by, people in told:
        ids, labels = columns.setdefault((by, max(people, len(voters[id]))), ([], []))
        ids.append(id)
        labels.append(label)
    trial = ledger.copy()
    found: list[Checked] = []

    def take(checked: Checked | None) -> None:
        if checked:
            trial.apply(*checked)
            found.append(checked)

    for (by, n), both in columns.items():
        if one := calls.tell(trial, *both, by, unasked=True, people=n):
            take((replace(one[0], source=source), one[1]))
    for id, label in decided:
        take(calls.relabel(trial, id, label))
    return found


def _rows(path: str | os.PathLike[str], needed: list[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table, with the number of their last line."""
    file_name = path_of(path, "a table of labels")
    if file_name.exists() and not file_name.is_file():
        raise InputError(f"{path} is not a file")
    limit = csv.field_size_limit(MOST)
    try:
        with file_name.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            names, rows = list(reader.fieldnames or ()), [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path} as CSV in UTF-8: {error}") from None
    finally:
        csv.field_size_limit(limit)
    if missing := [name for name in needed if name not in names]:
        raise InputError(f"{path} has no column {missing[0]!r}; it has {', '.join(names) or 'none'}")
    if short := [number for number, row in rows if None in row or None in row.values()]:
        raise InputError(f"{path}, line {short[0]}: not as many values as columns")
    return rows


def _text(cell: str) -> str | None:
    """The text of a cell that holds one as JSON."""
    try:
        found = json.loads(cell) if cell.startswith('"') else None
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _id(cell: str, ids: Ids) -> Id:
    """The id that a cell means: a whole number where the pool has it."""
    text = _text(cell)
    if text is not None and text in ids:
        return text
    return int(cell) if _NUMBER.fullmatch(cell.strip()) and ids.means_number(int(cell)) else cell


def _label(cell: str, classes: Classes) -> Any:
    if classes.multilabel:
        try:
            return json.loads(cell)
        except ValueError:
            raise InputError(f"the label {cell!r} is not a JSON list of classes") from None
    text, number = _text(cell), int(cell) if _NUMBER.fullmatch(cell) else None
    return text if text in classes.names else number if number in classes.names else cell


def _votes(row: dict[str, str]) -> tuple[dict[str | None, Any], int]:
    """Who said what, and the number of people who label the example; empty and 1 where one label is enough."""
    if not row.get("votes"):
        return {}, 1
    try:
        votes = json.loads(row["votes"])
        people = int(row.get("people") or max(2, len(votes)))
    except (TypeError, ValueError):
        raise InputError("votes are a JSON object, and people a whole number") from None
    if not isinstance(votes, dict) or not 1 < people < 1000:
        raise InputError(f"votes are a JSON object of people who label, and people is at least 2, not {people}")
    return votes, people
