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
from torch import Tensor

from badge.core.arrays import as_tensor
from badge.core.names import path_of
from badge.core.writing import folder_for, replacing, writing_to
from badge.errors import InputError
from badge.outputs import store
from badge.outputs.far import Far, FarPart, is_url, scratch
from badge.outputs.part_rows import Opened, PartIds, PartRows, Piece

FORMAT = 1
INDEX = "parts.json"
AGAIN = "run the same badge.cluster.predict again, which makes what is missing"

#: a directory as the caller gave it, or a URL
Given = str | os.PathLike[str]


@dataclass(frozen=True)
class Part:
    """One part as the index lists it. Only parts in an object store have a digest."""

    name: str
    rows: int
    digest: str = ""


def place_of(directory: Given | Far, what: str = "a directory of outputs") -> Path | Far:
    """A directory, absolute, or a folder in an object store."""
    if isinstance(directory, Far):
        return directory
    return Far(str(directory).rstrip("/")) if is_url(directory) else path_of(directory, what).absolute()


def is_parts(directory: Given | Far) -> bool:
    place = place_of(directory)
    return bool(place.read([INDEX])) if isinstance(place, Far) else (place / INDEX).is_file()


def begin(directory: Given | Far, identity: dict[str, str]) -> bool:
    """Make the directory, or check that it is for the same outputs; whether all of its parts are there already."""
    place = place_of(directory)
    there = place.names() if isinstance(place, Far) else [p.name for p in folder_for(place).iterdir()]
    if INDEX not in there:
        others = sorted(name for name in there if not name.startswith((".part", "part", ".badge-")))
        if others:
            raise InputError(f"{place} is not empty and holds no outputs in parts ({others[0]}, …): name another")
        _write_index(place, {"format": FORMAT, "identity": identity, "parts": None})
        return False
    index = _index(place)
    store.check_identity(place, index["identity"], identity)
    return index["parts"] is not None and all(name in there for name, *_ in index["parts"])


def existing(directory: Given | Far, key: str, identity: dict[str, str]) -> Part | None:
    """The part of that key, if it is there; one of another model is refused."""
    place, name = place_of(directory), f"part-{key}"
    if isinstance(place, Far):
        if (found := place.metas([name])[0]) is None:
            return None
        meta, digest = found
    elif (place / name).is_dir():
        store.read(place / name)  # refuses a part that is damaged
        meta, digest = store.meta_of(place / name), ""
    else:
        return None
    store.check_identity(f"{place}/{name}", meta.identity, identity)
    return Part(name, meta.rows, digest)


def is_there(directory: Given | Far, part: Part) -> bool:
    """Whether a part that was written is seen here too; all see an object store."""
    place = place_of(directory)
    return isinstance(place, Far) or (place / part.name).is_dir()


def write(
    directory: Given | Far,
    key: str,
    probabilities: NDArray[Any],
    embeddings: NDArray[Any],
    ids: NDArray[Any] | None,
    identity: dict[str, str],
    multilabel: bool = False,
) -> Part:
    """Write one part; it appears under its name when it is complete and on disk."""
    place, name = place_of(directory), f"part-{key}"
    hidden = scratch(name) if isinstance(place, Far) else place / f".{name}-{uuid.uuid4().hex[:8]}"
    writer = store.Writer(hidden, len(probabilities), {**identity, "part": key})
    writer.multilabel = multilabel
    writer.write(probabilities, embeddings)
    writer.flush()
    writer.close()
    (hidden / store.LOCK).unlink(missing_ok=True)  # a part is written once
    if ids is not None:
        with replacing(hidden / store.IDS, binary=True) as file:
            np.save(file, ids, allow_pickle=False)
    if isinstance(place, Far):
        return Part(name, len(probabilities), place.take(hidden, name))
    target = place / name
    with writing_to(target):
        try:
            hidden.rename(target)
        except OSError:  # another worker has made the same part meanwhile
            shutil.rmtree(hidden)
            if not target.is_dir():
                raise
    return Part(name, len(probabilities))


def finish(directory: Given | Far, parts: Sequence[Part]) -> None:
    """Check the parts and write the index. Delete the rest: remains of killed workers, parts of other layouts."""
    place = place_of(directory)
    meta, named, _ = _checked(place, parts)
    index: dict[str, Any] = {**_index(place), "parts": [[part.name, part.rows] for part in parts]}
    if isinstance(place, Far):  # all that opening needs to know, so that it reads the index alone
        index["parts"] = [[part.name, part.rows, part.digest] for part in parts]
        index["form"] = {name: form._asdict() for name, form in zip(store.ARRAYS, meta.forms, strict=True)}
        index["form"] |= {"multilabel": meta.multilabel, "named": named}
    names = {part.name for part in parts}
    there = place.names() if isinstance(place, Far) else [folder.name for folder in place.iterdir()]
    for name in there:
        if name.lstrip(".").startswith("part-") and name not in names:
            place.remove(name) if isinstance(place, Far) else shutil.rmtree(place / name, ignore_errors=True)
    _write_index(place, index)


def open_parts(directory: Given | Far) -> Opened:
    """All parts of a finished directory, memory-mapped; what is missing, doubled or does not fit is named. Parts of an object
    store are fetched when they are read."""
    place = place_of(directory)
    index = _index(place)
    if index["parts"] is None:
        raise InputError(f"{place} is not finished: {AGAIN}")
    parts = [Part(*entry) for entry in index["parts"]]
    if isinstance(place, Far):
        form = index["form"]
        forms = tuple(store.Form(**form[name]) for name in store.ARRAYS)
        named, multilabel = form["named"], bool(form.get("multilabel"))
        folders: Sequence[Path | FarPart] = [FarPart(place, part.name, part.digest, forms) for part in parts]
        arrays: Sequence[Sequence[Tensor | None]] = [[None] * len(parts)] * 2
    else:
        meta, named, arrays = _checked(place, parts)
        multilabel = meta.multilabel
        folders = [place / part.name for part in parts]
    rows = [part.rows for part in parts]
    pieces = [Piece(folder, 0, n) for folder, n in zip(folders, rows, strict=True)]
    p_rows, h_rows = (PartRows(a, name, pieces) for a, name in zip(arrays, store.ARRAYS, strict=True))
    return Opened(p_rows, h_rows, PartIds(folders, rows) if named else None, multilabel)


def _checked(place: Path | Far, parts: Sequence[Part]) -> tuple[store.Meta, bool, list[list[Tensor]]]:
    """What the first part says, whether rows have names, and, for parts in a directory, their two arrays. Every part must be
    there once, be whole, and have the model and shape of the others."""
    if not parts:
        raise InputError(f"{place} has no parts: it holds 0 rows")
    far = place.metas([part.name for part in parts]) if isinstance(place, Far) else []
    metas: list[store.Meta] = []
    named: list[bool] = []
    arrays: list[list[Tensor]] = [[], []]
    keys: dict[str, str] = {}
    for i, part in enumerate(parts):
        folder = f"{place}/{part.name}"
        if isinstance(place, Path) and (place / part.name).is_dir():
            for array, name, found in zip(store.read(folder), store.ARRAYS, arrays, strict=True):
                found.append(as_tensor(array, name))
            metas.append(store.meta_of(Path(folder)))
            named.append((place / part.name / store.IDS).is_file())
        elif isinstance(place, Far) and (known := far[i]) is not None:
            metas.append(known[0])
            named.append(store.IDS in known[0].files)
        else:
            raise InputError(f"{folder} is missing: {AGAIN}")
        _check_fits(place, parts, metas)
        key = metas[-1].identity.get("part", part.name)
        if key in keys:
            raise InputError(f"{folder} holds the same rows as {place}/{keys[key]}: a part may be there only once")
        keys[key] = part.name
        if metas[-1].rows != part.rows:
            said = f"{metas[-1].rows:,} rows, not {part.rows:,} as {INDEX} says"
            raise InputError(f"{folder} has {said}: delete it and {AGAIN}")
        if named[-1] and isinstance(place, Path):
            store.read_ids(place / part.name, part.rows)
    without = [part.name for part, has in zip(parts, named, strict=True) if not has]
    if 0 < len(without) < len(parts):
        raise InputError(f"{place}/{without[0]} has no {store.IDS}, and other parts have: delete it and {AGAIN}")
    return metas[0], named[0], arrays


def open_single(directory: Given) -> Opened:
    """What `badge.predict(..., out=directory)` wrote, as a pool of one part."""
    path = Path(directory)
    store.read(path)  # refuses a directory that is damaged or not finished
    meta = store.meta_of(path)
    for name, form in zip(store.ARRAYS, meta.forms, strict=True):
        if not form.columns:
            raise InputError(f"{path} holds no {name}: {meta.missing}")
    pieces = [Piece(path, 0, meta.rows)]
    p_rows, h_rows = (PartRows.open(name, pieces) for name in store.ARRAYS)
    return Opened(p_rows, h_rows, None, meta.multilabel)


def _check_fits(place: Path | Far, parts: Sequence[Part], metas: Sequence[store.Meta]) -> None:
    """The last of `metas` must be of the model and the shape of the first."""
    first, last = metas[0], metas[-1]
    folder, other = (f"{place}/{part.name}" for part in (parts[len(metas) - 1], parts[0]))
    for name, *forms in zip(store.ARRAYS, last.forms, first.forms, strict=True):
        if forms[0] != forms[1]:
            said = [f"{form.columns} columns of {form.dtype}" for form in forms]
            raise InputError(f"{folder} has {name} of {said[0]}, {other} of {said[1]}: parts of one model are needed")
    if first.multilabel != last.multilabel:
        raise InputError(f"{folder} and {other} are not both multi-label: parts of one model are needed")
    for key in sorted({*first.identity, *last.identity} - {"part", "pool"}):
        if first.identity.get(key) != last.identity.get(key):
            raise InputError(f"{folder} holds the outputs of another {key} than {other}: parts of one model are needed")


def _index(place: Path | Far) -> dict[str, Any]:
    file = f"{place}/{INDEX}"
    content = place.read([INDEX]).get(INDEX, b"") if isinstance(place, Far) else None
    try:
        index: dict[str, Any] = json.loads((place / INDEX).read_bytes() if isinstance(place, Path) else content or b"")
        sound = {"format", "identity", "parts"} <= set(index)
    except (OSError, ValueError):
        sound = False
    if not sound:
        raise InputError(f"{file} cannot be read or is damaged: delete it and {AGAIN}")
    if index["format"] != FORMAT:
        raise InputError(f"{file} has format {index['format']}; this version of badge reads format {FORMAT}")
    return index


def _write_index(place: Path | Far, index: dict[str, Any]) -> None:
    text = json.dumps(index) + "\n"
    if isinstance(place, Far):
        place.write(INDEX, text.encode())
        return
    with replacing(place / INDEX) as file:
        file.write(text)
