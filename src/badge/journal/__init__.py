"""Append-only JSON lines: what was asked and told, and what a run measured."""

from badge.journal.erase import erase
from badge.journal.events import FORMAT, Event
from badge.journal.file import Journal
from badge.journal.in_memory import InMemory
from badge.journal.reading import first_and_last, read, records_of
from badge.journal.repair import Repair, examine, repair

__all__ = [
    "FORMAT", "Event", "InMemory", "Journal", "Repair", "erase", "examine", "first_and_last", "read", "records_of",
    "repair",
]  # fmt: skip
