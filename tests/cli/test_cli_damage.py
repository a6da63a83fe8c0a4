"""Damaged archives and arrays that are no table: refused in one line, or the right answer."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import badge
from select_command import N, P, Z, lines, refused, text


def test_damaged_archives_are_refused_or_hold_the_same_numbers(pick: Any) -> None:
    """Every answer is the right one: the archive's checksum is compared."""
    rng = np.random.default_rng(0)
    answers = 0
    for save in (np.savez, np.savez_compressed):
        save("whole.npz", embeddings=Z)
        whole = Path("whole.npz").read_bytes()
        for trial in range(60):
            content = bytearray(whole[: rng.integers(1, len(whole))] if trial % 4 == 0 else whole)
            for at in rng.integers(0, len(content), size=rng.integers(1, 4)):
                content[at] ^= 1 << int(rng.integers(8))
            Path("z.npz").write_bytes(content)
            code, out, err = pick("p.npy", "z.npz")
            assert (code, out) == (0, lines(7)) or (code == 2 and err.count("\n") == 1 and len(err) < 600), err
            answers += code == 0
    assert answers < 60  # a flipped date in a directory entry changes nothing


def test_an_encrypted_archive(pick: Any) -> None:
    np.savez("z.npz", embeddings=Z)
    content = bytearray(Path("z.npz").read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[6] |= 1
    content[entry + 8] |= 1
    Path("z.npz").write_bytes(content)
    assert zipfile.ZipFile("z.npz").infolist()[0].flag_bits & 1
    refused(pick("p.npy", "z.npz"), "encrypted")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.float64(3), "holds a single number"),
        (np.zeros(N, dtype=[("a", float)]), "numbers are needed"),
        (np.array(["a"] * N), "does not hold numbers"),
        (np.zeros(N, dtype=complex), "numbers are needed"),
        (np.zeros((N, 2, 2)), "must be a matrix with at least one row and column"),
        (np.zeros((0, 2)), "embeddings must be a matrix with at least one row and column, not of shape (0, 2)"),
    ],
)
def test_arrays_that_are_no_table(array: Any, message: str, pick: Any) -> None:
    np.save("odd.npy", array)
    refused(pick("p.npy", "odd.npy"), message)


@pytest.mark.parametrize("dtype", [">i4", ">i8", ">f4", ">f8", "<u2", "i1"])
def test_numbers_of_any_order_of_bytes(dtype: str, pick: Any) -> None:
    whole = (Z * 20).astype(dtype)
    np.save("other.npy", whole)
    expected = text(badge.select_from(badge.Outputs(P, whole.astype("f8")), 7))
    assert pick("p.npy", "other.npy")[:2] == (0, expected)


def test_a_cut_header(pick: Any) -> None:
    whole = Path("z.npy").read_bytes()
    for size in (0, 5, 9, 30, 60, 127):
        Path("cut.npy").write_bytes(whole[:size])
        refused(pick("p.npy", "cut.npy"), "cut.npy cannot be read")
