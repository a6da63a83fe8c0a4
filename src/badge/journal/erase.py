"""Take examples out of a journal: it is rewritten whole, without their ids, labels and predictions."""

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from badge.errors import InputError
from badge.journal import events as e
from badge.journal.events import Id
from badge.journal.last import read_last
from badge.journal.lines import encode, parse
from badge.journal.reading import locked, rewrite
from badge.journal.schema import typed
from badge.journal.snapshot import forget_snapshot


def erase(path: str | os.PathLike[str], ids: Iterable[Id]) -> int:
    """Erase these ids from a journal; the number of events that held one.

    Events keep their numbers: one that only spoke of an erased id becomes `erased`, and an event of that kind at the end says
    how many examples went. Copies of the journal are not touched.

    Args:
        path: the journal.
        ids: what to erase.

    Returns:
        The number of events that held one of them.

    Raises:
        JournalError: the journal is damaged, or another process has it open.

    >>> import pathlib, tempfile
    >>> from badge.journal import Journal, read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(e.Tell(ids=["ann.png", "ben.png"], labels=["cat", "dog"]), e.Relabel(id="ann.png", label="dog"))
    >>> erase(path, ["ann.png"]), [event for event in read(path)][:2]
    (2, [{'event': 'tell', 'ids': ['ben.png'], 'labels': ['dog']}, {'event': 'erased'}])
    """
    gone = set(ids)
    with locked(path) as (file, data):
        last = read_last(file)
        records = [typed(event) for event in parse(data, file, last).events]
        test: list[Id] = []  # the test sample, in the order of its predictions
        kept = []
        for record in records:
            test += record.ids if isinstance(record, e.SetAside) else []
            kept.append(_without(record, gone, test))
        changed = sum(old is not new for old, new in zip(records, kept, strict=True))
        if not changed:
            raise InputError(f"{file} holds nothing about {', '.join(map(repr, sorted(gone, key=str)))[:200]}")
        kept.append(e.Erased(examples=len(gone), at=e.now()))
        forget_snapshot(file)
        lines = [encode(number, record.event()) for number, record in enumerate(kept, start=1)]
        rewrite(file, lines, last=last is not None)
    return changed


def _without(record: e.Record, gone: set[Id], test: list[Id]) -> e.Record:
    """The record without these ids; itself where it holds none of them."""
    changes: dict[str, Any] = {}
    if isinstance(record, e.Relabel | e.Remark) and record.id in gone:
        return e.Erased(at=record.at)
    if isinstance(record, e.Header | e.NewPool) and gone & set(record.pool.sample or ()):
        sample = [id for id in record.pool.sample or () if id not in gone]
        changes["pool"] = replace(record.pool, sample=sample, digest=None)
    if isinstance(record, e.Header) and gone & set(record.initial.ids):
        changes["initial"] = replace(record.initial, **_columns(record.initial, ("labels",), gone))
    if isinstance(record, e.Ask) and record.stop is not None and gone & set(record.stop.ids):
        changes["stop"] = replace(record.stop, **_columns(record.stop, ("codes",), gone))
    if isinstance(record, e.Ask) and record.test is not None and gone & set(test):
        changes["test"] = [said for id, said in zip(test, record.test, strict=False) if id not in gone]
    if gone & set(getattr(record, "ids", ())):
        changes |= _columns(record, ("labels", "predicted"), gone)
    return replace(record, **changes) if changes else record


def _columns(part: Any, others: tuple[str, ...], gone: set[Id]) -> dict[str, Any]:
    """The ids that stay, and what belongs to each of them."""
    stay = [n for n, id in enumerate(part.ids) if id not in gone]
    columns = {name: getattr(part, name, None) for name in ("ids", *others)}
    return {name: [values[n] for n in stay] for name, values in columns.items() if isinstance(values, list)}
