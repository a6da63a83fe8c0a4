"""Reading a journal that another process may be writing: whole, or its first and last line."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from badge.core.locking import lock_file, sync_folder
from badge.core.names import path_of
from badge.core.writing import replacing, writing_to
from badge.errors import JournalError
from badge.journal.events import Event, Record
from badge.journal.last import Last, digest, read_last, write_last
from badge.journal.lines import decode, parse
from badge.journal.schema import typed


def read(path: str | os.PathLike[str]) -> list[Event]:
    """The events of a journal, without locking it. A torn last line is left out with a warning.

    Args:
        path: the journal.

    Returns:
        A dict per line, in order.

    Raises:
        JournalError: a line is damaged or missing.

    >>> import tempfile, pathlib
    >>> from badge.journal.events import Skip
    >>> from badge.journal.file import Journal
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Skip(ids=[3], reason="too dark"))
    >>> read(path)
    [{'event': 'skip', 'ids': [3], 'reason': 'too dark'}]
    """
    file = path_of(path, "a journal")
    last = read_last(file)
    return parse(bytes_of(file), path, last).events


def records_of(path: str | os.PathLike[str]) -> list[Record]:
    """The events of a journal, as types of `badge.journal.events`.

    Args:
        path: the journal.

    Raises:
        JournalError: a line is damaged or missing.

    >>> import tempfile, pathlib
    >>> from badge.journal import Journal
    >>> from badge.journal.events import Skip
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "j.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append(Skip(ids=[3]))
    >>> records_of(path)[0].ids
    [3]
    """
    return [typed(event) for event in read(path)]


def bytes_of(file: Path) -> bytes:
    if file.exists() and not file.is_file():  # a pipe or a device has no end
        raise JournalError(f"{file} is not a file: a journal is one")
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise JournalError(f"there is no journal {file}") from None
    except OSError as error:
        raise JournalError(f"cannot read the journal {file}: {error.strerror}") from error


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


def first_and_last(file: Path) -> tuple[Record, Record] | None:
    """The first and the last event of a journal, without a look at the others; None if one of them is not sound."""
    if not file.is_file():
        return None
    with file.open("rb") as stream:
        first = stream.readline()
        stream.seek(max(0, file.stat().st_size - 4096))
        lines = stream.read().splitlines()
    try:
        return typed(decode(first.rstrip(b"\n"))[1]), typed(decode(lines[-1])[1])
    except (ValueError, IndexError):
        return None
