"""Examples that leave a pool and may come back: what a journal says about them, and how the ledger changes.

With ids from the caller, an example that the journal knows and the pool no longer has is withdrawn. It is neither asked nor
trained on. Its label stays in the journal (`badge journal erase` takes it out), and counts again if the example comes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from badge.journal import events as e
from badge.journal.events import Id

if TYPE_CHECKING:
    from badge.learner.ledger import Ledger


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


def fold(ledger: Ledger, record: e.Withdraw | e.Return) -> None:
    for id in record.ids:
        if isinstance(record, e.Withdraw):
            ledger.withdrawn[id] = ledger.labels.pop(id, None)
            for those in (ledger.pending, ledger.skipped, ledger.stop):
                those.pop(id, None)
        elif (code := ledger.withdrawn.pop(id, None)) is not None:
            ledger.labels[id] = code
    ledger.revision = ledger.number
