"""The names of rows: whole numbers or texts, none twice; looked at block by block, where the blocks are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.cluster.waiting import get
from badge.errors import InputError

#: Names are compared in at most this many groups. A worker holds the names of one group in memory.
GROUPS = 16
#: Odd and large: products with it spread over 64 bits.
PRIME = 0x9E3779B97F4A7C15
TWICE = "rows with one name could not be told apart"


def stored_names(names: Any, column: str) -> NDArray[Any]:
    """Names as parts keep them: int64, or texts in UTF-8."""
    array = np.asarray(names)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "O" and all(isinstance(name, str) for name in array):
        array = array.astype(np.str_)
    if array.dtype.kind != "U" or array.ndim != 1 or any("\0" in name for name in array.tolist()):
        wanted = "whole numbers or texts are needed"
        raise InputError(f"the column {column!r} cannot name rows: {wanted}, not {array.dtype}")
    return np.char.encode(array, "utf-8")


def check_names(ray: Any, blocks: list[Any], column: str) -> tuple[int, str]:
    """Rows of all blocks and a digest of their names in order; a name that is there twice is an error."""
    groups = max(1, min(GROUPS, len(blocks)))
    split = ray.remote(num_returns=groups + 1)(split_names)
    answers = [split.remote(block, column, groups) for block in blocks]
    told = get(ray, [answer[0] for answer in answers], "blocks of names")
    if len({kind for kind, _, _ in told}) > 1:
        raise InputError(f"the column {column!r} holds whole numbers and texts: one of the two is needed")
    look = ray.remote(named_twice)
    twice = [look.remote(*(a[1 + g] for a in answers)) for g in range(groups)]
    for name in get(ray, twice, "groups of names"):
        if name is not None:
            raise InputError(f"the column {column!r} names {name!r} more than once: {TWICE}")
    rows, total = 0, 0
    for _, length, digest in told:
        total = (total + digest * pow(PRIME, rows, 2**64)) % 2**64
        rows += length
    return rows, f"{total:016x}"


def split_names(block: Any, column: str, groups: int) -> list[Any]:
    """(kind, rows, digest) of a block's names, and the names by group; equal names are in one group wherever they lie."""
    names = stored_names(block.column(column).to_numpy(), column)
    hashed = _hashed(names)
    powers = np.cumprod(np.full(len(names), PRIME, dtype=np.uint64))  # modulo 2^64
    told = (names.dtype.kind, len(names), int((hashed * powers).sum(dtype=np.uint64)))
    group = (hashed >> np.uint64(32)) % np.uint64(groups)
    return [told, *(names[group == g] for g in range(groups))]


def _hashed(names: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each name, the same in all processes. It does not depend on the width to which names are padded."""
    if names.dtype.kind == "S":
        width = -(-max(1, names.dtype.itemsize) // 4)
        words = names.astype(f"S{4 * width}").view(np.uint32).reshape(len(names), width).astype(np.uint64)
        factors = np.array([pow(PRIME, i + 1, 2**64) for i in range(width)], dtype=np.uint64)
        names = (words * factors).sum(axis=1, dtype=np.uint64)
    hashed: NDArray[np.uint64] = names.astype(np.uint64)
    hashed = (hashed ^ (hashed >> np.uint64(31))) * np.uint64(PRIME)
    hashed ^= hashed >> np.uint64(29)
    return hashed


def named_twice(*groups: NDArray[Any]) -> str | int | None:
    """A name that is there more than once."""
    names = np.sort(np.concatenate(groups))
    twice = np.flatnonzero(names[1:] == names[:-1])
    if not len(twice):
        return None
    name = names[twice[0]]
    return name.decode() if isinstance(name, bytes) else int(name)
