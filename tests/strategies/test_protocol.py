"""What strategies declare of themselves, and what they are given because of it."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import badge
from badge import strategies
from badge.core import catalog
from badge.core.rows import Remaining
from badge.errors import InputError, JournalError
from badge.learner.opening import describe
from badge.outputs import Outputs
from badge.strategies.choose import choose
from badge.strategies.coverage import probcover, uherding
from badge.strategies.explain import no_objective
from badge.strategies.protocol import REGISTRY, Declaration, Stateful, declaration, declare
from badge.strategies.request import Request
from badge.strategies.uncertainty import power_marg

core_rows = importlib.import_module("badge.core.rows")

RNG = np.random.default_rng(0)
OUT = badge.Outputs.from_logits(RNG.normal(size=(60, 3)), RNG.normal(size=(60, 5)))
OUT.expected_entropy = torch.zeros(60, 1)


def test_the_table_is_what_the_strategies_do() -> None:
    """Each row of the catalog against what its strategy shows when it runs."""
    assert tuple(REGISTRY) != () and set(REGISTRY) == set(catalog.STRATEGIES)
    for row in catalog.CATALOG:
        strategy, seen = strategies.get(row.name), set[str]()
        assert declaration(strategy) == Declaration(row.reads, row.blocks, row.labeled)
        assert ("bias" in inspect.signature(strategy).parameters) == row.bias
        strategy(Watched(seen), 4, np.random.default_rng(0), labeled=OUT[:5])
        assert seen == row.reads, row.name
        many = badge.Outputs(OUT.probabilities, OUT.embeddings, multilabel=True)
        many.expected_entropy = OUT.expected_entropy
        with nullcontext() if row.multilabel else pytest.raises(InputError, match="for multi-label outputs"):
            strategies.get(row.name)(many, 4, np.random.default_rng(0), labeled=many[:5])
        with nullcontext() if row.labeled != "required" else pytest.raises(InputError, match="conditioned on"):
            strategies.get(row.name)(OUT, 4, np.random.default_rng(0))
    assert [name for name in strategies.NAMES if isinstance(strategies.get(name), Stateful)] == ["albl"]


class Watched(Outputs):
    """Outputs that note what is looked at."""

    def __init__(self, seen: set[str]) -> None:
        super().__init__(OUT.probabilities, OUT.embeddings)
        self.expected_entropy = OUT.expected_entropy
        self.seen = seen

    def _there(self, array: Any, name: str) -> Any:
        self.seen.add(name)
        return super()._there(array, name)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("margin", "marg"), ("random", "rand"), ("BADGE", "badge"), ("k-center", "coreset"), ("kcenter_grad", "kcenter-grad"),
     ("entropie", "entropy"), ("k-means++", "kmeanspp"), ("typiclus", "typiclust")],
)  # fmt: skip
def test_did_you_mean(typed: str, meant: str) -> None:
    with pytest.raises(
        InputError, match=rf"unknown strategy '{re.escape(typed)}': did you mean {meant}\? Known: badge, "
    ):
        badge.select_from(OUT, 4, typed)


def test_no_guess_where_nothing_is_near() -> None:
    with pytest.raises(InputError, match=r"unknown strategy 'xyzzy'; known: badge, "):
        badge.select_from(OUT, 4, "xyzzy")


def test_the_readme_has_the_table() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert catalog.markdown() in readme
    assert all(name in strategies.__doc__ for name in ("registry", "catalog"))


WITHOUT_EMBEDDINGS = catalog.names(lambda one: "embeddings" not in one.reads and not one.passes)
WITH_OBJECTIVE = tuple(one for one in catalog.STRATEGIES if no_objective(one, labelled=True) is None)


@pytest.mark.parametrize(
    ("page", "words", "named"),
    [
        ("docs/arrays.md", "(LIST) look at no embeddings", WITHOUT_EMBEDDINGS),
        ("docs/arrays.md", "(LIST) look at embeddings alone", catalog.names(lambda one: one.reads == {"embeddings"})),
        ("docs/arrays.md", "(LIST) are refused: what", catalog.names(lambda one: not one.multilabel)),
        ("docs/arrays.md", "(LIST) after its first batch, have an objective", WITH_OBJECTIVE),
        ("docs/scikit-learn.md", "work with (LIST), which look at probabilities at most", WITHOUT_EMBEDDINGS),
        ("src/badge/strategies/explain.py", "has an objective: (LIST) after its first batch", WITH_OBJECTIVE),
    ],
)
def test_sentences_that_list_strategies_follow_the_table(page: str, words: str, named: tuple[str, ...]) -> None:
    text = " ".join((Path(__file__).parents[2] / page).read_text(encoding="utf-8").replace("`", "").split())
    one = "(?:" + "|".join(sorted(catalog.STRATEGIES, key=len, reverse=True)) + ")"
    found = re.search(words.replace("LIST", rf"{one}(?:,? (?:and |or )?{one})*"), text)
    assert found is not None, text
    assert sorted(re.findall(rf"{one}", found[1])) == sorted(named)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("reads", [(), ("probabilities",), ("embeddings",), ("probabilities", "embeddings"), None])
@pytest.mark.parametrize("exclude", [None, range(9)])
def test_a_strategy_is_given_what_it_reads(
    reads: Any, blocks: bool, exclude: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_rows, "CHUNK_BYTES", 8)  # so that the pool counts as large
    seen: list[tuple[Outputs, Outputs | None]] = []

    def own(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> Any:
        seen.append((outputs, labeled))
        return np.arange(k)

    ids = badge.select_from(OUT, 4, own if reads is None else declare(reads, blocks)(own), exclude=exclude)
    first = 0 if exclude is None else 9
    assert ids.tolist() == [first, first + 1, first + 2, first + 3]
    ((given, labeled),) = seen
    assert len(given) == 60 - first
    everything = {"probabilities", "embeddings"}
    for name in everything:
        if name not in (everything if reads is None else set(reads)):
            assert not getattr(given, f"has_{name}")  # what is not read is not gathered
            continue
        rows, expected = getattr(given, name), getattr(OUT, name)[first:]
        assert torch.equal(rows[:], expected)
        assert isinstance(rows, torch.Tensor) == (reads is None or not blocks or exclude is None)
        some = torch.tensor([3, 1])
        assert torch.equal(rows.index_select(0, some), expected[some])
    if exclude is None or reads == ():
        assert labeled is None
    else:  # one that says nothing of labelled examples is given them
        assert labeled is not None and torch.equal(labeled.probabilities, OUT.probabilities[:9])


PARTIALS: list[tuple[str, dict[str, Any]]] = [
    ("uherding", {}),
    ("bait-binary", {"strength": 0.5}),
    ("power-marg", {"beta": 2.0}),
    ("badge", {"bias": True}),
    ("wkmeans", {"beta": 2.0}),
]


@pytest.mark.parametrize(("name", "options"), PARTIALS)
def test_a_partial_declares_what_its_strategy_declares(name: str, options: dict[str, Any]) -> None:
    plain: Any = strategies.get(name)
    twice = functools.partial(functools.partial(plain, **options), **options)
    assert declaration(functools.partial(plain, **options)) == declaration(twice) == declaration(plain)
    said = declare(reads={"embeddings"})(functools.partial(plain, **options))
    assert declaration(said).reads == {"embeddings"}  # what the partial declares itself comes first


@pytest.mark.parametrize("name", ["uherding", "bait-binary", "power-marg"])
def test_a_partial_is_given_what_its_strategy_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In select and in a learner: the columns that are read, as rows that stay where they are, and the labelled outputs."""
    monkeypatch.setattr(core_rows, "CHUNK_BYTES", 8)  # so that the pool counts as large
    declared, seen = declaration(strategies.get(name)), list[Any]()

    @declare(**vars(declared))
    def watched(outputs: Outputs, k: int, rng: Any, labeled: Outputs | None = None, note: int = 0) -> Any:
        columns = [one for one in ("probabilities", "embeddings") if getattr(outputs, f"has_{one}")]
        seen.append(({one: type(getattr(outputs, one)) for one in columns}, labeled is not None))
        return np.arange(k)

    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    for strategy in (watched, functools.partial(watched, note=1)):
        badge.select(torch.nn.Linear(3, 3), x, 4, strategy=strategy, exclude=range(9))
        with badge.ActiveLearner(x, LogisticRegression(), classes=2, strategy=strategy, seed=0) as learner:
            learner.tell(range(6), [0, 1] * 3, unasked=True)
            learner.ask(4)
    assert seen[:2] == seen[2:] and len(seen) == 4
    for columns, labeled in seen:
        assert set(columns) == declared.reads and labeled == (declared.labeled != "no")
        assert torch.Tensor not in columns.values()


def test_a_partial_in_a_journal_is_named_by_its_function_and_options(tmp_path: Path) -> None:
    """An address in memory would be another in each process."""
    x = np.random.default_rng(0).normal(size=(40, 3))
    options: dict[str, Any] = {"classes": 2, "seed": 0, "journal": tmp_path / "j.jsonl"}

    def strategy(beta: float) -> Any:
        return functools.partial(power_marg, beta=beta)

    with badge.ActiveLearner(x, LogisticRegression(), strategy=strategy(2.0), **options) as learner:
        learner.tell(range(6), [0, 1] * 3, unasked=True)
        first = learner.ask(4).tolist()
    header = badge.journal.read(options["journal"])[0]["strategy"]
    assert header["class"] == "badge.strategies.uncertainty.Power"
    assert header["parameters"] == {"score": "badge.strategies.uncertainty.doubt", "beta": "2.0"}
    with badge.ActiveLearner(x, LogisticRegression(), strategy=strategy(2.0), **options) as again:
        assert again.pending.tolist() == first
    with pytest.raises(JournalError, match="its strategy is"):
        badge.ActiveLearner(x, LogisticRegression(), strategy=strategy(3.0), **options)
    assert describe(functools.partial(uherding)) == describe(uherding) == "badge.strategies.coverage.uherding"


def test_a_partial_that_no_call_fits_is_one_line() -> None:
    """Before anything runs, and never a labelled set that is silently another, or a bandit that does not learn."""
    loose: Any = probcover
    uses: list[tuple[Any, str]] = [
        (
            functools.partial(functools.partial(loose, detla=1), delta=1),
            "a partial of probcover cannot be called as (outputs, k, rng, labeled=None): got an unexpected keyword argument "
            "'detla'; probcover takes outputs, k, rng, labeled, delta",
        ),
        (functools.partial(uherding, k=4), "multiple values for argument 'k'; uherding takes outputs, k, rng, labeled"),
        (
            functools.partial(uherding, labeled=OUT[:3]),
            "labeled is given with every call: leave it out of the partial of",
        ),
        (
            functools.partial(strategies.get("albl")),
            "ALBL has a memory, which a partial of it hides: pass the object itself",
        ),
    ]
    for strategy, said in uses:
        for bias in (False, True):
            with pytest.raises(InputError, match=re.escape(said)):
                badge.select_from(OUT, 4, strategy, labeled=OUT[:5], bias=bias)
        with pytest.raises(InputError, match=re.escape(said)):
            badge.explain(OUT, [1, 2], strategy)
        with pytest.raises(InputError, match=re.escape(said)):
            badge.ActiveLearner(np.zeros((60, 2)), LogisticRegression(), classes=2, strategy=strategy)
    with pytest.raises(InputError, match=r"^a partial of power-marg cannot be called as .*; power-marg takes outputs"):
        badge.select_from(OUT, 4, functools.partial(power_marg, gamma=2.0))  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"leave it out for uherding$"):
        badge.select_from(OUT, 4, functools.partial(uherding), bias=True)


FLAGS = [
    ("badge", "bias"),
    ("badge-origin", "bias"),
    ("kdpp", "bias"),
    ("kcenter-grad", "bias"),
    ("typiclust", "squared"),
]


@pytest.mark.parametrize(("name", "option"), FLAGS)
def test_flags_of_strategies_are_flags(name: str, option: str) -> None:
    """Of numpy too, which was a traceback; a text counted as yes."""
    picks = [
        badge.select_from(OUT, 4, functools.partial(strategies.get(name), **{option: value})).tolist()
        for value in (True, np.True_)
    ]
    assert picks[0] == picks[1]
    with pytest.raises(InputError, match=f"^{option} must be True or False, not 'no'$"):
        badge.select_from(OUT, 4, functools.partial(strategies.get(name), **{option: "no"}))


def scaled(scale: float, outputs: Outputs, k: int, rng: Any, labeled: Any = None, by: Any = None) -> Any:
    return np.arange(k)


def test_a_partial_by_place_and_one_inside_another_are_told_apart_in_a_journal() -> None:
    one, two = (describe(functools.partial(scaled, scale)) for scale in (1.0, 2.0))
    assert isinstance(one, dict) and one["parameters"] == {"0": "1.0"} and one != two
    assert describe(functools.partial(declare()(functools.partial(scaled, 1.0)), by=1)) == {
        "class": f"{__name__}.scaled",
        "parameters": {"0": "1.0", "by": "1"},
    }
    inner = describe(functools.partial(scaled, 1.0, by=functools.partial(power_marg, beta=2.0)))
    assert isinstance(inner, dict) and " at 0x" not in str(inner) and "2.0" in inner["parameters"]["by"]


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by


def test_an_object_as_an_option_has_no_address_in_a_journal() -> None:
    """An address is another in the next process: the journal was refused there."""
    one, same, other = (describe(functools.partial(scaled, 1.0, by=Scale(by))) for by in (1, 1, 2))
    assert isinstance(one, dict) and one["parameters"]["by"] == f"{__name__}.Scale(by=1)"
    assert one == same != other
    several = describe(functools.partial(scaled, 1.0, by=[scaled, np.random.default_rng(0)]))
    assert "scaled" in str(several) and " at 0x" not in str(several)


@pytest.mark.parametrize("kind", [np.array, torch.tensor, pd.Series])
def test_large_arrays_as_options_are_told_apart_in_a_journal(kind: Any) -> None:
    """Their repr leaves the middle out, so a finished journal answered for other numbers."""
    costs = np.arange(5000.0)
    one, same = (describe(functools.partial(scaled, 1.0, by=kind(costs))) for _ in range(2))
    costs[2500] = 0
    assert one == same != describe(functools.partial(scaled, 1.0, by=kind(costs))) and len(str(one)) < 200


@dataclass(frozen=True)
class Costs:
    of: Any


NEAR = (1.1, 1.1 + 2**-40)
OTHERS: list[tuple[Any, Any]] = [
    *((kind([one]), kind([other])) for one, other in [NEAR] for kind in (np.array, pd.Series)),
    (torch.tensor(NEAR[:1], dtype=torch.float64), torch.tensor(NEAR[1:], dtype=torch.float64)),
    ([np.arange(5000.0)], [np.arange(5000.0) + (np.arange(5000) == 2500)]),
    (Costs(np.zeros(5000)), Costs(np.eye(1, 5000, 2500)[0])),
    (np.array([["a"], ["b"]], dtype=object), np.array([["a"], ["c"]], dtype=object)),
    ([Scale(1)], [Scale(2)]),
]


@pytest.mark.parametrize(("one", "other"), OTHERS, ids=lambda value: type(value).__name__)
def test_options_whose_repr_rounds_or_leaves_out_are_told_apart(one: Any, other: Any) -> None:
    said, same, others = (describe(functools.partial(scaled, by=by)) for by in (one, copy.deepcopy(one), other))
    assert said == same != others and len(str(said)) < 200


@pytest.mark.parametrize(
    "around", [set, frozenset, lambda items: [{"by": set(items)}], lambda items: Costs(set(items))]
)
def test_sets_as_options_are_named_in_order(around: Any) -> None:
    """Sets of texts have another order in each process, and the journal was refused there."""
    one, same = around([0, 8]), around([8, 0])
    assert repr(one) != repr(same) and describe(functools.partial(scaled, by=one)) == describe(
        functools.partial(scaled, by=same)
    )


def test_options_are_named_as_they_are_written() -> None:
    said = describe(functools.partial(scaled, by=[np.float64(0.5), (1,), {"a": {}}, torch.tensor(3)]))
    assert isinstance(said, dict) and said["parameters"]["by"] == "[0.5, (1,), {'a': {}}, 3]"
    said = describe(functools.partial(scaled, by=torch.Generator()))  # a class of C does not tell its arguments
    assert isinstance(said, dict) and said["parameters"]["by"] == "torch._C.Generator()"


def test_one_that_says_that_it_wants_no_labelled_outputs_gets_none() -> None:
    seen: list[Any] = []

    @declare(labeled="no")
    def own(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> Any:
        seen.append(labeled)
        return np.arange(k)

    badge.select_from(OUT, 4, own, exclude=range(9))
    badge.select_from(OUT, 4, own, labeled=OUT[:3])
    assert seen == [None, None]


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("reads", "everything", "a strategy reads a set of embeddings, probabilities, not 'everything'"),
        ("reads", {"gradients"}, "a strategy reads a set of embeddings, probabilities, not {'gradients'}"),
        ("reads", 3, "a strategy reads a set of embeddings, probabilities, not 3"),
        ("blocks", "yes", "a strategy's blocks is True or False, not 'yes'"),
        ("labeled", True, "a strategy's labeled is one of 'no', 'if any', 'required', not True"),
    ],
)
def test_a_wrong_declaration(attribute: str, value: Any, message: str) -> None:
    def own(outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None) -> Any:
        return np.arange(k)

    setattr(own, attribute, value)
    with pytest.raises(InputError, match=re.escape(message)):
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
    for name in catalog.ONE_PASS:
        learner = badge.ActiveLearner(
            np.zeros((60, 2)), _Constant(), classes=3, strategy=name, seed=5, initial=labels,
            predict=lambda model, pool: OUT,
        )  # fmt: skip
        ids = learner.ask(6)
        left = Remaining(0, 60, np.arange(12))
        same = choose(Request(strategies.get(name), 6, derive(5, "ask", 0), left, OUT[:12]), OUT)
        if name != "albl":  # whose observation comes before its pick
            assert (ids == same).all()
        assert set(ids.tolist()) <= set(range(12, 60))


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
            InputError,
            match="hold no embeddings: pass embeddings= too, or use conf, marg, entropy, rand, power-marg, power-",
        ):
            badge.select_from(only, 7, name, labeled=OUT)
    with pytest.raises(InputError, match=r"picks are explained by .*hold no embeddings: pass embeddings= too$"):
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


def test_what_cannot_be_called_as_a_strategy_is_refused_with_what_it_takes() -> None:
    def no_labeled(outputs, k, rng):  # type: ignore[no-untyped-def]
        return rng.permutation(len(outputs))[:k]

    with pytest.raises(InputError, match=r"labeled=None\), and no_labeled takes \(outputs, k, rng\)"):
        badge.strategies.get(no_labeled)
    with pytest.raises(InputError, match=r"json:dumps takes \(obj, \*"):
        badge.strategies.get("json:dumps")
    fine: list[Any] = [lambda *given, **more: None, lambda o, k, rng, labeled=None: None]
    assert [badge.strategies.get(own) for own in fine] == fine
