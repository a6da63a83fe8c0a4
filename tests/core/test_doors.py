"""What every door checks with: whole numbers, names, paths, arrays in archives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from badge.core.names import name_of, path_of
from badge.core.npz import DAMAGED, read_npz
from badge.core.numbers import flag, whole
from badge.errors import InputError, in_short


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 3.0, np.float32(3)])
def test_whole_numbers(value: Any) -> None:
    try:
        found = whole(value, "k")
    except InputError:
        assert isinstance(value, float | np.floating)  # a float is refused or taken, never rounded
    else:
        assert type(found) is int and found == 3


@pytest.mark.parametrize("value", [0, -1, 2.5, "3", None, True, float("nan"), [3]])
def test_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(InputError, match="k must be a whole number ≥ 1"):
        whole(value, "k")


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_what_is_no_flag(value: Any) -> None:
    with pytest.raises(InputError, match="bias"):
        flag(value, "bias")


def test_names_and_paths() -> None:
    assert path_of("a/b", "out") == Path("a/b") and name_of("digits", "the data set") == "digits"
    for bad in (b"a", 3, "a\0b", "x" * 300, "s3://bucket/x", "\ud800"):
        with pytest.raises(InputError, match=r"^out"):
            path_of(bad, "out")


def test_an_archive_that_holds_more_than_it_says(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    content = zipfile.ZipFile(tmp_path / "a.npz").read("x.npy")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("x.npy", content + b"more")
    with pytest.raises(DAMAGED, match="more than its header says"):
        read_npz(tmp_path / "b.npz")


def test_a_message_of_another_library_is_one_short_line() -> None:
    assert in_short(ValueError("a\nb" * 500)).count("\n") == 0 and len(in_short(ValueError("x" * 999))) <= 200
    assert in_short(KeyError()) == "KeyError"
