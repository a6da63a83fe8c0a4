"""What a learner without a journal writes to."""

from typing import Any

from badge.journal.events import Record
from badge.journal.snapshot import KeptState


class InMemory:
    """The calls of a journal; nothing is on disk."""

    path = None
    closed = False
    snapshot: KeptState | None = None

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, *records: Record) -> None:
        self.records += records

    def check_writable(self) -> None: ...

    def settle(self) -> None: ...

    def keep(self, state: dict[str, Any], events: int) -> None: ...

    def close(self) -> None: ...
