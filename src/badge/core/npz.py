"""Reading npy and npz files that others wrote: numbers, or one clear sentence; never a pickle."""

import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: What numpy and zipfile raise on bytes that are not what they should be (RuntimeError: an encrypted archive).
DAMAGED = (
    OSError, ValueError, EOFError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, SyntaxError, MemoryError,
    OverflowError, RecursionError, tokenize.TokenError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip


@contextmanager
def sound() -> Iterator[None]:
    """Hide numpy's warnings about old or odd headers: the checks of the arrays decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays in an npz file."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, Array]:
    """The arrays of an npz file, all or the named ones; raises one of `DAMAGED` where a byte of them is wrong.

    Unlike `numpy.load` this reads every member to its end, where the archive's checksum is compared.
    """
    found = {}
    with sound(), zipfile.ZipFile(path) as archive:
        for name in names_in(archive) if names is None else names:
            with archive.open(f"{name}.npy") as member:
                found[name] = np.lib.format.read_array(member, allow_pickle=False)
                if member.read(1):
                    raise ValueError(f"{name} holds more than its header says")
    return found
