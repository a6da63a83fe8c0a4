"""Labels from the export files of other tools: doccano, Argilla, Label Studio, Prodigy."""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from badge.errors import DataError, InputError, UnknownNameError
from badge.learner.calls import Checked
from badge.learner.classes import short
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
        if value is not None and response.get("status") not in ("draft", "discarded"):
            found = (record.get("metadata") or {}).get(id, record.get("id"))
            yield found, value if isinstance(value, list) else [value], str(response["user_id"])


def _label_studio(record: dict[str, Any], id: str) -> Iterator[Given]:
    """JSON: {"id": 1, "data": {…}, "annotations": [{"completed_by", "was_cancelled", "result": [choices]}]}."""
    for annotation in record["annotations"]:
        chosen = [part for part in annotation["result"] if part.get("type") == "choices"]
        if annotation.get("was_cancelled") or not chosen:
            continue
        questions = sorted({str(part.get("from_name")) for part in chosen})
        if len(questions) > 1:
            wanted = "`badge label-studio --control` takes one of them"
            raise InputError(f"it answers {len(questions)} questions ({', '.join(questions)}): {wanted}")
        who = annotation.get("completed_by")
        who = who.get("email") or who.get("id") if isinstance(who, dict) else who
        labels = [label for part in chosen for label in part["value"]["choices"]]
        yield record["data"].get(id, record.get("id")), labels, None if who is None else str(who)


def _prodigy(record: dict[str, Any], id: str) -> Iterator[Given]:
    """JSONL of `textcat` or `choice`: {"text", "label" or "accept", "answer": "accept", "_annotator_id"}."""
    who = record.get("_annotator_id", record.get("_session_id"))
    labels = record.get("accept") or ([record["label"]] if "label" in record else [])
    if record.get("answer") == "accept" and labels:
        yield record.get(id, record.get("meta", {}).get(id)), labels, None if who is None else str(who)


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
        if wrong := [one[0] for one in new if not isinstance(one[0], str | int)]:
            raise DataError(f"{path}, item {number}: the id {short(wrong[0])} is neither a text nor a whole number")
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


def tells_from(path: Path, format: str, ledger: Ledger, id: str = "id") -> list[Checked]:
    """The events of telling the labels of an export file, one per person and number of people; all are checked."""
    told: list[Said] = []
    try:
        for item, labels, by in given_in(path, format, id):
            (plain,) = ledger.ids.plain([ledger.ids.meant(item)])
            if not ledger.classes.multilabel and len(labels) != 1:
                raise InputError(f"item {item!r} has {len(labels)} classes, and the journal takes one")
            told.append((plain, labels if ledger.classes.multilabel else labels[0], by, 1))
        return tells(told, (), ledger, path.name)
    except InputError as error:
        raise DataError(f"{path}: {error.plain}") from None
