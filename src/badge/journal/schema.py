"""From JSON to the types of `events.py`, checked: unknown kinds, missing and unknown fields, values of a wrong type."""

from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from badge.journal.events import FORMAT, Event, JsonObject, Record

#: name of an event -> its type
KINDS: dict[str, type[Record]] = {kind.kind: kind for kind in Record.__subclasses__()}


def _types(hint: Any) -> tuple[type, ...]:
    """The exact types that a field may have; a JsonObject is a dict there."""
    if isinstance(hint, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _types(part))
    plain = get_origin(hint) or hint
    return (float, int) if plain is float else (plain,)


def _schema(kind: type[JsonObject]) -> tuple[frozenset[str], dict[str, frozenset[type]], dict[str, type[JsonObject]]]:
    """Required fields; the types that JSON gives for each field; the fields that are such objects."""
    hints = get_type_hints(kind)
    types = {field.name: _types(hints[field.name]) for field in fields(kind)}
    required = frozenset(field.name for field in fields(kind) if field.default is MISSING)
    parts = {name: one for name, kinds in types.items() for one in kinds if issubclass(one, JsonObject)}
    json = {name: frozenset(kinds) for name, kinds in types.items()}
    return required, json | {name: json[name] - {one} | {dict} for name, one in parts.items()}, parts


_SCHEMA = {kind: _schema(kind) for kind in (*KINDS.values(), *JsonObject.__subclasses__())}


def check(event: Event) -> None:
    """Refuse (ValueError) what is not an event of this schema.

    >>> check({"event": "tall", "ids": [1], "labels": [0]})
    Traceback (most recent call last):
    ValueError: an event of the unknown kind 'tall'
    """
    name = event.get("event")
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"an event of the unknown kind {name!r}")
    if event.get("format", FORMAT) != FORMAT:  # its fields may be others
        raise ValueError(f"has format {event['format']}; this version of badge reads format {FORMAT}")
    _check(KINDS[name], event, f"the event {name!r}")


def _check(kind: type[JsonObject], given: dict[str, Any], what: str) -> None:
    required, types, parts = _SCHEMA[kind]
    for field, value in given.items():
        allowed = types.get(field)
        if allowed is None:
            if field != "event" and not kind.open:
                raise ValueError(f"{what} has a field {field!r}, which this version does not know")
        elif type(value) not in allowed:
            known = " or ".join(sorted(kind.__name__ for kind in allowed if kind is not NoneType))
            raise ValueError(f"the field {field!r} of {what} is {value!r:.40}, not of type {known}")
        elif field in parts and value is not None:
            _check(parts[field], value, f"the field {field!r} of {what}")
    if missing := sorted(required - given.keys()):
        raise ValueError(f"{what} lacks the field {missing[0]!r}")


ObjectType = TypeVar("ObjectType", bound=JsonObject)


def typed(event: Event) -> Record:
    """The record of an event that was checked.

    >>> typed({"event": "tell", "ids": [3], "labels": ["cat"], "by": "ann"}).by
    'ann'
    """
    return object_of(KINDS[event["event"]], event)


def object_of(kind: type[ObjectType], given: dict[str, Any]) -> ObjectType:
    """A JSON object, which was checked, as its type."""
    _, types, parts = _SCHEMA[kind]
    held = {field: value for field, value in given.items() if field in types}
    for field, part in parts.items():
        if held.get(field) is not None:
            held[field] = object_of(part, held[field])
    return kind(**held)
