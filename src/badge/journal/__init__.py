"""Append-only JSON lines: what was asked and told, and what a run measured."""

from badge.journal.file import Event, Journal, parse, read

__all__ = ["Event", "Journal", "parse", "read"]
