"""Tables of numbers that other programs wrote: npy, npz, csv, tsv (also gzipped) and parquet."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from badge.cli.tables.columns import Array, Choice, Column, check_features, choose, listed
from badge.cli.tables.parquet import Parquet
from badge.cli.tables.text import Text
from badge.core.npz import in_short, names_in, read_npz, sound
from badge.errors import BadgeError, InputError

__all__ = ["Choice", "Numbers", "kind_of", "read_numbers", "reading"]

TEXT, PARQUET = (".csv", ".tsv"), (".parquet", ".pq")


class Numbers(NamedTuple):
    """What was read: rows of numbers (memory-mapped where the file is npy), identifiers if a column has them, notes."""

    values: Array
    ids: list[str] | None
    notes: list[str]


class Source(Protocol):
    """A file with columns."""

    columns: list[Column]

    def values(self, positions: Sequence[int]) -> Array: ...

    def strings(self, position: int) -> list[str]: ...


def kind_of(file: Path) -> str:
    """The ending that says what a file is: that before .gz for text."""
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes[-1:] == [".gz"] and suffixes[0] in TEXT:
        return suffixes[0]
    return suffixes[-1] if suffixes else ""


@contextmanager
def reading(what: str, file: Path) -> Iterator[None]:
    """Whatever a reader of foreign bytes raises becomes one line."""
    try:
        if not file.is_file():
            raise InputError(f"{what}: there is no file {file}")
        with sound():
            yield
    except BadgeError:
        raise
    except Exception as error:
        raise InputError(f"{what}: {file} cannot be read: {in_short(error)}") from error


def read_numbers(file: Path, choice: Choice) -> Numbers:
    """The numbers in a file."""
    with reading(choice.name, file):
        kind = kind_of(file)
        if kind in (".npy", ".npz"):
            return _read_array(file, choice, kind)
        if kind in (*TEXT, *PARQUET):
            source: Source = Text(file, choice.header, f"{choice.name}: ") if kind in TEXT else Parquet(file)
            return _read_columns(source, file, choice)
        raise InputError(f"{choice.name}: {file} is none of .npy, .npz, .csv, .tsv (also with .gz) and .parquet")


def _read_columns(source: Source, file: Path, choice: Choice) -> Numbers:
    taken, own, notes = choose(source.columns, choice, file)
    values = source.values(taken)
    check_features(values, [source.columns[i] for i in taken], choice, file)
    return Numbers(values, None if own is None else source.strings(own), notes)


def _read_array(file: Path, choice: Choice, kind: str) -> Numbers:
    values = np.load(file, mmap_mode="r", allow_pickle=False) if kind == ".npy" else _member(file, choice.name)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{choice.name}: {file} holds {values.dtype}: numbers are needed")
    if values.ndim == 0:
        raise InputError(f"{choice.name}: {file} holds a single number: one row per example is needed")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.ndim == 2:
        columns = [Column(str(i), "float") for i in range(values.shape[1])]
        if choice.patterns:
            taken, _, _ = choose(columns, choice, file)
            values = values if len(taken) == len(columns) else values[:, taken]
        check_features(values, columns, choice, file)
    return Numbers(values, None, [])


def _member(file: Path, name: str) -> Array:
    with zipfile.ZipFile(file) as archive:
        names = names_in(archive)
    if name not in names and len(names) != 1:
        raise InputError(f"{file} holds {listed(names) or 'no arrays'}: one array, or one named {name!r}, is needed")
    wanted = name if name in names else names[0]
    return read_npz(file, [wanted])[wanted]
