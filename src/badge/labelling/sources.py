"""Pools and classes from files: texts, a folder of images, rows of a table. What a trainer gets, what a person is shown."""

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from badge.core.names import LONGEST
from badge.errors import DataError, InputError
from badge.journal.events import Id
from badge.labelling.images import ImageFolder
from badge.tables import NOTHING, Told, first_few, is_table, read_lines, read_table

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
        rows = self.pool if self.kind == "row" else self.extra
        fields = [[name, _plain(value)] for name, value in rows[position].items()] if rows else []
        return {"kind": self.kind, **({"text": self.pool[position]} if self.kind == "text" else {}), "fields": fields}


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
        return _enough(Source("text", [line for line in read_lines(path, told) if line.strip()], None), path)
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
    if text is not None:
        texts = [str(_plain(value or "")) for value in table.column(text)]
        return _enough(Source("text", texts, ids, rows if any(rows) else None, understood, *given), path)
    for name in columns:
        words = [len(value.split()) for value in table.column(name)[:100] if isinstance(value, str) and value.strip()]
        if words and sum(words) >= 3 * len(words):  # sentences
            understood += f"; labelled row by row: for the texts of a column, --text {name!r}"
            break
    return _enough(Source("row", rows, ids, None, understood, *given), path)


def _word(value: Any) -> str:
    return "" if value is None else str(_plain(value)).strip()


def _enough(source: Source, path: Path) -> Source:
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
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
        place = number if self._places is None else self._places.get(text)
        if place is None or place >= len(self.source):
            raise InputError(f"there is no item {str(id)[:80]!r} in this pool")
        return place

    def id(self, text: Any) -> Id:
        return self.source.id(self.position(text))

    def twins(self, id: Id) -> list[Id]:
        """The other items with exactly the same text or image."""
        place = self.position(id)
        return [self.source.id(other) for other in self._twins.get(place, ()) if other != place]

    def shown(self, id: Id) -> dict[str, Any]:
        return self.source.shown(self.position(id))

    def summary(self, id: Id) -> str:
        """An item in one line, for lists and search."""
        shown = self.shown(id)
        alone: str | None = shown.get("name", shown.get("text"))
        return " · ".join(f"{name}: {value}" for name, value in shown["fields"]) if alone is None else alone

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


def classes_of(given: str) -> tuple[list[str], dict[str, dict[str, str]]]:
    """The classes of `--classes`: names with commas between them, a file with one a line, or a table.

    The table (csv, tsv, jsonl, …) has the column `name` and, if it has them, `description`, `key` and `colour`.

    >>> classes_of("good, bad,unclear")[0]
    ['good', 'bad', 'unclear']
    """
    path = Path(given)
    about: dict[str, dict[str, str]] = {}
    is_file = len(path.name.encode()) <= LONGEST and path.is_file()  # a list of classes may be longer than a name
    if is_file and is_table(path):
        found = [(row["name"], _about(row, path)) for row in _rows_of_classes(path)]
        names, about = [name for name, _ in found], dict(found)
    else:
        lines = read_lines(path, what="--classes") if is_file else given.split(",")
        names = [name.strip() for name in lines if name.strip()]
    if len(names) == 1 and path.suffix and not is_file:
        needed = "a list of classes needs at least 2 different names"
        raise InputError(f"--classes {given}: there is no such file; {needed}")
    if len(names) < 2:
        raise InputError(f"--classes needs at least 2 different names, or a file with one per line; got {given!r}")
    for what, values in (("class", names), ("key", [one["key"] for one in about.values() if "key" in one])):
        if twice := [value for value, count in Counter(values).items() if count > 1]:
            raise InputError(f"--classes: the {what} {first_few(twice[:1])} is there twice: each needs its own")
    return names, about


def _rows_of_classes(path: Path) -> list[dict[str, str]]:
    table = read_table(path, Told(header=True), what="--classes")
    names = [name.strip() for name in table.names]
    if "name" not in names:
        found = f"{path} has no column 'name': it has {first_few(names)}"
        raise InputError(f"{found}; columns are name, description, key, colour, and a list of names is a .txt file")
    columns = [["" if value is None else str(value).strip() for value in column] for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [row for row in rows if row["name"]]


def _about(row: dict[str, str], path: Path) -> dict[str, str]:
    if len(row.get("key", "")) > 1:
        raise InputError(f"{path}: the key of {row['name']} is {row['key']!r}; a key is one character")
    if row.get("colour") and not re.fullmatch(r"#[0-9a-fA-F]{3,8}|[a-z]+", row["colour"]):
        raise InputError(f"{path}: the colour of {row['name']} is {row['colour']!r}; write #1f5fae or a name like teal")
    return {field: row[field] for field in ("description", "key", "colour") if row.get(field)}
