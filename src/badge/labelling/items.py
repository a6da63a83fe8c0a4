"""The items of a pool as the page sees them: ids as text, and a seal of what was shown."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from badge.errors import DataError, InputError
from badge.labelling.sources import Id, Source


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
        """The label that the file suggests for an item, if it has a column of such."""
        return None if self.source.guesses is None else self.source.guesses[self.position(id)] or None

    def shown(self, id: Id) -> dict[str, Any]:
        return self.source.shown(self.position(id))

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
        sizes: dict[int, list[int]] = {}
        for place, path in enumerate(source.pool.paths):
            sizes.setdefault(path.stat().st_size, []).append(place)
        several = [place for places in sizes.values() if len(places) > 1 for place in places]
        contents = ((place, _digest(source.pool.paths[place])) for place in several)
    found: dict[Any, int | list[int]] = {}
    for place, content in contents:
        if not content:
            continue  # empty texts say nothing
        before = found.setdefault(content, place)
        if isinstance(before, list):
            before.append(place)
        elif before != place:
            found[content] = [before, place]
    groups = [places for places in found.values() if isinstance(places, list)]
    return {place: places for places in groups for place in places}


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
