"""Opening a journal: the ledger comes from its events, or from the state beside it. A journal of other settings is refused.

Classes and strategy may have changed since it began.
"""

import inspect
import re
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from badge.core.catalog import STRATEGIES
from badge.errors import JournalError
from badge.journal import events as e
from badge.journal.events import Described, Id, Label
from badge.journal.schema import object_of, typed
from badge.learner.classes import Classes, short
from badge.learner.ids import AnyIds, Ids
from badge.learner.ledger import Ledger
from badge.models.digest import value_digest
from badge.strategies.protocol import unwrapped

#: fields whose names are not plain words
IN_WORDS = {"classes": "set of classes", "initial": "set of initial labels", "first": "strategy of the first batch"}
#: what is written around the items of a container
AROUND: dict[type, str] = {dict: "{%s}", list: "[%s]", tuple: "(%s)", set: "{%s}", frozenset: "frozenset({%s})"}
#: what JSON holds as it is, objects of the state that are no events, and fields of a ledger that are not in the state
_PLAIN = {type(None), bool, int, float, str}
_OBJECTS: dict[str, type[e.JsonObject]] = {kind.__name__: kind for kind in (e.PoolId, e.Stop)}
_APART = ("ids", "classes", "busy")


@dataclass(frozen=True)
class Settings:
    """What a caller says about a loop, in the form in which a journal's header holds it."""

    classes: int | list[Label]
    strategy: Described
    seed: int | str | None  #: None: the recorded one, or a fresh one; "recorded": the recorded one, or 0
    initial: e.Initial | None  #: None: the recorded ones, or none
    multilabel: bool
    first: Described | None


def header_of(records: Iterable[e.Record], path: object, shared: bool) -> e.Header | None:
    """The header of a journal; None if it is still to be written."""
    others: set[type[e.Record]] = set()
    for record in records:
        if isinstance(record, e.Header):
            return record
        others.add(type(record))
    if e.Lost in others:
        way_out = "`badge journal export` gives the labels in it, `badge journal import` takes them into a new one"
        raise JournalError(f"{path} has lost its first line, which says what it belongs to: {way_out}")
    if others and not shared:
        raise JournalError(f"{path} holds something else than a learner's journal: use another file")
    return None


def ledger_of(header: e.Header, ids: Ids, records: Iterable[e.Record], path: object) -> Ledger:
    ledger = Ledger(ids, Classes(header.classes, header.multilabel))
    ledger.replay(records, path)
    return ledger


def recorded_ledger(records: Sequence[e.Record], path: object) -> Ledger:
    """The ledger of a journal without its pool."""
    header = header_of(records, path, shared=False)
    if header is None:
        raise JournalError(f"{path} is empty")
    pools = [record.pool for record in records if isinstance(record, e.Header | e.NewPool)]
    if pools[-1].sample is not None:
        return ledger_of(header, AnyIds(pools[-1].sample), records, path)
    length = max(pool.length for pool in pools)
    if any(isinstance(record, e.Lost) for record in records):  # the event that the pool has grown may be lost
        ids = [id for record in records for id in getattr(record, "ids", ()) if isinstance(id, int)]
        length = max([length, *(id + 1 for id in ids)])
    return ledger_of(header, Ids(length), records, path)


def mentioned(records: Iterable[e.Record]) -> set[Id]:
    """Every id that a journal speaks of."""
    found: set[Id] = set()
    for record in records:
        found.update(getattr(record, "ids", ()))
        if isinstance(record, e.Header):
            found.update(record.initial.ids)
        elif isinstance(record, e.Relabel | e.Remark):
            found.add(record.id)
        elif isinstance(record, e.Ask) and record.stop is not None:
            found.update(record.stop.ids)
    return found


def known_to(ledger: Ledger) -> set[Id]:
    """Every id that a ledger speaks of."""
    tables = (ledger.labels, ledger.pending, ledger.skipped, ledger.people, ledger.withdrawn, ledger.stop, ledger.test)
    return {id for table in tables for id in table} | {id for _, ask in ledger.asks for id in ask.ids}


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


def check_settings(ledger: Ledger, settings: Settings, path: object) -> None:
    """Refuse a journal of another seed, set of initial labels, set of classes or strategy.

    Classes may be the journal's first ones, or these with some that were added since. The strategy may be the first one or
    the one in use now.
    """
    header = ledger.header
    assert header is not None
    for field in ("seed", "initial", "multilabel"):
        theirs, yours = getattr(header, field), getattr(settings, field)
        if yours not in (None, "recorded") and theirs != yours:
            _refuse(path, field, theirs, yours)
    picked = any(ask.select_seconds is not None for _, ask in ledger.asks)
    if not picked and header.first != settings.first:  # once a model has picked, `first` has no effect
        _refuse(path, "first", header.first, settings.first)
    first, wanted = (Classes(given).names for given in (header.classes, settings.classes))
    same_kind = isinstance(settings.classes, int) == isinstance(header.classes, int)
    if not same_kind or len(wanted) < len(first) or wanted != ledger.classes.names[: len(wanted)]:
        _refuse(path, "classes", ledger.classes.header, settings.classes, "learner.add_class adds one")
    now, yours = ledger.strategy, settings.strategy
    if yours != now and not (yours == header.strategy and now in STRATEGIES):
        _refuse(path, "strategy", now, yours, "learner.use changes it")


def current_strategy(ledger: Ledger, given: Any, path: object) -> Any:
    """The strategy in force: the one given, or the one of the last `use` where the journal's first is given."""
    if describe(given) == ledger.strategy:
        return given
    began, now = in_words(describe(given)), in_words(ledger.strategy)
    warnings.warn(f"{path} began with {began} and uses {now} since: it keeps that", stacklevel=3)
    return ledger.strategy


def describe(strategy: Any) -> Described:
    """A strategy for a journal: its name, or its class, function or method and the parameters of that or of its object."""
    strategy, places, options = unwrapped(strategy)
    parameters = {str(place): value for place, value in enumerate(places)} | options
    if isinstance(strategy, str):
        return str(strategy)  # numpy's too
    kind = strategy if hasattr(strategy, "__qualname__") else type(strategy)
    path = f"{kind.__module__}.{kind.__qualname__}"
    owner = strategy.__self__ if inspect.ismethod(strategy) else strategy
    if not hasattr(owner, "__qualname__"):
        with suppress(ValueError):  # a class of C may not tell its arguments
            taken = inspect.signature(type(owner)).parameters
            parameters = {name: getattr(owner, name) for name in taken if hasattr(owner, name)} | parameters
    if kind is strategy and not parameters:
        return path
    return {"class": path, "parameters": {name: _as_text(value) for name, value in parameters.items()}}


def in_words(said: Any) -> Any:
    """A strategy of a journal as people write it; other values as plain ones.

    >>> in_words({"class": "badge.strategies.coverage.probcover", "parameters": {"delta": "0.5"}})
    'badge.strategies.coverage.probcover(delta=0.5)'
    """
    if isinstance(said, dict) and said.keys() == {"class", "parameters"}:
        return f"{said['class']}({parameters_in_words(said)})"
    return said.plain() if isinstance(said, e.Initial) else said


def parameters_in_words(said: Any) -> str:
    """The parameters of a strategy of a journal: `delta=0.5, beta=2`."""
    return ", ".join(f"{name}={value}" for name, value in said["parameters"].items())


def _as_text(value: Any) -> str:
    """A parameter as text: the same in every process (no addresses, sets in order), and another for other numbers.

    >>> _as_text({"by": [len, {"b", "a"}], "delta": np.float64(0.5)})
    "{'by': [builtins.len, {'a', 'b'}], 'delta': 0.5}"
    """
    kind = type(value)
    if kind in AROUND and value:
        pairs = value.items() if kind is dict else ()
        items = [f"{_as_text(key)}: {_as_text(held)}" for key, held in pairs] or [_as_text(one) for one in value]
        inside = ", ".join(sorted(items) if kind in (set, frozenset) else items)
        return AROUND[kind] % (f"{inside}," if kind is tuple and len(items) == 1 else inside)
    unshown: Any = object.__repr__
    if isinstance(value, partial) or hasattr(value, "__qualname__") or is_dataclass(value) or kind.__repr__ is unshown:
        return str(in_words(describe(value)))
    if not hasattr(value, "__array__"):
        return re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
    if (shape := tuple(np.shape(value))) == ():
        return _as_text(value.item())
    # the repr of an array rounds, and leaves the middle of a large one out
    array = value if isinstance(value, Tensor) else np.asarray(value)
    content = _as_text(array.tolist()) if array.dtype == object else array
    return f"{kind.__name__}{shape} {value_digest(content).hex()[:16]}"


def _refuse(path: object, field: str, theirs: Any, yours: Any, in_python: str = "") -> None:
    theirs, yours = (short(in_words(value)) for value in (theirs, yours))
    differ = f"its {IN_WORDS.get(field, field)} is {theirs}, yours is {yours}"
    raise JournalError(f"{path} belongs to another run: {differ}; use another journal", in_python=in_python)
