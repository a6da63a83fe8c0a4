"""Items of two texts: pairs are pairs, and a label's name is never read as an input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import badge
from badge.errors import InputError

TEXTS = [f"film number {i} was {'very ' * (i % 5)}long" for i in range(40)]
LABELS = ["good", "bad"] * 20


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)  # type: ignore[no-any-return]


def lengths(examples: list[Any]) -> Tensor:
    pairs = [(e, "") if isinstance(e, str) else e for e in examples]
    return torch.tensor([[len(a), len(b)] for a, b in pairs], dtype=torch.float32)


@pytest.mark.parametrize("kind", ["list", "loader", "dataset", "first"])
def test_a_text_and_the_name_of_its_label_are_refused(kind: str) -> None:
    pool: Any = list(zip(TEXTS, LABELS, strict=True))
    if kind == "first":
        pool = [(label, text) for text, label in pool]
    elif kind == "dataset":
        pool = torch.utils.data.Subset(pool, range(len(pool)))
    elif kind == "loader":
        pool = torch.utils.data.DataLoader(pool, batch_size=8)
    with pytest.raises(InputError, match=r"(first|second) text of the items looks like a label \(2 values in 40 items"):
        badge.predict(Reads(), pool, processor=lengths)


def test_a_known_class_is_a_label_however_few_items_there_are() -> None:
    net = Reads()
    net.config = SimpleNamespace(label2id={"good": 0, "bad": 1})  # type: ignore[assignment]
    with pytest.raises(InputError, match="the second text of the items looks like a label"):
        badge.predict(net, [("a film", "good"), ("a book", "bad")], processor=lengths)
    assert len(badge.predict(net, [("a film", "of the year"), ("a book", "to read")], processor=lengths)) == 2


def test_pairs_are_read_as_pairs() -> None:
    pool = [(text, f"an answer to {text}") for text in TEXTS]
    assert len(badge.predict(Reads(), pool, processor=lengths)) == 40
    page = "a long page of some document that many questions are about, word after word"
    assert len(badge.predict(Reads(), [(text, page) for text in TEXTS], processor=lengths)) == 40


def test_dicts_say_that_both_are_inputs() -> None:
    pool = [{"text": a, "text_pair": b} for a, b in zip(TEXTS, LABELS, strict=True)]
    assert len(badge.predict(Reads(), pool, processor=lengths)) == 40
