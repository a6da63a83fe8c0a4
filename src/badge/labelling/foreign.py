"""Labels from the export files of other tools: doccano, Argilla, Label Studio, Prodigy."""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from badge.errors import DataError, InputError, UnknownNameError
from badge.journal import events as e
from badge.learner.classes import Code
from badge.learner.ledger import Ledger
from badge.learner.transfer import Said, tells

#: the id in the file, the classes, who gave them
Given = tuple[Any, list[Any], str | None]


def _doccano(record: dict[str, Any], id: str) -> Iterator[Given]:
    """JSONL of a text classification: {"id": 1, "text": …, "label": ["good"]}, and the columns of the upload."""
    labels = record.get("label", record.get("labels", []))
    if labels:
        yield record.get(id, record.get("meta", {}).get(id)), labels if isinstance(labels, list) else [labels], None


def _argilla(record: dict[str, Any], id: str) -> Iterator[Given]:
    """Records as JSON: {"id": …, "fields": {…}, "metadata": {…}, "responses": {"question": [{"value", "user_id"}]}}."""
    questions = record.get("responses") or {}
    if len(questions) > 1:
        raise InputError(f"it answers {len(questions)} questions ({', '.join(questions)}): export one of them")
    for response in next(iter(questions.values()), []):
        value = response["value"]
        if value is not None:  # neither a draft nor discarded
            found = (record.get("metadata") or {}).get(id, record.get("id"))
            yield found, value if isinstance(value, list) else [value], str(response["user_id"])


def _label_studio(record: dict[str, Any], id: str) -> Iterator[Given]:
    """JSON: {"id": 1, "data": {…}, "annotations": [{"completed_by", "was_cancelled", "result": [choices]}]}."""
    for annotation in record["annotations"]:
        chosen = [part["value"]["choices"] for part in annotation["result"] if part.get("type") == "choices"]
        who = annotation.get("completed_by")
        name = who.get("email") if isinstance(who, dict) else None if who is None else str(who)
        if not annotation.get("was_cancelled") and chosen:
            yield record["data"].get(id, record.get("id")), chosen[0], name


def _prodigy(record: dict[str, Any], id: str) -> Iterator[Given]:
    """JSONL of `textcat` or `choice`: {"text", "label" or "accept", "answer": "accept", "_annotator_id"}."""
    labels = record.get("accept") or ([record["label"]] if "label" in record else [])
    if record.get("answer") == "accept" and labels:
        yield record.get(id, record.get("meta", {}).get(id)), labels, record.get("_annotator_id")


FORMATS: dict[str, Callable[[dict[str, Any], str], Iterator[Given]]] = {
    "argilla": _argilla,
    "doccano": _doccano,
    "label-studio": _label_studio,
    "prodigy": _prodigy,
}


def given_in(path: Path, format: str, id: str = "id") -> list[Given]:
    """Every label in an export file; `id` names the field that holds the ids of the pool."""
    if format not in FORMATS:
        raise UnknownNameError("format", format, list(FORMATS))
    try:
        records = [(record, by) for by, text in _texts(path) for record in _parsed(text.strip())]
    except (OSError, ValueError, RecursionError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as the JSON of {format}: {error}") from None
    found: list[Given] = []
    for number, (record, by) in enumerate(records, start=1):
        try:
            new = [(item, labels, by or who) for item, labels, who in FORMATS[format](record, id)]
        except InputError as error:
            raise DataError(f"{path}, item {number}: {error}") from None
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise DataError(f"{path}, item {number} is not what {format} exports: {error!r}") from None
        if any(one[0] is None for one in new):
            raise DataError(f"{path}, item {number} has no field {id!r}: name the one with the pool's ids, --id")
        found += new
    return found


def _texts(path: Path) -> Iterator[tuple[str | None, str]]:
    """The texts of an export, each with its author if that is known: doccano names the files of an archive after people."""
    if not zipfile.is_zipfile(path):
        yield None, path.read_text(encoding="utf-8-sig")
        return
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield PurePosixPath(name).stem, archive.read(name).decode("utf-8-sig")


def _parsed(text: str) -> list[Any]:
    """A list, or one record a line."""
    if text.startswith("["):
        return list(json.loads(text))
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def tells_from(path: Path, format: str, ledger: Ledger, id: str = "id") -> list[tuple[e.Tell, list[Code]]]:
    """The events of telling the labels of an export file, one per person and number of people; all are checked."""
    given = given_in(path, format, id)
    people: dict[Any, set[str | None]] = {}
    for item, _, by in given:
        people.setdefault(item, set()).add(by)
    told: list[Said] = []
    for item, labels, by in given:
        (plain,) = ledger.ids.plain([_id(item, ledger)])
        if not ledger.classes.multilabel and len(labels) != 1:
            raise DataError(f"{path}: item {item!r} has {len(labels)} classes, and the journal takes one")
        told.append((plain, labels if ledger.classes.multilabel else labels[0], by, len(people[item])))
    return tells(told, ledger, path.name)


def _id(item: Any, ledger: Ledger) -> Any:
    """The id of the pool that a value means: 7 and "7" are one where the pool has only one of them."""
    number = int(item) if str(item).isascii() and str(item).isdigit() else item
    return next((meant for meant in (item, str(item), number) if meant in ledger.ids), item)
