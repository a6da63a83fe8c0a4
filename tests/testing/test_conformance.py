"""Every sampler and every strategy passes through `badge.testing`, and wrong ones do not."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import badge
from badge.core.catalog import ONE_PASS, names
from badge.errors import InputError, RankError
from badge.features import Features
from badge.samplers import Ball, Gauss, coverage, kcenter, kdpp, kmeanspp, topk
from badge.samplers.checks import sampler
from badge.samplers.plain import plain_kcenter, plain_kmeanspp
from badge.strategies.bald import mean_of
from badge.testing import check_sampler, check_strategy, kdpp_law, kmeanspp_law
from badge.testing.checks import SMALL, made
from badge.testing.laws import Law


@sampler
def longest(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return topk(features.sq_norms.double().numpy(), k, rng)


@sampler
def after_the_first(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return kmeanspp(features, k, rng, given=features[:1])


def law_after_the_first(x: NDArray[np.float64], k: int) -> Law:
    return kmeanspp_law(x, k, given=x[:1])


#: sampler, its law, the errors with which it may refuse a pool
SAMPLERS: dict[str, tuple[Any, Any, Any]] = {
    "kmeanspp": (kmeanspp, kmeanspp_law, ()),
    "kmeanspp max-norm": (partial(kmeanspp, first="max-norm"), partial(kmeanspp_law, first="max-norm"), ()),
    "kmeanspp given": (after_the_first, law_after_the_first, ()),
    "kcenter": (kcenter, None, ()),
    "kdpp mcmc": (kdpp, None, RankError),
    "kdpp exact": (partial(kdpp, method="exact"), kdpp_law, RankError),
    "coverage gauss": (partial(coverage, kernel=Gauss(1.0)), None, ()),
    "coverage ball": (partial(coverage, kernel=Ball(0.5)), None, ()),
    "topk": (longest, None, ()),
    "plain kmeanspp": (sampler(plain_kmeanspp), kmeanspp_law, ()),
    "plain kcenter": (sampler(plain_kcenter), None, ()),
}


def test_every_sampler_of_ours_is_here() -> None:
    functions = {name for name in badge.samplers.__all__ if inspect.isfunction(getattr(badge.samplers, name))}
    assert functions == {name.split()[0] for name in SAMPLERS if not name.startswith("plain ")}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name: str) -> None:
    check_sampler(*SAMPLERS[name])


def of_gradients(out: badge.Outputs, k: int) -> Law:
    return kmeanspp_law(badge.gradient_embedding(out).as_matrix().double().numpy(), k)


STRATEGY_LAWS: dict[str, Callable[[badge.Outputs, int], Law]] = {
    "badge": of_gradients,
    "kmeanspp": lambda out, k: kmeanspp_law(out.embeddings.double().numpy(), k),
    "marg": lambda out, k: {(0, 4): 1.0},
    "rand": lambda out, k: {(i, j): 1 / 20 for i in range(5) for j in range(5) if i != j},
}
REFUSES: dict[str, Any] = {"kdpp": RankError, "bait": InputError}  # above the rank; of 1000 classes


@pytest.mark.parametrize("name", ONE_PASS)
def test_strategies(name: str) -> None:
    check_strategy(name, STRATEGY_LAWS.get(name), REFUSES.get(name, ()))


@pytest.mark.parametrize("name", names(lambda one: one.passes))
def test_strategies_that_compare_answers(name: str) -> None:
    """The second answer about each example is the first with the classes in reverse."""

    def asked_twice(
        outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: badge.Outputs | None = None
    ) -> NDArray[np.int64]:
        answers = [outputs, badge.Outputs(outputs.probabilities[:].flip(1), outputs.embeddings[:])]
        return badge.strategies.get(name)(mean_of(answers), k, rng)

    check_strategy(asked_twice)


def everyone_once() -> dict[str, list[int]]:
    out, found = made(300), {}
    for name in ONE_PASS:
        found[name] = badge.select_from(out, 15, name, seed=11, labeled=out[:1]).tolist()
    for name, (function, *_) in SAMPLERS.items():
        found[f"sampler {name}"] = function(badge.gradient_embedding(out), 15, np.random.default_rng(11)).tolist()
    return found


def test_same_seed_same_answer_in_a_fresh_process() -> None:
    code = "import json, test_conformance; print(json.dumps(test_conformance.everyone_once()))"
    paths = f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}; "
    done = subprocess.run([sys.executable, "-c", paths + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == everyone_once()


# --- wrong ones --------------------------------------------------------------------------------------------------------


def wrong(change: Callable[[Features, int, np.random.Generator], Any]) -> Any:
    """`kmeanspp` with its door, but with another answer."""
    change.__name__ = "wrong"
    return sampler(change)


HIDDEN = np.random.default_rng(0)


def writes(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    features.factors[-1][:1] *= 2  # type: ignore[operator]
    return kmeanspp(features, k, rng)


def no_block_twice(features: Features, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return kmeanspp(features, k, rng) if hasattr(features.factors[-1], "numpy") else kcenter(features, k, rng)


WRONG: dict[str, tuple[Any, Any, str]] = {
    "repeats": (wrong(lambda f, k, rng: np.zeros(k, dtype=np.int64)), None, r"'ordinary', 50 rows, k = 7: returned \[0, 0"),
    "one more": (wrong(lambda f, k, rng: np.arange(k + 1)), None, "not 7 distinct positions below 50"),
    "floats": (wrong(lambda f, k, rng: np.arange(k) * 1.0), None, "as int64"),
    "past the end": (wrong(lambda f, k, rng: np.arange(len(f) - k, len(f)) + 1), None, "below 50"),
    "unseeded": (wrong(lambda f, k, rng: kmeanspp(f, k, HIDDEN)), None, "'ordinary', .* with the same seed: "),
    "changes the pool": (wrong(writes), None, "changed the pool"),
    "by the layout": (wrong(no_block_twice), None, "on the same pool read in blocks"),
    "breaks on zeros": (wrong(lambda f, k, rng: kmeanspp(f, k, rng)[: int(1 / float(f.sq_norms.sum()) > 0) * k]), None,
                        "'zero gradients', 12 rows, k = 5: raised ZeroDivisionError"),
    "no door": (lambda f, k, rng: rng.permutation(len(f))[: int(k or 1)], None, "<lambda>: k = 0 of 40 was not refused"),
    "takes a seed": (lambda f, k, rng: kmeanspp(f, k, np.random.default_rng(rng)), None, "a seed in place of a generator"),
    "another law": (wrong(lambda f, k, rng: rng.permutation(len(f))[:k]), kmeanspp_law, "do not follow the law"),
    "a law of sets": (kmeanspp, kdpp_law, "do not follow the law"),
    "a fixed seed": (wrong(lambda f, k, rng: kmeanspp(f, k, np.random.default_rng(5))), kmeanspp_law, "follow the law"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_sampler_fails(name: str) -> None:
    function, law, message = WRONG[name]
    with pytest.raises(AssertionError, match=message) as caught:
        check_sampler(function, law)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_sampler_that_always_refuses_fails() -> None:
    def never(features: Features, k: int, rng: np.random.Generator) -> Any:
        raise RankError("no")

    with pytest.raises(AssertionError, match="'ordinary', 50 rows, k = 7: refused with RankError"):
        check_sampler(never, refuses=RankError)


@badge.strategies.declare(reads={"probabilities"})
def says_too_little(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> Any:
    return topk(outputs.embeddings[:, 0].numpy(), k, rng)


@badge.strategies.declare(blocks=True)
def takes_tensors(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> Any:
    return topk(outputs.embeddings.numpy()[:, 0], k, rng)


@badge.strategies.declare(labeled="if any")
def needs_labels(outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> Any:
    return np.arange(k) + 0 * len(labeled)


class Forgets:
    """A strategy with memory, of which `state` keeps nothing."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, outputs: badge.Outputs, k: int, rng: np.random.Generator, labeled: Any = None) -> Any:
        return (np.arange(k) + self.calls) % len(outputs)

    def picked(self, ids: Any) -> None:
        self.calls += 1

    def observe(self, ids: Any, correct: Any) -> None: ...

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None: ...


@pytest.mark.parametrize(
    ("strategy", "law", "message"),
    [
        (says_too_little, None, "'ordinary', .*: raised InputError: the outputs hold no embeddings"),
        (takes_tensors, None, "'PartRows' object has no attribute 'numpy'"),
        (needs_labels, None, "has no len"),
        (Forgets(), None, "restored from its state"),
        ("rand", of_gradients, "rand: 500 draws of 2 from 5 rows do not follow the law"),
    ],
)
def test_a_wrong_strategy_fails(strategy: Any, law: Any, message: str) -> None:
    with pytest.raises((AssertionError, TypeError, AttributeError), match=message):
        check_strategy(strategy, law)


def test_the_small_pool_is_what_its_law_needs() -> None:
    assert len(SMALL) == 5 and badge.gradient_embedding(SMALL).as_matrix().shape == (5, 6)
