"""What is wrong with a damaged journal, and a sound one made of what is right with it. Nothing is deleted."""

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from badge.core.names import path_of
from badge.errors import JournalError
from badge.journal.events import Event, Lost, now
from badge.journal.last import Last, read_last
from badge.journal.lines import encode, scan, sound_parts
from badge.journal.reading import bytes_of, locked, rewrite

HALF = "a text holds half of a character; `badge journal repair` puts a question mark in its place"


@dataclass(frozen=True)
class Repair:
    """What a repair did: the number of events kept, the lines that it could not save, and the copy of the damaged file."""

    kept: int
    lost: list[int]
    aside: Path | None  #: None where nothing was wrong

    def __str__(self) -> str:
        if self.aside is None:
            return f"{self.kept:,} events, nothing to repair"
        lines = f"lost: line {', '.join(map(str, self.lost))}" if self.lost else "no line was lost"
        return f"{self.kept:,} events kept, {lines}; the file as it was is {self.aside}"


def examine(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """The first line that is wrong and why, as a list of at most one; a torn last write is wrong too.

    Args:
        path: the journal.

    Returns:
        [(line number, what is wrong)], or [] for a sound journal.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> _ = path.write_text("not a journal\\n")
    >>> examine(path)
    [(1, 'a line without number and checksum')]
    """
    file = path_of(path, "a journal")
    beside = read_last(file)
    found = scan(bytes_of(file), beside)
    if found.torn_bytes and not found.problem:
        return [(len(found.events) + 1, f"the last write was interrupted after {found.torn_bytes} bytes")]
    if not found.problem and (halves := half_characters(found.events)):
        return [(halves[0], HALF)]
    return [found.problem] if found.problem else []


def half_characters(events: Iterable[Event]) -> list[int]:
    """Numbers of events with half of a surrogate pair in a text: older labelling pages let such names in.

    >>> half_characters([{"event": "tell", "by": "ann"}, {"event": "tell", "by": "half \\ud800"}])
    [2]
    """
    return [number for number, event in enumerate(events, start=1) if _mended(event) != event]


def _mended(event: Event) -> Event:
    """The event with a question mark in place of half a character."""
    text = json.dumps(event, ensure_ascii=False)
    mended: Event = event if text.isascii() else json.loads(text.encode("utf-8", "replace"))
    return mended


def repair(path: str | os.PathLike[str]) -> Repair:
    """Keep every line that is sound, in the order of their numbers; the file as it was stays beside it.

    Lines that were doubled or moved find their place by their number. An event of kind `lost` stands in place of a line
    that is missing or changed, so that the other lines keep their numbers. Labels told in a lost line must be told again.

    Args:
        path: the journal.

    Returns:
        A `Repair`: events kept, lines lost, and where the damaged file is now.

    Raises:
        JournalError: no line is sound, or another process has it open.

    >>> import pathlib, tempfile
    >>> from badge.journal import Journal
    >>> from badge.journal.events import Skip
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Skip(ids=[1]), Skip(ids=[2]))
    >>> _ = path.write_bytes(path.read_bytes().replace(b"[1]", b"[7]"))
    >>> print(str(repair(path)).split(";")[0], [record.kind for record in Journal(path).records])
    1 events kept, lost: line 1 ['lost', 'skip']
    """
    with locked(path) as (file, data):
        beside = read_last(file)
        found = scan(data, beside)
        if not found.problem and not found.torn_bytes and not half_characters(found.events):
            return Repair(len(found.events), [], None)
        sound, last = _salvage(data)
        if not sound:
            raise JournalError(f"{file} holds no sound line: restore it from a copy, or use another journal")
        if isinstance(beside, Last) and beside.problem(data, len(found.events)):
            last = max(last, beside.number)
        aside = _kept_aside(file, data)
        lost = [n for n in range(1, last + 1) if n not in sound]
        stand_in = Lost(reason="missing or changed", aside=aside.name, at=now()).event()
        lines = [encode(n, _mended(sound.get(n, stand_in))) for n in range(1, last + 1)]
        rewrite(file, lines)
    return Repair(len(sound), lost, aside)


def _salvage(data: bytes) -> tuple[dict[int, Event], int]:
    """Sound events by number, and the number of the last line that had been written in full."""
    sound: dict[int, Event] = {}
    damaged = 0  # complete lines since the last sound one
    *lines, tail = data.split(b"\n")
    for line in lines:
        found = sound_parts(line)
        sound = dict(found) | sound
        damaged = 0 if found else damaged + 1
    sound = dict(sound_parts(tail)) | sound
    return sound, max(sound, default=0) + damaged


def _kept_aside(file: Path, data: bytes) -> Path:
    """A copy of the file under a new name beside it, readable by the same people."""
    for n in range(10**6):
        aside = file.with_name(f"{file.name}.damaged{n or ''}")
        with suppress(FileExistsError), aside.open("xb") as copy:
            shutil.copystat(file, aside)
            copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
            return aside
    raise JournalError(f"{file} has a million damaged copies beside it: delete some")
