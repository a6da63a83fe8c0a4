"""A damaged journal made sound, and examples taken out of a journal: both rewrite it whole."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from badge.core.names import path_of
from badge.core.writing import lock_file, replacing, sync_folder, writing_to
from badge.errors import InputError, JournalError
from badge.journal import events as e
from badge.journal.events import Event, Id, Lost, now
from badge.journal.last import Last, digest, forget, read_last, write_last
from badge.journal.lines import bytes_of, encode, parse, scan, sound_parts
from badge.journal.schema import typed
from badge.journal.snapshot import STATE


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[tuple[Path, bytes]]:
    """A journal that is locked for the time of the block, and its bytes; for a link, the file it points to."""
    file = Path(os.path.realpath(path_of(path, "a journal")))
    if not file.is_file():
        bytes_of(file)  # says what is wrong
    with writing_to(file), file.open("r+b") as handle:
        if not lock_file(handle.fileno()):
            raise JournalError(f"the journal {file} is open for writing: close that learner or run first")
        yield file, handle.read()


def rewrite(file: Path, lines: Sequence[bytes], last: bool = True) -> None:
    """Replace the lines of a locked journal; with `last`, write the file beside it too."""
    with replacing(file, binary=True) as output:
        output.writelines(lines)
    sync_folder(file.parent)
    if last:
        write_last(file, Last(digest(lines[0][:-1]), len(lines), digest(lines[-1][:-1])))


@dataclass(frozen=True)
class Repair:
    """The result of a repair: the number of events kept, the numbers of the lines lost, and the copy of the damaged file."""

    kept: int
    lost: list[int]
    aside: Path | None  #: None if nothing was wrong

    def __str__(self) -> str:
        if self.aside is None:
            return f"{self.kept:,} events, nothing to repair"
        lines = f"lost: line {', '.join(map(str, self.lost))}" if self.lost else "no line was lost"
        return f"{self.kept:,} events kept, {lines}; the file as it was is {self.aside}"


def repair(path: str | os.PathLike[str]) -> Repair:
    """Repair a damaged journal: keep every sound line, and keep a copy of the damaged file beside it.

    Lines are sorted by their number, and doubled lines are removed. An event `lost` replaces each line that is missing or
    changed, so the other lines keep their numbers. You must tell the labels of lost lines again.

    Args:
        path: the file of the journal.

    Returns:
        A `Repair`: the number of events kept, the lines lost, and the path of the damaged file.

    Raises:
        JournalError: no line is sound, or another process has the journal open.

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
        if not found.problem and not found.torn_bytes:
            return Repair(len(found.events), [], None)
        sound, last = _salvage(data)
        if not sound:
            raise JournalError(f"{file} holds no sound line: restore it from a copy, or use another journal")
        if isinstance(beside, Last) and beside.problem(data, len(found.events)):
            last = max(last, beside.number)
        aside = _kept_aside(file, data)
        lost = [n for n in range(1, last + 1) if n not in sound]
        stand_in = Lost(reason="missing or changed", aside=aside.name, at=now()).event()
        lines = [encode(n, sound.get(n, stand_in)) for n in range(1, last + 1)]
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
    names = (file.with_name(f"{file.name}.damaged{n or ''}") for n in count())
    aside = next(path for path in names if not os.path.lexists(path))
    with aside.open("xb") as copy:
        shutil.copystat(file, aside)
        copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())
    return aside


def erase(path: str | os.PathLike[str], ids: Iterable[Id]) -> int:
    """Erase examples from a journal.

    The journal is rewritten, and events keep their numbers. An event about erased examples only becomes `erased`, and an
    event `erased` at the end holds the number of examples. Copies of the journal are not changed.

    Args:
        path: the file of the journal.
        ids: the ids to erase.

    Returns:
        The number of events that changed.

    Raises:
        InputError: the journal holds none of these ids.
        JournalError: the journal is damaged, or another process has it open.

    >>> import pathlib, tempfile
    >>> from badge.journal import Journal, read
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(e.Tell(ids=["ann.png", "ben.png"], labels=["cat", "dog"]), e.Relabel(id="ann.png", label="dog"))
    >>> erase(path, ["ann.png"]), [event for event in read(path)][:2]
    (2, [{'event': 'tell', 'ids': ['ben.png'], 'labels': ['dog']}, {'event': 'erased'}])
    """
    gone = set(ids)
    with locked(path) as (file, data):
        last = read_last(file)
        records = [typed(event) for event in parse(data, file, last).events]
        test: list[Id] = []  # the test sample, in the order of its predictions
        kept = []
        for record in records:
            test += record.ids if isinstance(record, e.SetAside) else []
            kept.append(_without(record, gone, test))
        changed = sum(old is not new for old, new in zip(records, kept, strict=True))
        if not changed:
            raise InputError(f"{file} holds nothing about {', '.join(map(repr, sorted(gone, key=str)))[:200]}")
        kept.append(e.Erased(examples=len(gone), at=e.now()))
        forget(file, STATE)
        lines = [encode(number, record.event()) for number, record in enumerate(kept, start=1)]
        rewrite(file, lines, last=last is not None)
    return changed


def _without(record: e.Record, gone: set[Id], test: list[Id]) -> e.Record:
    """The record without these ids; itself where it holds none of them."""
    changes: dict[str, Any] = {}
    if isinstance(record, e.Relabel | e.Remark) and record.id in gone:
        return e.Erased(at=record.at)
    if isinstance(record, e.Header | e.NewPool) and gone & set(record.pool.sample or ()):
        sample = [id for id in record.pool.sample or () if id not in gone]
        changes["pool"] = replace(record.pool, sample=sample, digest=None)
    if isinstance(record, e.Header) and gone & set(record.initial.ids):
        changes["initial"] = replace(record.initial, **_columns(record.initial, ("labels",), gone))
    if isinstance(record, e.Ask) and record.stop is not None and gone & set(record.stop.ids):
        changes["stop"] = replace(record.stop, **_columns(record.stop, ("codes",), gone))
    if isinstance(record, e.Ask) and record.test is not None and gone & set(test):
        changes["test"] = [said for id, said in zip(test, record.test, strict=False) if id not in gone]
    if gone & set(getattr(record, "ids", ())):
        changes |= _columns(record, ("labels", "predicted"), gone)
    return replace(record, **changes) if changes else record


def _columns(part: Any, others: tuple[str, ...], gone: set[Id]) -> dict[str, Any]:
    """The ids that stay, and what belongs to each of them."""
    stay = [n for n, id in enumerate(part.ids) if id not in gone]
    columns = {name: getattr(part, name, None) for name in ("ids", *others)}
    return {name: [values[n] for n in stay] for name, values in columns.items() if isinstance(values, list)}
