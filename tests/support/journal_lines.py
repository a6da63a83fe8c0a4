"""Journals of events that are given as dictionaries, also wrong ones; a text is written as it is. Not a test module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from badge.journal.lines import encode

__all__ = ["write_journal"]


def write_journal(path: Path, *events: Any) -> None:
    """A line with number and checksum per event; what is not a dictionary is written as it is, without a newline."""
    lines = [encode(n, event) if isinstance(event, dict) else str(event).encode() for n, event in enumerate(events, 1)]
    path.write_bytes(b"".join(lines))
