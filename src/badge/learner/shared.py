"""Events of several people at one loop: decisions, remarks, the test sample. How each changes the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from badge.journal import events as e
from badge.learner.classes import Code

if TYPE_CHECKING:
    from badge.learner.ledger import Ledger

SharedEvent = e.Decide | e.Remark | e.SetAside


def fold(ledger: Ledger, record: SharedEvent, codes: Sequence[Code] | None) -> None:
    """Fold one event in; `codes` None: it comes from a journal, and is checked here."""
    match record:
        case e.Decide():
            _decide(ledger, record, codes)
        case e.Remark():
            (id,) = ledger.ids.plain([record.id])
            if record.text is not None:
                ledger.remarks.setdefault(id, []).append((record.by or "", record.text))
            if record.flag is not None:
                (ledger.flagged.add if record.flag else ledger.flagged.discard)(id)
        case e.SetAside():
            ids = ledger.ids.plain(record.ids)
            ledger.test.update(dict.fromkeys(ids))
            ledger.pending.update(dict.fromkeys([id for id in ids if id not in ledger.labels], record.people))
            if record.people > 1:
                ledger.people.update(dict.fromkeys(ids, record.people))


def _decide(ledger: Ledger, record: e.Decide, codes: Sequence[Code] | None) -> None:
    ids = ledger.ids.plain(record.ids)
    for id, code in zip(ids, ledger.encode(ids, record.labels) if codes is None else codes, strict=True):
        ledger.skipped.pop(id, None)
        if id in ledger.people:
            ledger.decided.add(id)
        ledger.set(id, code)
