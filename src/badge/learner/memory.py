"""The memory of a strategy, written down as what changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["changes", "merged"]


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
