"""Where `<name>.npz` is: `$BADGE_DATA`, then the user's cache, then the source."""

import os
import re
import tempfile
from pathlib import Path

import numpy as np

from badge.core.npz import DAMAGED, read_npz
from badge.core.writing import cache_folder
from badge.data.sources import Arrays, fetch
from badge.errors import DataError, in_short


def find(*names: str) -> tuple[Path | None, str]:
    """The first of these files in `$BADGE_DATA`, then in the user's cache; and where it was looked for."""
    given = os.environ.get("BADGE_DATA")
    folders = [*([Path(given)] if given else []), cache_folder()]
    looked = " and ".join(str(folder / names[0]) for folder in folders)
    found = (folder / name for folder in folders for name in names if (folder / name).is_file())
    return next(found, None), looked + ("" if given else " (BADGE_DATA is not set)")


def arrays(name: str, progress: bool = True) -> Arrays:
    """The arrays of `<name>.npz`; if there is no such file, it is downloaded into the cache."""
    path, looked = find(f"{name}.npz")
    if path is not None:
        return read(path)
    try:
        return _download(name, cache_folder() / f"{name}.npz", progress)
    except (DataError, OSError) as error:
        raise DataError(
            f"{name} is not at {looked}, and the download failed: {error}. Without a network, put {name}.npz "
            "with the arrays X_train, y_train, X_test, y_test or X, y into a folder and set BADGE_DATA to it"
        ) from error


def _download(name: str, path: Path, progress: bool) -> Arrays:
    """Download, convert and store under `path`: the complete file, or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f"{name}-") as folder:
        found = fetch(name, Path(folder), progress)
        converted = Path(folder) / f"{name}.npz"
        np.savez_compressed(converted, **found)  # type: ignore[arg-type]
        converted.replace(path)
    return found


def own_file(name: str) -> Path | None:
    """The file `<name>.npz` in `$BADGE_DATA`, or None."""
    given = os.environ.get("BADGE_DATA")
    if not given or not re.fullmatch(r"[\w.-]{1,100}", name):
        return None
    path = Path(given) / f"{name}.npz"
    return path if path.is_file() else None


def read(path: Path, way_out: str = "remove it, and it is downloaded again") -> Arrays:
    """The arrays of a file, with one label for each row."""
    try:
        found = read_npz(path)
    except DAMAGED as error:
        raise DataError(f"{path} is damaged ({in_short(error)}): {way_out}") from error
    pairs = [("X_train", "y_train"), ("X_test", "y_test")] if "X_train" in found else [("X", "y")]
    if not all(x in found and y in found for x, y in pairs):
        held = ", ".join(sorted(found)[:10]) or "no arrays"
        raise DataError(f"{path} holds {held}; needed are X_train, y_train, X_test, y_test or X, y")
    for x, y in pairs:
        if found[x].ndim < 2 or found[y].shape != found[x].shape[:1]:
            raise DataError(f"{path}: {x} has shape {found[x].shape} and {y} {found[y].shape}: one label for each row")
    return found
