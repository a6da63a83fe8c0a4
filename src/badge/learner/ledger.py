"""What was asked and what was told: the state of an active learner, as a fold over the events of its journal.

Live calls and the replay of a journal go through the same `apply`, so they cannot disagree. Events:

    {"event": "learner", "format": 1, "pool": {...}, "classes": ..., "strategy": ..., "seed": 0, "initial": {...}}
    {"event": "ask", "round": 0, "ids": [5, 2], "memory": {...}}        what changed in the memory of a strategy
    {"event": "tell", "ids": [5], "labels": ["cat"]}
    {"event": "relabel", "id": 5, "label": "dog"}
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from badge.errors import InputError, JournalError
from badge.journal import Event
from badge.learner.classes import Classes, as_plain, short

__all__ = ["Ledger", "changes", "check_header", "merged", "plain_ids"]


class Ledger:
    """Labels, pending ids and the number of asks so far; `apply` folds one event into them.

    >>> ledger = Ledger(10, Classes(2))
    >>> ledger.apply({"event": "ask", "round": 0, "ids": [4, 7]})
    >>> ledger.apply(ledger.tell([7], [1]))
    >>> ledger.labels, list(ledger.pending)
    ({7: 1}, [4])
    """

    def __init__(self, length: int, classes: Classes) -> None:
        self.length, self.classes = length, classes
        self.labels: dict[int, int] = {}  # id -> position of its class
        self.pending: dict[int, None] = {}  # asked and not told; a dict for its order
        self.batches: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        self.label_round = 0  # number of asks before the labels last changed: the round of the model trained on them
        self.memory: dict[str, Any] | None = None  # of the strategy, after the last ask

    # -- events that a caller wants: checked, not yet applied ----------------------------------------------------

    def initial(self, labels: Mapping[int, Any]) -> Event:
        ids = plain_ids(list(labels), self.length)
        codes = dict(sorted(zip(ids, self._encode(ids, list(labels.values())), strict=True)))  # order means nothing
        return {"ids": list(codes), "labels": [self.classes.decode(code) for code in codes.values()]}

    def tell(self, ids: Iterable[Any], labels: Iterable[Any]) -> Event | None:
        """The event of telling `labels`; None where all of them are known already. Raises before anything changes."""
        plain = plain_ids(ids, self.length)
        given = [as_plain(label) for label in _listed(labels, "labels")]
        if len(plain) != len(given):
            raise InputError(f"{len(plain)} ids and {len(given)} labels: one label for each id is needed")
        new: dict[int, int] = {}
        for id, code in zip(plain, self._encode(plain, given), strict=True):
            known = self.labels.get(id, new.get(id))
            if known is not None and known != code:
                old, told = self.classes.decode(known), self.classes.decode(code)
                way_out = f"relabel({id}, {told!r}) corrects a label" if id in self.labels else "tell it once"
                raise InputError(f"id {id} is labelled {old!r} and was told again as {told!r}: {way_out}")
            if known is None and id not in self.pending:
                raise InputError(
                    f"id {id} was not asked: labels that exist already go into `initial`; pending are "
                    f"{short(list(self.pending))}"
                )
            if known is None:
                new[id] = code
        if not new:
            return None
        return {"event": "tell", "ids": list(new), "labels": [self.classes.decode(code) for code in new.values()]}

    def relabel(self, id: Any, label: Any) -> Event | None:
        """The event of correcting a label; None where it is that already."""
        (plain,) = plain_ids([id], self.length)
        code = self.classes.encode(label, plain)
        if plain not in self.labels:
            first = "tell" if plain in self.pending else "ask"
            raise InputError(f"id {plain} has no label to correct: {first} it first")
        if self.labels[plain] == code:
            return None
        return {"event": "relabel", "id": plain, "label": self.classes.decode(code)}

    # -- the fold ------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Fold one event in; events of other kinds are left alone."""
        kind = event.get("event")
        if kind == "learner":
            given = event["initial"]
            self.labels.update(zip(given["ids"], self._encode(given["ids"], given["labels"]), strict=True))
        elif kind == "ask":
            self._apply_ask(event)
        elif kind == "tell":
            checked = self.tell(event["ids"], event["labels"])
            for id, code in zip(event["ids"], self._encode(event["ids"], event["labels"]), strict=True):
                self.labels[id] = code
                self.pending.pop(id, None)
            self.label_round = len(self.batches) if checked else self.label_round
        elif kind == "relabel" and self.relabel(event["id"], event["label"]):
            self.labels[event["id"]] = self.classes.encode(event["label"], event["id"])
            self.label_round = len(self.batches)

    def replay(self, events: Iterable[Event], path: object) -> None:
        """Fold a whole journal in; an event that contradicts those before it names its line."""
        for number, event in enumerate(events, start=1):
            try:
                self.apply(event)
            except (InputError, KeyError, TypeError, ValueError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise JournalError(f"{path}, line {number}: {reason}; the journal was changed by hand") from error

    def _apply_ask(self, event: Event) -> None:
        ids = plain_ids(event["ids"], self.length)
        again = [id for id in ids if id in self.labels or id in self.pending]
        if event["round"] != len(self.batches) or again or len(set(ids)) != len(ids):
            raise InputError(f"ask {event['round']} is out of order or repeats ids {short(again)}")
        self.pending.update(dict.fromkeys(ids))
        self.batches.append(np.array(ids, dtype=np.int64))
        self.memory = merged(self.memory, event["memory"]) if event.get("memory") else self.memory

    def _encode(self, ids: Sequence[int], labels: Sequence[Any]) -> list[int]:
        return [self.classes.encode(label, id) for id, label in zip(ids, labels, strict=True)]

    # -- what follows from it ------------------------------------------------------------------------------------

    def labeled(self) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
        """Ids, ascending, and class positions: the same arrays however the labels came in."""
        ids = np.array(sorted(self.labels), dtype=np.int64)
        return ids, np.array([self.labels[int(id)] for id in ids], dtype=np.int64)

    def candidates(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Ids that can still be asked, ascending."""
        free = np.ones(self.length, dtype=bool)
        free[list(self.labels)] = False
        free[list(self.pending)] = False
        return np.flatnonzero(free)


def changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """What of a strategy's memory to write down, so that `merged(old, changes(old, new)) == new`.

    A memory grows with the labels (albl keeps a number for each): written whole with every batch, the journal would grow
    with their square. So of a table in it only the new and the changed entries are written, under "add".

    >>> changes({"w": 1, "by_id": {"3": 0.5}}, {"w": 1, "by_id": {"3": 0.5, "7": 0.25}})
    {'add': {'by_id': {'7': 0.25}}}
    """
    if old is None or old.keys() != new.keys():
        return {"all": dict(new)}
    parts: dict[str, Any] = {}
    for key, value in new.items():
        before = old[key]
        if isinstance(value, dict) and isinstance(before, dict) and before.keys() <= value.keys():
            added = {k: v for k, v in value.items() if k not in before or before[k] != v}
            parts.setdefault("add", {}).update({key: added} if added else {})
        elif value != before:
            parts.setdefault("set", {})[key] = value
    return {kind: part for kind, part in parts.items() if part}


def merged(old: Mapping[str, Any] | None, change: Mapping[str, Any]) -> dict[str, Any]:
    """The memory after a change.

    >>> merged({"w": 1, "by_id": {"3": 0.5}}, {"set": {"w": 2}, "add": {"by_id": {"7": 0.25}}})
    {'w': 2, 'by_id': {'3': 0.5, '7': 0.25}}
    """
    new = {**change.get("all", old or {}), **change.get("set", {})}
    return new | {key: {**new[key], **added} for key, added in change.get("add", {}).items()}


def check_header(recorded: Event, wanted: Event, path: object) -> None:
    """Refuse a journal that belongs to another pool, set of classes, strategy, seed or set of initial labels.

    >>> check_header({"seed": 1, "format": 1}, {"seed": 2, "format": 1}, "labels.jsonl")
    Traceback (most recent call last):
    badge.errors.JournalError: labels.jsonl belongs to another run: its seed is 1, yours is 2; use another journal
    """
    for field, value in wanted.items():
        if value is not None and recorded.get(field) != value:
            theirs, yours = short(recorded.get(field)), short(value)
            raise JournalError(
                f"{path} belongs to another run: its {field} is {theirs}, yours is {yours}; use another journal"
            )


def plain_ids(ids: Iterable[Any], length: int) -> list[int]:
    """Ids as Python ints, checked against the pool."""
    plain = []
    for value in _listed(ids, "ids"):
        try:
            id = operator.index(value)
        except TypeError:
            raise InputError(f"ids are whole numbers, positions in the pool; got {value!r}") from None
        if isinstance(value, bool) or not 0 <= id < length:
            raise InputError(f"id {value!r} is outside the pool of {length:,} examples")
        plain.append(id)
    return plain


def _listed(values: Any, what: str) -> list[Any]:
    """The values of a list, an array, a tensor or a column; one value alone is a mistake, a text above all."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(plain, str) or not isinstance(plain, Iterable):
        raise InputError(f"{what} are a list or an array, also where there is only one; got {values!r}")
    return list(plain)
