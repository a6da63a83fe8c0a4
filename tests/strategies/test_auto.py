"""`auto`: typical examples before there is a label, then uherding; in select_from, in a learner and on the page."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.labelling.command import MOST_FOR_AUTO, Options, _picks_by
from badge.training import Frozen

RNG = np.random.default_rng(0)
Z = np.concatenate([RNG.normal(size=(30, 4)) + 6 * np.eye(4)[i] for i in range(3)])
OUT = badge.Outputs.from_logits(Z @ RNG.normal(size=(4, 3)), Z)


def test_typical_examples_first_and_then_uherding() -> None:
    def picks(strategy: str, **options: Any) -> list[int]:
        return badge.select_from(OUT, k=6, seed=0, strategy=strategy, **options).tolist()

    assert picks("auto") == picks("typiclust") != picks("uherding")
    assert picks("auto", exclude=[0, 40]) == picks("uherding", exclude=[0, 40]) != picks("typiclust", exclude=[0, 40])


def test_a_learner_with_embeddings_begins_with_typical_examples(tmp_path: Path) -> None:
    """The journal names what picked the first batch, so that it goes on the same way."""
    options: dict[str, Any] = {"classes": 3, "seed": 0, "strategy": "auto"}
    with badge.ActiveLearner(Z, Frozen(torch.nn.Identity()), journal=tmp_path / "j.jsonl", **options) as learner:
        first = learner.ask(6).tolist()
    assert badge.journal.read(tmp_path / "j.jsonl")[0]["first"] == "typiclust"
    with badge.ActiveLearner(Z, Frozen(torch.nn.Identity()), classes=3, seed=0, first="typiclust") as named:
        assert named.ask(6).tolist() == first
    with badge.ActiveLearner(Z, Frozen(torch.nn.Identity()), journal=tmp_path / "j.jsonl", **options) as again:
        assert sorted(again.pending.tolist()) == sorted(first)


@pytest.mark.parametrize(
    ("items", "kind", "options", "expected"),
    [
        (MOST_FOR_AUTO, "text", {}, ("auto", "typiclust")),
        (MOST_FOR_AUTO + 1, "text", {}, ("badge", "typiclust")),
        (10, "image", {}, ("badge", None)),
        (10, "image", {"encoder": "none"}, ("badge", None)),
        (MOST_FOR_AUTO, "image", {"encoder": "hf:vit"}, ("auto", "typiclust")),
        (MOST_FOR_AUTO + 1, "image", {"encoder": "hf:vit"}, ("badge", "typiclust")),
        (10, "image", {"encoder": "hf:vit", "per_item": 2}, ("badge", None)),
        (10, "image", {"encoder": "hf:vit", "strategy": "marg"}, ("marg", "typiclust")),
        (10, "row", {}, ("badge", None)),
        (10, "text", {"per_item": 2}, ("badge", None)),
        (10, "text", {"model": "m:make"}, ("badge", None)),
        (10, "text", {"strategy": "rand"}, ("rand", None)),
    ],
)
def test_what_the_page_picks_by(
    items: int, kind: str, options: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    class Pool(SimpleNamespace):
        def __len__(self) -> int:
            return items

    source: Any = Pool(kind=kind)
    chosen = Options("a,b", Path("j.jsonl"), **options)
    assert _picks_by(None, chosen, source) == expected
    begun: Any = SimpleNamespace(strategy="marg", first=None)
    assert _picks_by(begun, chosen, source) == (options.get("strategy", "marg"), None)
