"""A reader of dense ARFF files, the format of OpenML.

Why not another: `sklearn.datasets.fetch_openml` has no progress bar and no timeout, retries a missing file for three seconds
and downloads one with a wrong checksum twice; `scipy.io.arff` fails on quoted values and on spaces in lists of categories.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from badge.core.npz import Array
from badge.errors import DataError

#: Rows parsed at a time: a million rows of strings at once would need gigabytes.
BLOCK = 50_000
_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|[^\s{]+)\s*(.+)""", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """The table of an ARFF file: columns [N] by name. Values of nominal columns are positions in their `categories`."""

    columns: dict[str, Array]
    categories: dict[str, list[str]]


def read(lines: Iterable[str]) -> Relation:
    """The table in the lines of an ARFF file; any exception where they are damaged.

    >>> table = read("@relation r\\n@attribute x real\\n@attribute c {no, yes}\\n@data\\n1.5,yes\\n2,no".splitlines())
    >>> table.columns["x"].tolist(), table.columns["c"].tolist(), table.categories
    ([1.5, 2.0], [1, 0], {'c': ['no', 'yes']})
    """
    content = (line.strip() for line in lines)
    content = (line for line in content if line and not line.startswith("%"))
    names, categories = _header(content)
    rows = csv.reader(content, quotechar="'", skipinitialspace=True)
    parts: list[list[Array]] = [[] for _ in names]
    while block := list(islice(rows, BLOCK)):
        if wrong := next((row for row in block if len(row) != len(names)), None):
            raise DataError(f"a row of {len(wrong)} values in an ARFF file with {len(names)} attributes: {wrong[:4]}")
        for name, part, column in zip(names, parts, zip(*block, strict=True), strict=True):
            part.append(_values(column, categories.get(name)))
    if not parts or not parts[0]:
        raise DataError("an ARFF file without rows")
    return Relation({name: np.concatenate(part) for name, part in zip(names, parts, strict=True)}, categories)


def _header(lines: Iterator[str]) -> tuple[list[str], dict[str, list[str]]]:
    names: list[str] = []
    categories: dict[str, list[str]] = {}
    for line in lines:
        if line.lower().startswith("@data"):
            return names, categories
        found = _ATTRIBUTE.match(line)
        if not found:
            continue  # @relation
        name, kind = found[1].strip("'\""), found[2].strip()
        names.append(name)
        if kind.startswith("{"):
            (values,) = csv.reader([kind.strip("{} \t")], quotechar="'", skipinitialspace=True)
            categories[name] = [value.strip().strip('"') for value in values]
        elif kind.split()[0].lower() not in ("numeric", "real", "integer"):
            raise DataError(f"ARFF attribute {name!r} is of type {kind!r}: numbers and categories can be read")
    raise DataError("an ARFF file without @data")


def _values(column: tuple[str, ...], categories: list[str] | None) -> Array:
    if categories is None:
        return np.array(column, dtype=np.float32)
    position = {value: i for i, value in enumerate(categories)}
    return np.array([position[value.strip().strip('"')] for value in column], dtype=np.int64)
