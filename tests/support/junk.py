"""Junk: what arguments and files should not be, drawn from a generator."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

__all__ = ["Odd", "damaged", "junk"]

Rng = np.random.Generator


class Odd:
    """Claims to be a sequence and is none."""

    SAYS = "not one item can be had"

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: Any) -> Any:
        raise RuntimeError(self.SAYS)

    def __repr__(self) -> str:
        return "Odd()"


def _shape(rng: Rng) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.choice([0, 1, 2, 3, 5, 12], size=rng.integers(0, 4)))


def _array(rng: Rng) -> np.ndarray:
    kinds = ["f2", "f4", "f8", ">f4", ">i8", "i1", "u2", "u8", "?", "c8", "O", "U3", "S2", "M8[s]", "m8[s]"]
    array = np.zeros(_shape(rng), dtype=kinds[rng.integers(len(kinds))])
    if array.dtype.kind == "f" and array.size:
        array.flat[:] = rng.choice([0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 6e4, 1e-8], size=array.size)
    if array.dtype.kind in "iu" and array.size:
        array.flat[:] = rng.integers(0, 100, size=array.size)
    return array


def _tensor(rng: Rng) -> torch.Tensor:
    kinds = [
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int64,
        torch.bool,
        torch.complex64,
    ]
    tensor = torch.zeros(_shape(rng), dtype=kinds[rng.integers(len(kinds))])
    wrapped: list[Callable[[], torch.Tensor]] = [
        lambda: tensor,
        lambda: tensor.to_sparse() if tensor.ndim else tensor,
        lambda: torch.zeros(5, 3, requires_grad=True),
        lambda: torch.empty(5, 3, device="meta"),
        lambda: torch.full((12, 3), float("nan")),
        lambda: torch.ones(12, 3)[:, ::2].T,
    ]
    return wrapped[rng.integers(len(wrapped))]()


def _other(rng: Rng) -> Any:
    values: list[Callable[[], Any]] = [
        lambda: np.ma.masked_array(np.full((12, 3), 1 / 3), mask=np.eye(12, 3, dtype=bool)),
        lambda: np.zeros(12, dtype=[("a", "f4"), ("b", "i4")]),
        lambda: np.full((12, 3), 1 / 3)[::-1],
        lambda: pd.DataFrame({"a": [1.0, None, 2.0], "b": ["x", "y", None]}),
        lambda: pd.Series(["a", None, "c"]),
        lambda: (i for i in range(3)),
        lambda: np.random.default_rng(0),
        lambda: torch.nn.Linear(3, 2),
        lambda: {0, "a"},
        lambda: {"a": [1, 2], "b": [1]},
        lambda: {1: 2, "x": None},
        lambda: np.array([[1, 2], [3, 4]], dtype=object),
        Odd,
        object,
    ]
    return values[rng.integers(len(values))]()


PLAIN: list[Any] = [
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**70, -(2**70), 0.0, 1.5, -0.5, float("nan"), float("inf"), 1e308, 1j,
    "", "x", "badge", "rand", "a\nb", "\x00", "\ud800", "x" * 700, "1", "no/such/place", "math:sqrt", ":", "a:b:c", b"x",
    (), [], [[]], [1, [2]], [[1.0], [1.0, 2.0]], [0, 0], [-1], [5, 3], [0.5], ["a", "b"], [None], [True, False], [2**70],
    {}, {"a": 1}, set(), {1.5}, range(3), range(-3, 0), slice(None), Fraction(1, 3), Path("no/such"), b"\xff",
    datetime.date(2020, 1, 1),
    np.int8(5), np.uint64(2**63), np.float32("nan"), np.str_("badge"), np.datetime64("2020-01-01"), int, Exception("x"), len,
    lambda *a, **k: [0, 1], lambda: None, NotImplemented, ...,
]  # fmt: skip


def junk(rng: Rng) -> Any:
    """A value that hardly anything is meant to take."""
    makers: list[Callable[[Rng], Any]] = [_array, _tensor, _other, lambda rng: PLAIN[rng.integers(len(PLAIN))]]
    return makers[rng.choice(4, p=[0.25, 0.15, 0.15, 0.45])](rng)


def damaged(content: bytes, rng: Rng) -> bytes:
    """The content of a file after an accident: cut, flipped, doubled, replaced."""
    changed = bytearray(content)
    kind = rng.integers(6) if changed else 3
    if kind == 0:
        return bytes(changed[: rng.integers(len(changed) + 1)])
    if kind == 1:
        for at in rng.integers(0, max(len(changed), 1), size=rng.integers(1, 6)):
            changed[at] = int(rng.integers(256))
        return bytes(changed)
    if kind == 2:
        at = int(rng.integers(len(changed) + 1))
        return bytes(changed[:at]) + rng.bytes(int(rng.integers(1, 30))) + bytes(changed[at:])
    if kind == 3:
        return rng.bytes(int(rng.integers(0, 300)))
    if kind == 4:
        lines = content.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    texts = [
        b"",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"#",
        b",,,\n",
        b'"',
        b"nan,inf\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"1e999,2\n",
        b"9" * 5000,
    ]
    text = texts[rng.integers(len(texts))]
    return text + content if rng.random() < 0.5 else text
