"""The state of a ledger as JSON and back, for the snapshot beside a long journal."""

from typing import Any

from badge.journal import events as e
from badge.journal.schema import object_of, typed
from badge.learner.classes import Classes
from badge.learner.ids import Ids
from badge.learner.ledger import Ledger

_PLAIN = {type(None), bool, int, float, str}
_OBJECTS: dict[str, type[e.JsonObject]] = {kind.__name__: kind for kind in (e.PoolId, e.Stop)}
_APART = ("ids", "classes", "busy")


def state_of(ledger: Ledger) -> dict[str, Any]:
    """Everything that a ledger holds."""
    held = {name: _frozen(value) for name, value in vars(ledger).items() if name not in _APART}
    return {**held, "classes": ledger.classes.names}


def restored(state: dict[str, Any], ids: Ids) -> Ledger | None:
    """The ledger of a state; None if it is of another version of badge."""
    try:
        header = _thawed(state["header"])
        ledger = Ledger(ids, Classes(header.classes, header.multilabel))
        for name in state["classes"]:
            ledger.classes.add(name)
        held = {name: _thawed(value) for name, value in state.items() if name != "classes"}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if held.keys() != vars(ledger).keys() - set(_APART):
        return None
    vars(ledger).update(held)
    return ledger


def _frozen(value: Any) -> Any:
    """JSON has lists and objects with text keys; other kinds are written as an object of one key that names the kind."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {"dict": [_frozen(list(value)), _frozen(list(value.values()))]}
    if isinstance(value, list | tuple | set):
        items = list(value)
        items = items if set(map(type, items)) <= _PLAIN else [_frozen(item) for item in items]
        return items if isinstance(value, list) else {type(value).__name__: items}
    if isinstance(value, e.Record):
        return {"record": value.event()}
    return {type(value).__name__: value.plain()}


def _thawed(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return value if set(map(type, value)) <= _PLAIN else [_thawed(item) for item in value]
    ((kind, held),) = value.items()
    if kind == "dict":
        keys, values = map(_thawed, held)
        return dict(zip(keys, values, strict=True))
    if kind in ("tuple", "set"):
        return (tuple if kind == "tuple" else set)(_thawed(held))
    return typed(held) if kind == "record" else object_of(_OBJECTS[kind], held)
