"""The memory of a strategy, written down as what changed in it."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

from badge.errors import InputError
from badge.journal.events import Memory


def plain_state(strategy: Any) -> dict[str, Any]:
    """What a strategy remembers, as a journal gives it back: text keys, lists, plain numbers."""
    state = strategy.state()
    try:
        found: dict[str, Any] = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"state() of {type(strategy).__name__} does not fit into JSON: {error}") from None
    return found


def changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Memory:
    """The part of a strategy's memory to write down: `merged(old, changes(old, new)) == new`.

    A memory grows with the labels (albl keeps a number for each). Written whole with every batch, it would make the
    journal grow with their square. So only the new and changed entries of its tables are written, under "add".

    >>> changes({"w": 1, "by_id": {"3": 0.5}}, {"w": 1, "by_id": {"3": 0.5, "7": 0.25}}).plain()
    {'add': {'by_id': {'7': 0.25}}}
    """
    if old is None or old.keys() != new.keys():
        return Memory(all=dict(new))
    to_set: dict[str, Any] = {}
    to_add: dict[str, Any] = {}
    for key, value in new.items():
        before = old[key]
        if isinstance(value, dict) and isinstance(before, dict) and before.keys() <= value.keys():
            added = {k: v for k, v in value.items() if k not in before or before[k] != v}
            to_add |= {key: added} if added else {}
        elif value != before:
            to_set[key] = value
    return Memory(set=to_set or None, add=to_add or None)


def merged(old: Mapping[str, Any] | None, change: Memory) -> dict[str, Any]:
    """The memory after a change.

    >>> merged({"w": 1, "by_id": {"3": 0.5}}, Memory(set={"w": 2}, add={"by_id": {"7": 0.25}}))
    {'w': 2, 'by_id': {'3': 0.5, '7': 0.25}}
    """
    new = {**(old or {} if change.all is None else change.all), **(change.set or {})}
    return new | {key: {**new[key], **added} for key, added in (change.add or {}).items()}


def restore(strategy: Any, memory: dict[str, Any] | None, blank: dict[str, Any]) -> None:
    """Give a strategy its memory back; `blank` if the memory is of another version of the strategy."""
    try:
        strategy.restore(memory or blank)
    except (KeyError, TypeError, ValueError) as error:
        what = f"what the journal remembers for {type(strategy).__name__} is of another version of it ({error!r})"
        warnings.warn(f"{what}: it starts without memory, and the labels are all there", stacklevel=4)
        strategy.restore(blank)
