"""The events of a journal, as types: what each kind holds. The one place where the schema stands, and its FORMAT.

A loop (`badge.ActiveLearner`) writes

    learner   once, first: pool, classes, strategy, seed, the labels that existed
    ask       a batch                          tell      labels of it, or of others (`unasked`)
    relabel   a label corrected                skip, unskip, release
    class     a class added                    use       another strategy from here on
    pool      the pool has grown               note      something that was noticed, in words

and a run of an experiment adds `start`, `round`, `resume`, `failed` and `end`. The file itself adds `format` where a journal
of format 1 goes on in format 2, and `lost` where a repair could not save a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timezone
from types import NoneType, UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

__all__ = [
    "FORMAT",
    "FORMATS",
    "KINDS",
    "AddClass",
    "Ask",
    "End",
    "Event",
    "Failed",
    "Header",
    "Id",
    "Label",
    "Lost",
    "NewFormat",
    "NewPool",
    "Note",
    "Record",
    "Relabel",
    "Release",
    "Resume",
    "Round",
    "Skip",
    "Start",
    "Tell",
    "Unskip",
    "Use",
    "check",
    "now",
    "typed",
]

#: the format that is written, and those that are read
FORMAT = 2
FORMATS = (1, 2)

#: an event as it is stored, without the number and the checksum of its line
Event = dict[str, Any]
#: what an example is called: its position, or an id of one's own
Id = int | str
#: what a class is called
Label = int | str


@dataclass(frozen=True, kw_only=True)
class Record:
    """One event. Fields that hold their default are not written."""

    kind: ClassVar[str]
    #: whether there may be fields that this version does not know: of measurements yes, of labels no
    open: ClassVar[bool] = False

    at: str | None = None  #: when, UTC

    def event(self) -> Event:
        own = [field for field in fields(self) if field.name != "at"]
        held = {field.name: getattr(self, field.name) for field in own if getattr(self, field.name) != field.default}
        return {"event": self.kind, **held, **({} if self.at is None else {"at": self.at})}


@dataclass(frozen=True, kw_only=True)
class Header(Record):
    kind = "learner"
    format: int
    pool: dict[str, Any]
    classes: int | list[Any]
    strategy: str | dict[str, Any]
    seed: int
    initial: dict[str, Any]
    multilabel: bool = False
    first: str | dict[str, Any] | None = None  #: what picks while there is no model; None: a uniform draw


@dataclass(frozen=True, kw_only=True)
class Ask(Record):
    kind = "ask"
    round: int
    ids: list[Id]
    of: int = 1  #: how many people are to label each
    k: int | None = None  #: how many were asked for, where some got a label or were skipped meanwhile
    labels: int | None = None  #: the last event that was looked at, where others came in meanwhile
    uniform: str | None = None  #: why they were drawn uniformly, where no model could be trained
    predicted: list[Any] | None = None  #: what the model took them for
    stop: dict[str, Any] | None = None  #: how the predictions on the stop set changed
    memory: dict[str, Any] | None = None  #: what changed in the memory of the strategy
    select_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Tell(Record):
    kind = "tell"
    ids: list[Id]
    labels: list[Any]
    by: str | None = None
    unasked: bool = False
    source: str | None = None  #: the file that they were imported from


@dataclass(frozen=True, kw_only=True)
class Relabel(Record):
    kind = "relabel"
    id: Id
    label: int | str | list[Any]
    by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Skip(Record):
    kind = "skip"
    ids: list[Id]
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Unskip(Record):
    kind = "unskip"
    ids: list[Id]


@dataclass(frozen=True, kw_only=True)
class Release(Record):
    kind = "release"
    ids: list[Id]


@dataclass(frozen=True, kw_only=True)
class AddClass(Record):
    kind = "class"
    name: Label


@dataclass(frozen=True, kw_only=True)
class Use(Record):
    kind = "use"
    strategy: str | dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class NewPool(Record):
    kind = "pool"
    pool: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Note(Record):
    kind = "note"
    text: str


@dataclass(frozen=True, kw_only=True)
class NewFormat(Record):
    kind = "format"
    format: int
    lines: int  #: how many lines of the old format stand before it
    digest: str  #: of those lines


@dataclass(frozen=True, kw_only=True)
class Lost(Record):
    kind = "lost"
    reason: str
    aside: str  #: the file that holds what was here


@dataclass(frozen=True, kw_only=True)
class Start(Record):
    kind = "start"
    open = True
    cell: dict[str, Any]
    format: int = 1
    data: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Round(Record):
    kind = "round"
    open = True
    round: int
    labels: int
    test_accuracy: float


@dataclass(frozen=True, kw_only=True)
class Resume(Record):
    kind = "resume"
    open = True


@dataclass(frozen=True, kw_only=True)
class Failed(Record):
    kind = "failed"
    error: str


@dataclass(frozen=True, kw_only=True)
class End(Record):
    kind = "end"
    open = True
    reason: str | None = None


_TYPES: tuple[type[Record], ...] = (
    Header, Ask, Tell, Relabel, Skip, Unskip, Release, AddClass, Use, NewPool, Note,
    NewFormat, Lost, Start, Round, Resume, Failed, End,
)  # fmt: skip
KINDS: dict[str, type[Record]] = {kind.kind: kind for kind in _TYPES}


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _allowed(hint: Any) -> tuple[type, ...] | None:
    """The exact types that JSON gives for a field; None for any."""
    if hint is Any:
        return None
    if isinstance(hint, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _allowed(part) or ())
    plain = get_origin(hint) or hint
    return (float, int) if plain is float else (plain,)


def _schema(kind: type[Record]) -> tuple[frozenset[str], dict[str, tuple[type, ...] | None]]:
    hints = {field.name: _allowed(get_type_hints(kind)[field.name]) for field in fields(kind)}
    return frozenset(field.name for field in fields(kind) if field.default is MISSING), hints


_SCHEMA = {name: _schema(kind) for name, kind in KINDS.items()}


def check(event: Mapping[str, Any]) -> None:
    """Refuse (ValueError) what is not an event of this schema.

    >>> check({"event": "tall", "ids": [1], "labels": [0]})
    Traceback (most recent call last):
    ValueError: an event of the unknown kind 'tall'
    """
    name = event.get("event")
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(f"an event of the unknown kind {name!r}")
    required, hints = _SCHEMA[name]
    missing = sorted(required - event.keys())
    if missing:
        raise ValueError(f"the event {name!r} lacks the field {missing[0]!r}")
    for field, value in event.items():
        if field == "event" or (field not in hints and KINDS[name].open):
            continue
        if field not in hints:
            raise ValueError(f"the event {name!r} has a field {field!r}, which this version does not know")
        allowed = hints[field]
        if allowed is not None and type(value) not in allowed:
            known = " or ".join(kind.__name__ for kind in allowed if kind is not NoneType)
            raise ValueError(f"the field {field!r} of the event {name!r} is {value!r:.40}, not of type {known}")
    if "format" in event and event["format"] not in FORMATS:
        raise ValueError(f"has format {event['format']}; this version of badge reads formats 1 and 2")


def typed(event: Event) -> Record:
    """A stored event as its type.

    >>> typed({"event": "tell", "ids": [3], "labels": ["cat"], "by": "ann"}).by
    'ann'
    """
    check(event)
    kind = KINDS[event["event"]]
    known = _SCHEMA[event["event"]][1]
    return kind(**{field: value for field, value in event.items() if field in known})
