"""What strategies declare of themselves, and what they are given because of it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge import strategies
from badge.core import catalog
from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies import select as door
from badge.strategies.protocol import Stateful, declare

RNG = np.random.default_rng(0)
OUT = badge.Outputs.from_logits(RNG.normal(size=(60, 3)), RNG.normal(size=(60, 5)))


def test_what_ours_declare() -> None:
    found = {name: strategies.reads(strategies.get(name)) for name in strategies.NAMES}
    assert [name for name, reads in found.items() if reads == "nothing"] == ["rand"]
    assert [name for name, reads in found.items() if reads == "probabilities"] == ["conf", "marg", "entropy"]
    conditioned = [name for name in strategies.NAMES if strategies.needs_labeled(strategies.get(name))]
    assert conditioned == ["coreset", "albl"]
    assert [name for name in strategies.NAMES if isinstance(strategies.get(name), Stateful)] == ["albl"]
    # what the command line says before torch is loaded
    assert tuple(conditioned) == catalog.CONDITIONED
    assert tuple(n for n, reads in found.items() if reads in ("nothing", "probabilities")) == catalog.WITHOUT_EMBEDDINGS
    assert tuple(n for n, reads in found.items() if reads == "vectors") == catalog.COLD
    wanting = [name for name in strategies.NAMES if strategies.wants_labeled(strategies.get(name))]
    assert sorted(wanting) == sorted([*catalog.CONDITIONED, *catalog.COLD])
    takes_bias = [n for n in strategies.NAMES if "bias" in inspect.signature(strategies.get(n)).parameters]
    assert tuple(takes_bias) == catalog.ON_GRADIENTS


@pytest.mark.parametrize("reads", ["nothing", "probabilities", "embeddings", "blocks", "vectors", None])
@pytest.mark.parametrize("exclude", [None, range(9)])
def test_a_strategy_is_given_what_it_reads(reads: Any, exclude: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "CHUNK_BYTES", 8)  # so that the pool counts as large
    seen: list[Outputs] = []

    def own(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> Any:
        seen.append(outputs)
        return np.arange(k)

    ids = badge.select_from(OUT, 4, own if reads is None else declare(reads=reads)(own), exclude=exclude)
    first = 0 if exclude is None else 9
    assert ids.tolist() == [first, first + 1, first + 2, first + 3]
    (given,) = seen
    assert len(given) == 60 - first
    if reads == "nothing":
        assert not given.has_probabilities and not given.has_embeddings
        return
    if reads == "vectors":
        assert torch.equal(given.embeddings[:], OUT.embeddings[first:])
        assert given.has_probabilities == (exclude is None)  # what is not read is not copied
        return
    expected = OUT.probabilities[first:]
    assert torch.equal(given.probabilities[:], expected)
    assert isinstance(given.probabilities, torch.Tensor) == (reads in ("embeddings", None) or exclude is None)
    if reads == "probabilities" and exclude is not None:
        assert not given.has_embeddings  # they were not gathered
    else:
        assert torch.equal(given.embeddings[:], OUT.embeddings[first:])
        ids = torch.tensor([3, 1])
        assert torch.equal(given.embeddings.index_select(0, ids), OUT.embeddings[first:][ids])


def test_a_wrong_declaration() -> None:
    def own(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> Any:
        return np.arange(k)

    own.reads = "everything"  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"a strategy reads 'nothing', 'probabilities', .* not 'everything'"):
        badge.select_from(OUT, 4, own)


@pytest.mark.parametrize(
    "answer",
    [[0.7, 1.7], [0.0, 1.0], [0, 0], [0, 60], [-1, 2], [0], [[0, 1]], ["a", "b"], [True, False], None, [None, 1], 3],
)
def test_a_wrong_answer_is_refused_and_not_mended(answer: Any) -> None:
    with pytest.raises(InputError, match="where 2 distinct positions") as error:
        badge.select_from(OUT, 2, lambda outputs, k, rng, labeled=None: answer)
    assert len(str(error.value)) < 300
    learner = badge.ActiveLearner(
        np.zeros((60, 2)), _Constant(), classes=3, strategy=lambda outputs, k, rng, labeled=None: answer,
        initial={58: 0, 59: 1}, predict=lambda model, pool: OUT,
    )  # fmt: skip
    with pytest.raises(InputError, match="where 2 distinct positions"):
        learner.ask(2)


class _Constant:
    def fit(self, examples: Any, labels: Any, rng: np.random.Generator) -> Any:
        return None


def test_tensors_and_lists_are_right_answers() -> None:
    for answer in ([1, 0], torch.tensor([1, 0]), np.array([1, 0], dtype=np.uint8), (np.int64(1), 0)):
        ids = badge.select_from(OUT, 2, lambda outputs, k, rng, labeled=None, answer=answer: answer)
        assert ids.tolist() == [1, 0] and ids.dtype == np.int64


def test_the_learner_and_select_from_are_one() -> None:
    """The same candidates, the same generator: the same picks, for every strategy."""
    from badge.core.rng import derive

    labels = {int(i): int(i) % 3 for i in range(12)}
    for name in strategies.NAMES:
        learner = badge.ActiveLearner(
            np.zeros((60, 2)), _Constant(), classes=3, strategy=name, seed=5, initial=labels,
            predict=lambda model, pool: OUT,
        )  # fmt: skip
        ids = learner.ask(6)
        left = np.arange(12, 60)
        same = door.choose(strategies.get(name), OUT, 6, derive(5, "ask", 0), left, OUT[:12])
        if name != "albl":  # whose observation comes before its pick
            assert (ids == same).all()
        assert set(ids.tolist()) <= set(left.tolist())


def test_rand_asks_for_no_pass_over_the_pool() -> None:
    def predict(model: Any, pool: Any) -> Outputs:
        raise AssertionError("nothing of it is read")

    learner = badge.ActiveLearner(
        np.zeros((60, 2)), _Constant(), classes=3, strategy="rand", initial={0: 0, 1: 1}, predict=predict
    )
    assert len(set(learner.ask(9).tolist()) - {0, 1}) == 9


@pytest.mark.parametrize("name", ["badge", "kdpp", "kcenter-grad"])
def test_bias(name: str) -> None:
    """With bias=True embeddings have one more entry, 1: the same picks as from embeddings that have it."""
    with_one = badge.Outputs(OUT.probabilities, torch.nn.functional.pad(OUT.embeddings, (0, 1), value=1.0))
    for exclude in (None, range(9)):
        ids = badge.select_from(OUT, 8, name, exclude=exclude, bias=True)
        assert (ids == badge.select_from(with_one, 8, name, exclude=exclude)).all()
    zeros = badge.Outputs(OUT.probabilities, torch.zeros_like(OUT.embeddings))
    assert badge.gradient_embedding(zeros, bias=True).sq_norms.min() > 0
    net = torch.nn.Linear(5, 3)
    ids = badge.select(net, OUT.embeddings.float(), 8, strategy=name, bias=True)
    assert (ids == badge.select_from(badge.predict(net, OUT.embeddings.float()), 8, name, bias=True)).all()


@pytest.mark.parametrize("name", ["coreset", "conf", "marg", "entropy", "albl", "rand"])
def test_bias_is_for_gradients(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"bias is for strategies on gradients \(badge, .*\): leave it out for {name}"
    ):
        badge.select_from(OUT, 8, name, labeled=OUT, bias=True)


def test_outputs_without_embeddings() -> None:
    p = OUT.probabilities.numpy()
    only = badge.Outputs(probabilities=p)
    assert repr(only) == "Outputs(60 examples, 3 probability columns)" and not only.has_embeddings
    for name in ("conf", "marg", "entropy", "rand"):
        for exclude in (None, [1, 2]):
            expected = badge.select_from(OUT, 7, name, exclude=exclude)
            assert (badge.select_from(only, 7, name, exclude=exclude) == expected).all()
    assert (badge.select_from(badge.Outputs.from_logits(np.log(p)), 7, "marg") >= 0).all()
    for name in ("badge", "kdpp", "kcenter-grad", "coreset", "albl"):
        with pytest.raises(
            InputError, match="hold no embeddings: pass embeddings= too, or use conf, marg, entropy or rand"
        ):
            badge.select_from(only, 7, name, labeled=OUT)
    with pytest.raises(InputError, match="hold no embeddings"):
        badge.explain(only, [1])


def test_outputs_without_probabilities() -> None:
    only = badge.Outputs(embeddings=OUT.embeddings)
    expected = badge.select_from(OUT, 7, "coreset", labeled=OUT[:3])
    assert (badge.select_from(only, 7, "coreset", labeled=only[:3]) == expected).all()
    for name in ("badge", "conf", "marg", "entropy"):
        with pytest.raises(InputError, match="the outputs hold no probabilities: pass probabilities= too"):
            badge.select_from(only, 7, name)
    with pytest.raises(InputError, match="neither probabilities nor embeddings were given"):
        badge.Outputs()
    with pytest.raises(InputError, match=r"embeddings must be a matrix with .* not of shape \(60,\)"):
        badge.Outputs(embeddings=OUT.embeddings[:, 0])
