"""Outputs in parts: a directory of directories, each as `badge.predict(..., out=)` writes it, in the order of one index.

    dir/parts.json           whose outputs these are; once all parts are there: their names and rows, in order
    dir/part-<key>/          outputs.json, probabilities.npy, embeddings.npy, progress, and where rows have names ids.npy

A part is written under another name and renamed when it is complete, so that it is complete or absent whoever is killed;
so is the index. Parts can be made anywhere and in any order: the key says which rows they hold. The directory may be a URL
of an object store: `far.py` says how parts lie there.
"""

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.core.names import URL, path_of
from badge.core.writing import folder_for, replacing
from badge.errors import InputError
from badge.outputs import store
from badge.outputs.far import Far, FarPart, settle
from badge.outputs.outputs import Outputs
from badge.outputs.part_rows import PartIds, PartRows, Piece

FORMAT = 1
INDEX = "parts.json"
AGAIN = "run the same badge.cluster.predict again, which makes what is missing"


@dataclass(frozen=True)
class Part:
    """One part as the index lists it. Only parts in an object store have a digest."""

    name: str
    rows: int
    digest: str = ""


@dataclass(frozen=True)
class Near:
    """A directory of parts that this machine sees; it has the methods of `Far`."""

    where: Path

    def __str__(self) -> str:
        return str(self.where)

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        return {name: (self.where / name).read_bytes() for name in names if (self.where / name).is_file()}

    def write(self, name: str, content: bytes) -> None:
        with replacing(self.where / name, binary=True) as file:
            file.write(content)

    def names(self) -> list[str]:
        return [entry.name for entry in folder_for(self.where).iterdir()]

    def remove(self, name: str) -> None:
        shutil.rmtree(self.where / name, ignore_errors=True)

    def scratch(self, name: str) -> Path:
        return self.where / f".{name}-{uuid.uuid4().hex[:8]}"

    def take(self, folder: Path, name: str) -> str:
        settle(folder, self.where / name)
        return ""

    def metas(self, names: Sequence[str]) -> list[tuple[store.Meta, str] | None]:
        """What each part says; a part that is damaged is refused."""
        folders = [self.where / name for name in names]
        return [(store.read(folder)[0], "") if folder.is_dir() else None for folder in folders]

    def sees(self, part: Part) -> bool:
        return (self.where / part.name).is_dir()

    def named(self, part: Part, meta: store.Meta) -> bool:
        return (self.where / part.name / store.IDS).is_file()


Place = Near | Far
#: a directory or URL as the caller gave it, or opened
Given = str | os.PathLike[str] | Place


def place_of(directory: Given, what: str = "a directory of outputs") -> Place:
    """A directory, absolute, or a folder in an object store."""
    if isinstance(directory, Near | Far):
        return directory
    if isinstance(directory, str) and URL.match(directory):
        return Far(directory.rstrip("/"))
    return Near(path_of(directory, what).absolute())


def is_parts(place: Place) -> bool:
    """Whether a folder holds outputs in parts, finished or not."""
    return bool(place.read([INDEX]))


def begin(directory: Given, identity: dict[str, str]) -> bool:
    """Make the directory, or check that it is for the same outputs; whether all of its parts are there already."""
    place = place_of(directory)
    there = place.names()
    if INDEX not in there:
        others = sorted(name for name in there if not name.startswith((".part", "part", ".badge-")))
        if others:
            raise InputError(f"{place} is not empty and holds no outputs in parts ({others[0]}, …): name another")
        _write_index(place, {"format": FORMAT, "identity": identity, "parts": None})
        return False
    index = _index(place)
    store.check_identity(place, index["identity"], identity)
    return index["parts"] is not None and all(name in there for name, *_ in index["parts"])


def existing(place: Place, key: str, identity: dict[str, str]) -> Part | None:
    """The part with this key, or None. A part of another model is refused."""
    name = f"part-{key}"
    if (found := place.metas([name])[0]) is None:
        return None
    meta, digest = found
    store.check_identity(f"{place}/{name}", meta.identity, identity)
    return Part(name, meta.rows, digest)


def write(
    directory: Given,
    key: str,
    probabilities: NDArray[Any],
    embeddings: NDArray[Any],
    ids: NDArray[Any] | None,
    identity: dict[str, str],
    multilabel: bool = False,
) -> Part:
    """Write one part; it appears under its name when it is complete and on disk."""
    place, name = place_of(directory), f"part-{key}"
    hidden = place.scratch(name)
    writer = store.Writer(hidden, len(probabilities), {**identity, "part": key})
    writer.multilabel = multilabel
    writer.write(probabilities, embeddings)
    writer.flush()
    writer.close()
    (hidden / store.LOCK).unlink(missing_ok=True)  # a part is written once
    if ids is not None:
        with replacing(hidden / store.IDS, binary=True) as file:
            np.save(file, ids, allow_pickle=False)
    return Part(name, len(probabilities), place.take(hidden, name))


def finish(directory: Given, parts: Sequence[Part]) -> None:
    """Check the parts and write the index. Delete the rest: remains of killed workers, parts of other layouts."""
    place = place_of(directory)
    meta, named = _checked(place, parts)
    listed = [[part.name, part.rows, *([part.digest] if part.digest else [])] for part in parts]
    index: dict[str, Any] = {**_index(place), "parts": listed}
    if isinstance(place, Far):  # all that opening needs to know, so that it reads the index alone
        index["form"] = {name: form._asdict() for name, form in zip(store.ARRAYS, meta.forms, strict=True)}
        index["form"] |= {"multilabel": meta.multilabel, "named": named}
    names = {part.name for part in parts}
    for name in place.names():
        if name.lstrip(".").startswith("part-") and name not in names:
            place.remove(name)
    _write_index(place, index)


def open_parts(place: Place) -> Outputs:
    """All parts of a finished directory, memory-mapped; what is missing, doubled or does not fit is named. Parts of an object
    store are fetched when they are read."""
    index = _index(place)
    if index["parts"] is None:
        raise InputError(f"{place} is not finished: {AGAIN}")
    parts = [Part(*entry) for entry in index["parts"]]
    if isinstance(place, Far):
        form = index["form"]
        forms = tuple(store.Form(**form[name]) for name in store.ARRAYS)
        named, multilabel = form["named"], bool(form.get("multilabel"))
        pieces = [Piece(FarPart(place, part.name, part.digest, forms), 0, part.rows) for part in parts]
    else:
        meta, named = _checked(place, parts)
        multilabel = meta.multilabel
        pieces = [Piece(place.where / part.name, 0, part.rows) for part in parts]
    opened = _opened(place, pieces, multilabel)
    opened.ids = PartIds(pieces) if named else None
    return opened


def open_single(place: Near) -> Outputs:
    """What `badge.predict(..., out=path)` wrote, as a pool of one part."""
    meta, _ = store.read(place.where)
    for name, form in zip(store.ARRAYS, meta.forms, strict=True):
        if not form.columns:
            raise InputError(f"{place} holds no {name}: {meta.missing}")
    return _opened(place, [Piece(place.where, 0, meta.rows)], meta.multilabel)


def _opened(place: Place, pieces: Sequence[Piece], multilabel: bool) -> Outputs:
    p_rows, h_rows = (PartRows.open(name, pieces) for name in store.ARRAYS)
    opened = Outputs.trusted(p_rows, h_rows, multilabel=multilabel)
    opened.directory = place.where
    return opened


def _checked(place: Place, parts: Sequence[Part]) -> tuple[store.Meta, bool]:
    """What the first part says, and whether rows have names. Every part must be there once, be whole, and have the model and
    shape of the others."""
    if not parts:
        raise InputError(f"{place} has no parts: it holds 0 rows")
    first: store.Meta | None = None
    keys: dict[str, str] = {}
    nameless: list[str] = []
    for part, found in zip(parts, place.metas([part.name for part in parts]), strict=True):
        folder = f"{place}/{part.name}"
        if found is None:
            raise InputError(f"{folder} is missing: {AGAIN}")
        meta = found[0]
        first = first or meta
        _check_fits(folder, meta, f"{place}/{parts[0].name}", first)
        key = meta.identity.get("part", part.name)
        if key in keys:
            raise InputError(f"{folder} holds the same rows as {place}/{keys[key]}: a part may be there only once")
        keys[key] = part.name
        if meta.rows != part.rows:
            said = f"{meta.rows:,} rows, not {part.rows:,} as {INDEX} says"
            raise InputError(f"{folder} has {said}: delete it and {AGAIN}")
        if not place.named(part, meta):
            nameless.append(part.name)
        elif isinstance(place, Near):
            store.read_ids(place.where / part.name, part.rows)
    if 0 < len(nameless) < len(parts):
        raise InputError(f"{place}/{nameless[0]} has no {store.IDS}, and other parts have: delete it and {AGAIN}")
    assert first is not None
    return first, not nameless


def _check_fits(folder: str, meta: store.Meta, other: str, first: store.Meta) -> None:
    """A part must be of the model and the shape of the first."""
    for name, *forms in zip(store.ARRAYS, meta.forms, first.forms, strict=True):
        if forms[0] != forms[1]:
            said = [f"{form.columns} columns of {form.dtype}" for form in forms]
            raise InputError(f"{folder} has {name} of {said[0]}, {other} of {said[1]}: parts of one model are needed")
    if first.multilabel != meta.multilabel:
        raise InputError(f"{folder} and {other} are not both multi-label: parts of one model are needed")
    for key in sorted({*first.identity, *meta.identity} - {"part", "pool"}):
        if first.identity.get(key) != meta.identity.get(key):
            raise InputError(f"{folder} holds the outputs of another {key} than {other}: parts of one model are needed")


def _index(place: Place) -> dict[str, Any]:
    file = f"{place}/{INDEX}"
    try:
        index: dict[str, Any] = json.loads(place.read([INDEX]).get(INDEX, b""))
        sound = {"format", "identity", "parts"} <= set(index)
    except InputError:  # a ValueError too
        raise
    except (OSError, ValueError):
        sound = False
    if not sound:
        raise InputError(f"{file} cannot be read or is damaged: delete it and {AGAIN}")
    if index["format"] != FORMAT:
        raise InputError(f"{file} has format {index['format']}; this version of badge reads format {FORMAT}")
    return index


def _write_index(place: Place, index: dict[str, Any]) -> None:
    place.write(INDEX, (json.dumps(index) + "\n").encode())
