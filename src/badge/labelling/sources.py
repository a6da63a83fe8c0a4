"""Pools from files: texts, a folder of images, rows of a table. What a trainer gets, and what a person is shown."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from badge.errors import DataError, InputError
from badge.journal.events import Id
from badge.labelling.images import ImageFolder
from badge.tables import NOTHING, Told, read_lines, read_table

Kind = Literal["text", "image", "row"]
#: names of columns that are taken for the ids and for the text where none is named
ID, TEXT = "id", "text"


@dataclass(frozen=True)
class Source:
    """A pool, the ids of its items, and what to show of each."""

    kind: Kind
    pool: Any  #: what a trainer gets: a list of texts, an `ImageFolder` or a list of dicts (rows)
    ids: list[Id] | None  #: None: their positions
    extra: Sequence[dict[str, Any]] | None = None  #: of texts, the other columns
    understood: str = ""  #: how the file was read, in one line
    labels: list[str] | None = None  #: labels that exist already; "": none
    guesses: list[str] | None = None  #: labels that are suggested; "": none

    def __len__(self) -> int:
        return len(self.pool)

    def id(self, position: int) -> Id:
        return position if self.ids is None else self.ids[position]

    def shown(self, position: int) -> dict[str, Any]:
        """What the page needs to show an item. For an image that is its name; the bytes are fetched by id."""
        if self.kind == "image":
            return {"kind": "image", "name": self.pool.names[position]}
        if self.kind == "row":
            return {"kind": "row", "fields": [[name, _plain(value)] for name, value in self.pool[position].items()]}
        more = [[name, _plain(value)] for name, value in self.extra[position].items()] if self.extra else []
        return {"kind": "text", "text": self.pool[position], "fields": more}

    def summary(self, position: int) -> str:
        """An item in one line, for lists and search."""
        if self.kind == "image":
            return str(self.pool.names[position])
        if self.kind == "row":
            return " · ".join(f"{name}: {_plain(value)}" for name, value in self.pool[position].items())
        return str(self.pool[position])


def open_source(
    path: Path,
    text: str | None = None,
    id: str | None = None,
    told: Told = NOTHING,
    label: str | None = None,
    guess: str | None = None,
) -> Source:
    """The pool of a file or folder. `text`, `id`, `label` and `guess` name columns.

    Without `text` a column "text" is taken; a table that has none is labelled row by row. Without `id` a column "id" is
    taken; if there is none, ids are positions.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text("id,text\\nr1,fine\\nr2,dull\\n")
    ...     source = open_source(file)
    >>> source.kind, source.ids, source.pool, source.understood
    ('text', ['r1', 'r2'], ['fine', 'dull'], "reviews.csv: 2 rows, delimiter ',', header, utf-8")
    """
    if not path.exists():
        raise DataError(f"there is no {path}: name a .csv, .xlsx, .jsonl, .parquet or .txt file, or a folder of images")
    if {text, id, label, guess} != {None} and (path.is_dir() or path.suffix == ".txt"):
        what = "a folder of images: ids are file names" if path.is_dir() else "one text per line, without columns"
        raise DataError(f"{path} is {what}: --text, --id, --label and --guess are for tables")
    if path.is_dir():
        folder = ImageFolder(path)
        return Source("image", folder, list(folder.names))
    if path.suffix == ".txt":
        return _checked(Source("text", [line for line in read_lines(path, told) if line.strip()], None), path)
    if told.header is None and (text is not None or id is not None):  # columns that are named have names
        told = replace(told, header=True)
    table = read_table(path, told)
    columns, understood = table.names, table.understood
    for option, name in (("--text", text), ("--id", id), ("--label", label), ("--guess", guess)):
        if name is not None and name not in columns:
            raise DataError(f"{option} {name}: {path} has no such column; it has {', '.join(columns) or 'none'}")
    id = id or (ID if ID in columns else None)
    ids = None if id is None else _ids(table.column(id), path, id)
    text = text or (TEXT if TEXT in columns else None)
    rows = table.rows(id, text, label, guess)
    given = [None if name is None else [_word(value) for value in table.column(name)] for name in (label, guess)]
    if text is None:
        sentences = next((name for name in columns if _holds_sentences(table.column(name))), None)
        hint = "" if sentences is None else f"; labelled row by row: for the texts of a column, --text {sentences!r}"
        return _checked(Source("row", rows, ids, None, understood + hint, *given), path)
    texts = [str(_plain(value or "")) for value in table.column(text)]
    return _checked(Source("text", texts, ids, rows if any(rows) else None, understood, *given), path)


def _holds_sentences(values: Sequence[Any]) -> bool:
    """Whether the first values of a column have three words and more, on average."""
    first = [value for value in values[:100] if isinstance(value, str) and value.strip()]
    return bool(first) and sum(len(value.split()) for value in first) >= 3 * len(first)


def _word(value: Any) -> str:
    return "" if value is None else str(_plain(value)).strip()


def _checked(source: Source, path: Path) -> Source:
    if len(source) < 2:
        raise DataError(f"{path} holds {len(source)} item{'s' * (len(source) != 1)}: at least 2 are needed")
    return source


def _ids(values: list[Any], path: Path, column: str) -> list[Id]:
    seen: dict[Id, int] = {}
    for number, value in enumerate(values, start=1):
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            what = f"the id {value!r} in column {column!r} is neither text nor a whole number"
            raise DataError(f"{path}, item {number}: {what}")
        if value in seen:
            raise DataError(f"{path}: the id {value!r} stands at items {seen[value]} and {number}: ids must differ")
        seen[value] = number
    return list(seen)


def _plain(value: Any) -> str | int | float | bool | None:
    """A value that JSON can carry to the page."""
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)  # JavaScript would round it
    if isinstance(value, int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).encode("utf-8", "replace").decode()  # half of a surrogate pair is not a text


class Items:
    """Ids go to the browser as text, since JavaScript rounds whole numbers above 2⁵³.

    >>> items = Items(Source("text", ["fine", "dull"], [2**60 + 1, "b"]))
    >>> items.id("1152921504606846977"), items.position("b")
    (1152921504606846977, 1)
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._places = None if source.ids is None else {str(id): place for place, id in enumerate(source.ids)}
        if self._places is not None and len(self._places) < len(source):
            raise DataError("two ids of the pool are the same text, as 1 and “1” are: make them differ")
        self._twins = _twins(source)

    def position(self, id: Any) -> int:
        """Place in the pool of an id, or of its text; nothing but an id leads to an item."""
        text = str(id) if isinstance(id, int | str) and not isinstance(id, bool) else ""
        if self._places is not None:
            place = self._places.get(text)
        else:
            place = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
        if place is None or place >= len(self.source):
            raise InputError(f"there is no item {str(id)[:80]!r} in this pool")
        return place

    def id(self, text: Any) -> Id:
        return self.source.id(self.position(text))

    def twins(self, id: Id) -> list[Id]:
        """The other items with exactly the same text or image."""
        place = self.position(id)
        return [self.source.id(other) for other in self._twins.get(place, ()) if other != place]

    def suggested(self, id: Id) -> Any:
        """The label that the file suggests for an item, if it has a column of suggestions."""
        return None if self.source.guesses is None else self.source.guesses[self.position(id)] or None

    def shown(self, id: Id) -> dict[str, Any]:
        return self.source.shown(self.position(id))

    def summary(self, id: Id) -> str:
        return self.source.summary(self.position(id))

    def seal(self, id: Id) -> str:
        """Short digest of what a person sees of an item: an answer brings it back."""
        place = self.position(id)
        about: Any = self.source.shown(place)
        if self.source.kind == "image":
            stat = self.source.pool.paths[place].stat()
            about = [about, stat.st_size, stat.st_mtime_ns]
        return hashlib.blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()


def _twins(source: Source) -> dict[int, list[int]]:
    """Position -> the positions of all items with the same content, where there are several."""
    if source.kind == "row":
        return {}
    contents: Iterable[Any] = enumerate(source.pool)
    if source.kind == "image":  # only files of one size are read
        paths = source.pool.paths
        sizes = [path.stat().st_size for path in paths]
        counts = Counter(sizes)
        several = [place for place, size in enumerate(sizes) if counts[size] > 1]
        contents = ((place, hashlib.sha256(paths[place].read_bytes()).digest()) for place in several)
    found: dict[Any, list[int]] = defaultdict(list)
    for place, content in contents:
        if content:  # empty texts say nothing
            found[content].append(place)
    return {place: places for places in found.values() if len(places) > 1 for place in places}
