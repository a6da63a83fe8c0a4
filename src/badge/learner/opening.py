"""Opening a journal: is it the one that the caller means? Classes and strategy may have changed since it began."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from badge.core.catalog import STRATEGIES
from badge.errors import InputError, JournalError
from badge.journal import events as e
from badge.journal.events import Event
from badge.learner.classes import Classes, short
from badge.learner.ids import AnyIds, Ids
from badge.learner.ledger import Ledger

__all__ = ["check_header", "current_strategy", "describe", "header_of", "ledger_of", "recorded_ledger"]


def header_of(events: list[Event], path: object, shared: bool) -> e.Header | None:
    """The header in a journal; None where it is still to be written."""
    for event in events:
        if event["event"] == "learner":
            found = e.typed(event)
            assert isinstance(found, e.Header)
            return found
    if any(event["event"] == "lost" for event in events):
        raise JournalError(
            f"{path} has lost its first line, which says whose it is: `badge journal export` gives the labels in it, and "
            "`badge journal import` takes them into a new one"
        )
    if events and not shared:
        raise JournalError(f"{path} holds something else than a learner's journal: use another file")
    return None


def ledger_of(header: e.Header, ids: Ids, events: list[Event], path: object) -> Ledger:
    """The ledger of a whole journal."""
    ledger = Ledger(ids, Classes(header.classes, header.multilabel))
    ledger.replay(events, path)
    return ledger


def recorded_ledger(events: list[Event], path: object) -> Ledger:
    """The ledger of a journal whose pool is not at hand."""
    header = header_of(events, path, shared=False)
    if header is None:
        raise JournalError(f"{path} is empty")
    if "sample" in header.pool:
        return ledger_of(header, AnyIds(header.pool["sample"]), events, path)
    lengths = [event["pool"]["length"] for event in events if event["event"] in ("learner", "pool")]
    if any(event["event"] == "lost" for event in events):  # that the pool has grown may be lost
        lengths += [id + 1 for event in events for id in event.get("ids", []) if isinstance(id, int)]
    return ledger_of(header, Ids(max(lengths)), events, path)


def check_header(ledger: Ledger, wanted: Mapping[str, Any], path: object) -> None:
    """Refuse a journal of another seed, set of initial labels, set of classes or strategy; None is not compared.

    Classes may be those that the journal began with, or those with some that were added since; the strategy that which it
    began with or uses now.
    """
    header = ledger.header
    assert header is not None
    for field in ("seed", "initial", "multilabel"):
        theirs, yours = getattr(header, field), wanted[field]
        if yours is not None and theirs != yours:
            _refuse(path, field, theirs, yours)
    picked = any(ask.select_seconds is not None for _, ask in ledger.asks)
    if not picked and header.first != wanted["first"]:  # once a model has picked, what picks before one is no matter
        _refuse(path, "first", header.first, wanted["first"])
    theirs, yours = ledger.classes.header, wanted["classes"]
    if isinstance(theirs, int) and isinstance(yours, int) and isinstance(header.classes, int):
        fits = header.classes <= yours <= theirs
    else:
        fits = isinstance(theirs, list) and isinstance(yours, list) and isinstance(header.classes, list)
        fits = fits and theirs[: len(yours)] == yours and len(yours) >= len(header.classes)  # type: ignore[index, arg-type]
    if not fits:
        _refuse(path, "classes", theirs, yours, "; learner.add_class adds one")
    now, first, yours = ledger.strategy, header.strategy, wanted["strategy"]
    if yours != now and not (yours == first and now in STRATEGIES):
        _refuse(path, "strategy", now, yours, "; learner.use changes it")


def current_strategy(ledger: Ledger, given: Any) -> Any:
    """The strategy in force: the one given, or the one of the last `use` where the journal's first is given."""
    return given if describe(given) == ledger.strategy else ledger.strategy


def describe(strategy: Any) -> str | dict[str, Any]:
    """A strategy for a journal: its name, or its class and parameters."""
    if isinstance(strategy, str):
        return str(strategy)  # numpy's too
    if not callable(strategy):
        raise InputError(f"a strategy is a name or a callable (outputs, k, rng, labeled=None), not {strategy!r}")
    if hasattr(strategy, "__qualname__"):
        return f"{strategy.__module__}.{strategy.__qualname__}"
    kind = type(strategy)
    names = [name for name in inspect.signature(kind).parameters if hasattr(strategy, name)]
    parameters = {name: repr(getattr(strategy, name)) for name in names}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", "parameters": parameters}


def _refuse(path: object, field: str, theirs: Any, yours: Any, way_out: str = "") -> None:
    raise JournalError(
        f"{path} belongs to another run: its {field} is {short(theirs)}, yours is {short(yours)}; use another journal"
        f"{way_out}"
    )
