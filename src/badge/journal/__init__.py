"""Append-only JSON lines: what was asked and told, and what a run measured."""

from badge.journal.events import FORMAT, Event
from badge.journal.file import InMemory, Journal
from badge.journal.lines import read, records_of
from badge.journal.repair import Repair, erase, repair

__all__ = ["FORMAT", "Event", "InMemory", "Journal", "Repair", "erase", "read", "records_of", "repair"]
