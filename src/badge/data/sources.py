"""Where the arrays of `<name>.npz` are: in `$BADGE_DATA`, then in the user's cache, then at their canonical source.

No file format here is a pickle, so that a damaged or forged file can be refused but never run. Why a reader of ARFF, the
format of OpenML: `sklearn.datasets.fetch_openml` has no progress bar and no timeout, retries a missing file for three seconds
and downloads one with a wrong checksum twice; `scipy.io.arff` fails on quoted values and on spaces in lists of categories.
"""

import csv
import gzip
import hashlib
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import numpy as np

from badge.core.importing import needs
from badge.core.npz import DAMAGED, Array, read_npz
from badge.core.progress import bar
from badge.core.writing import cache_folder
from badge.errors import BadgeError, DataError, in_short

Arrays = dict[str, Array]
#: get(url, md5 or None) -> the downloaded file
Get = Callable[[str, "str | None"], Path]

#: Seconds after which a silent server is given up, and bytes that are read at once.
TIMEOUT, PIECE = 30, 2**18
#: where each source lives
BASES = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist",  # the mirror that torchvision uses
    "svhn": "http://ufldl.stanford.edu/housenumbers",
    "cifar10": "https://www.cs.toronto.edu/~kriz",
    "openml": "https://www.openml.org",
}

#: file -> MD5 of it. mnist: torchvision/datasets/mnist.py. svhn: torchvision/datasets/svhn.py.
#: cifar10: https://www.cs.toronto.edu/~kriz/cifar.html. OpenML states it in the description of each file.
FILES = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
    "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
}

#: Rows of ARFF parsed at a time: a million rows of strings at once would need gigabytes.
BLOCK = 50_000
_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)
_DIGITS = np.array([str(i) for i in range(10)])


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
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=f"{name}-") as beside:
            found, converted = fetch(name, Path(beside), progress), Path(beside) / f"{name}.npz"
            np.savez_compressed(converted, **found)  # type: ignore[arg-type]
            converted.replace(folder / converted.name)  # the complete file, or none
        return found
    except (DataError, OSError) as error:
        raise DataError(
            f"{name} is not at {looked}, and the download failed: {error}. Without a network, put {name}.npz "
            "with the arrays X_train, y_train, X_test, y_test or X, y into a folder and set BADGE_DATA to it"
        ) from error


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


def fetch(name: str, folder: Path, progress: bool) -> Arrays:
    """The arrays of the data set `name`, downloaded into `folder` and converted."""
    try:
        return FETCH[name](lambda url, md5: _download(url, md5, folder, progress))
    except BadgeError:
        raise
    except Exception as error:  # whatever a reader of foreign bytes may raise
        raise DataError(f"the files are damaged ({type(error).__name__}: {error})") from error


def _download(url: str, md5: str | None, folder: Path, progress: bool) -> Path:
    """The file of a URL in `folder`, with the checksum `md5` where one is known (without one it is a short description)."""
    path, digest = folder / url.rsplit("/", 1)[-1], hashlib.md5(usedforsecurity=False)
    try:
        request = Request(url, headers={"User-Agent": "badge-learn"})
        with urlopen(request, timeout=TIMEOUT) as reply, path.open("wb") as file:
            size = int(reply.headers.get("Content-Length") or 0)
            with bar(f"{path.name} (MB)", size / 1e6 or None, enabled=progress and md5 is not None) as advance:
                while piece := reply.read(PIECE):
                    file.write(piece)
                    digest.update(piece)
                    advance(len(piece) / 1e6)
    except (OSError, HTTPException) as error:
        raise DataError(f"{url}: {in_short(error)}") from None
    if (received := path.stat().st_size) < size:
        raise DataError(f"{url}: the reply broke off after {received:,} of {size:,} bytes")
    if md5 is not None and digest.hexdigest() != md5:
        raise DataError(f"{url}: the MD5 checksum {digest.hexdigest()} does not match the published {md5}")
    return path


def _mnist(get: Get) -> Arrays:
    def idx(file: str, header: int) -> Array:
        content = gzip.decompress(get(f"{BASES['mnist']}/{file}", FILES[file]).read_bytes())
        sizes = np.frombuffer(content, ">i4", header - 1, offset=4)
        if content[:4] != bytes([0, 0, 8, header - 1]):
            raise DataError(f"{file} does not begin as an idx file of bytes does")
        return np.frombuffer(content, np.uint8, offset=4 * header).reshape(sizes)

    arrays = {"class_names": _DIGITS}
    for part, name in (("train", "train"), ("test", "t10k")):
        arrays[f"X_{part}"] = idx(f"{name}-images-idx3-ubyte.gz", 4)
        arrays[f"y_{part}"] = idx(f"{name}-labels-idx1-ubyte.gz", 2)
    return arrays


def _svhn(get: Get) -> Arrays:
    with needs("reading svhn", "scipy", "study"):
        from scipy.io import loadmat
    arrays = {"class_names": _DIGITS}
    for part in ("train", "test"):
        file = f"{part}_32x32.mat"
        content = loadmat(get(f"{BASES['svhn']}/{file}", FILES[file]), variable_names=["X", "y"])
        arrays[f"X_{part}"] = np.ascontiguousarray(content["X"].transpose(3, 0, 1, 2))
        arrays[f"y_{part}"] = (content["y"].ravel() % 10).astype(np.uint8)  # the source writes digit 0 as 10
    return arrays


def _cifar10(get: Get) -> Arrays:
    file = "cifar-10-binary.tar.gz"
    with tarfile.open(get(f"{BASES['cifar10']}/{file}", FILES[file])) as archive:

        def content(member: str) -> bytes:
            opened = archive.extractfile(f"cifar-10-batches-bin/{member}")
            return b"" if opened is None else opened.read()

        def batch(*members: str) -> tuple[Array, Array]:
            rows = np.frombuffer(b"".join(content(m) for m in members), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
            return np.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), rows[:, 0]

        names = content("batches.meta.txt").decode().split()
        x_train, y_train = batch(*[f"data_batch_{i}.bin" for i in range(1, 6)])
        x_test, y_test = batch("test_batch.bin")
    return {"X_train": x_train, "y_train": y_train, "X_test": x_test, "y_test": y_test, "class_names": np.array(names)}


def _openml(data_id: int, get: Get) -> Arrays:
    described = json.loads(get(f"{BASES['openml']}/api/v1/json/data/{data_id}", None).read_text("utf-8"))
    about = described["data_set_description"]
    with get(about["url"], about.get("md5_checksum")).open(encoding="utf-8") as lines:
        table = read_arff(lines)
    target = about["default_target_attribute"]
    if target not in table.categories:
        raise DataError(f"OpenML #{data_id}: the target {target!r} is not a column of categories")
    features = [name for name in table.columns if name != target]
    return {
        "X": np.stack([_numbers(table, name) for name in features], axis=1),
        "y": table.columns[target].astype(np.uint8 if len(table.categories[target]) <= 256 else np.int64),
        "feature_names": np.array(features),
        "class_names": np.array(table.categories[target]),
    }


class Relation(NamedTuple):
    """The table of an ARFF file: columns [N] by name. Values of nominal columns are positions in their `categories`."""

    columns: dict[str, Array]
    categories: dict[str, list[str]]


def read_arff(lines: Iterable[str]) -> Relation:
    """The table in the lines of a dense ARFF file; any exception where they are damaged.

    >>> table = read_arff("@relation r\\n@attribute x real\\n@attribute c {no, yes}\\n@data\\n1.5,yes\\n2,no".splitlines())
    >>> table.columns["x"].tolist(), table.columns["c"].tolist(), table.categories
    ([1.5, 2.0], [1, 0], {'c': ['no', 'yes']})
    """
    content = (line.strip() for line in lines)
    content = (line for line in content if line and not line.startswith("%"))
    attributes = dict(_attributes(content))
    places = {name: {value: i for i, value in enumerate(values or [])} for name, values in attributes.items()}
    parts: dict[str, list[Array]] = {name: [] for name in attributes}
    rows = csv.reader(content, quotechar="'", skipinitialspace=True)
    while block := list(islice(rows, BLOCK)):
        if wrong := next((row for row in block if len(row) != len(parts)), None):
            raise DataError(f"a row of {len(wrong)} values in an ARFF file with {len(parts)} attributes: {wrong[:4]}")
        for name, cells in zip(parts, zip(*block, strict=True), strict=True):
            if attributes[name] is None:
                parts[name].append(np.array(cells, dtype=np.float32))
            else:
                parts[name].append(np.array([places[name][_bare(cell)] for cell in cells], dtype=np.int64))
    if not any(parts.values()):
        raise DataError("an ARFF file without rows")
    columns = {name: np.concatenate(part) for name, part in parts.items()}
    return Relation(columns, {name: values for name, values in attributes.items() if values is not None})


def _attributes(lines: Iterator[str]) -> Iterator[tuple[str, list[str] | None]]:
    """Names of the columns, and the categories of nominal ones."""
    for line in lines:
        if line.lower().startswith("@data"):
            return
        if found := _ATTRIBUTE.match(line):  # else @relation
            name, kind = found[1].strip("'\""), found[2].strip()
            if kind.startswith("{"):
                (values,) = csv.reader([kind.strip("{} \t")], quotechar="'", skipinitialspace=True)
                yield name, [_bare(value) for value in values]
            elif kind.split()[0].lower() in ("numeric", "real", "integer"):
                yield name, None
            else:
                raise DataError(f"ARFF attribute {name!r} is of type {kind!r}: numbers and categories can be read")
    raise DataError("an ARFF file without @data")


def _bare(cell: str) -> str:
    return cell.strip().strip('"')


def _numbers(table: Relation, name: str) -> Array:
    """A column as numbers: categories that are numbers (the suits of pokerhand) as themselves, others as positions."""
    column = table.columns[name]
    if name in table.categories:
        with suppress(ValueError):
            column = np.array([float(value) for value in table.categories[name]])[column]
    return column.astype(np.float32)


#: name of a data set -> its number at OpenML
OPENML = {"letter": 6, "pokerhand": 155, "randomrbf": 156, "kropt": 184}
#: data set -> the function that downloads and converts it
FETCH: dict[str, Callable[[Get], Arrays]] = {"mnist": _mnist, "svhn": _svhn, "cifar10": _cifar10}
FETCH |= {name: partial(_openml, number) for name, number in OPENML.items()}
