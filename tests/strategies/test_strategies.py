"""Strategies: each against a case worked by hand, ties by the rng, the bandit's sums, and the door `select_from`."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

import badge
from badge.core.catalog import ONE_PASS, spec
from badge.errors import InputError, UnknownNameError
from badge.samplers import topk
from badge.samplers.plain import plain_kcenter, plain_kmeanspp
from badge.strategies import ALBL, NAMES, PAPER
from badge.testing.laws import chi_square
from laws import ACCEPTED

core_rows = importlib.import_module("badge.core.rows")
rows = importlib.import_module("badge.features.rows")
arrays = importlib.import_module("badge.core.arrays")

P = np.array([[0.5, 0.45, 0.05], [0.7, 0.16, 0.14], [0.34, 0.33, 0.33], [0.98, 0.01, 0.01], [0.52, 0.24, 0.24]])
H = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 5.0], [3.0, 4.0], [-8.0, 0.0]])
OUT = badge.Outputs(P, H)


def random_outputs(n: int, c: int = 4, d: int = 6, seed: int = 0) -> badge.Outputs:
    rng = np.random.default_rng(seed)
    return badge.Outputs.from_logits(2 * rng.normal(size=(n, c)), rng.normal(size=(n, d)))


# --- by hand -----------------------------------------------------------------------------------------------------------


def test_registry() -> None:
    assert NAMES[:9] == ["badge", "coreset", "conf", "marg", "entropy", "albl", "rand", "kdpp", "kcenter-grad"]
    assert NAMES[9:11] == ["kmeanspp", "typiclust"]
    assert NAMES[:7] == PAPER
    assert badge.strategies.get("albl") is not badge.strategies.get("albl")  # a fresh bandit each time


def test_confidence() -> None:
    """Largest probabilities 0.5, 0.7, 0.34, 0.98, 0.52: the smallest first."""
    assert badge.select_from(OUT, 5, "conf").tolist() == [2, 0, 4, 1, 3]


def test_margin() -> None:
    """Margins 0.05, 0.54, 0.01, 0.97, 0.28."""
    assert badge.select_from(OUT, 5, "marg").tolist() == [2, 0, 4, 1, 3]
    two = badge.Outputs([[0.6, 0.4, 0.0], [0.5, 0.25, 0.25]], [[1.0], [1.0]])
    assert badge.select_from(two, 1, "marg").tolist() == [0]  # margin 0.2 against 0.25, where conf says 1
    assert badge.select_from(two, 1, "conf").tolist() == [1]


def test_entropy() -> None:
    """Entropies in nats: 0.856, 0.818, 1.099, 0.112, 1.025; 0 ln 0 counts as 0."""
    assert badge.select_from(OUT, 5, "entropy").tolist() == [2, 4, 0, 1, 3]
    sure = badge.Outputs([[1.0, 0.0], [0.99, 0.01]], [[1.0], [1.0]])
    assert badge.select_from(sure, 2, "entropy").tolist() == [1, 0]


def test_coreset() -> None:
    """From a labelled point at the origin: distances 0, 1, 5, 5, 8. Then (0, 5) and (3, 4) tie at 5: the lowest."""
    labeled = badge.Outputs([[0.5, 0.5, 0.0]], [[0.0, 0.0]])
    assert badge.select_from(OUT, 3, "coreset", labeled=labeled).tolist() == [4, 2, 3]
    far = badge.Outputs(P[:2], [[-8.0, 0.0], [0.0, 0.0]])  # conditioned on all labelled points, not on one
    assert badge.select_from(OUT, 2, "coreset", labeled=far).tolist() == [2, 3]


def test_exclude_stands_in_for_labeled() -> None:
    assert badge.select_from(OUT, 3, "coreset", exclude=[0]).tolist() == [4, 2, 3]


def test_gradient_strategies_are_their_samplers() -> None:
    out = random_outputs(60)
    g = badge.gradient_embedding(out)
    rng = np.random.default_rng
    assert badge.select_from(out, 9, "badge", seed=3).tolist() == badge.samplers.kmeanspp(g, 9, rng(3)).tolist()
    assert badge.select_from(out, 9, "kdpp", seed=3).tolist() == badge.samplers.kdpp(g, 9, rng(3)).tolist()
    picks = badge.select_from(out, 9, "kcenter-grad", seed=3, labeled=out[:3]).tolist()
    assert picks == plain_kcenter(g, 9, rng(3)).tolist()  # not conditioned, as in the paper's ablation
    assert set(plain_kmeanspp(g, 60, rng(0)).tolist()) == set(range(60))


def test_rand_is_uniform() -> None:
    counts = Counter(int(badge.select_from(OUT, 1, "rand", seed=s)[0]) for s in range(1000))
    assert chi_square(counts, dict.fromkeys(range(5), 0.2)) > ACCEPTED


@pytest.mark.parametrize("name", ["conf", "marg", "entropy"])
def test_ties_are_broken_by_the_rng(name: str) -> None:
    """An untrained or a saturated model ties everywhere: by position, such a batch would follow the order of the file."""
    level = badge.Outputs(np.tile([[0.6, 0.4]], (6, 1)), np.ones((6, 1)))
    counts = Counter(int(i) for s in range(600) for i in badge.select_from(level, 2, name, seed=s))
    assert chi_square(counts, dict.fromkeys(range(6), 1 / 6)) > ACCEPTED


def test_topk_order() -> None:
    scores = np.array([1.0, 3.0, 2.0, 3.0, 2.0, 0.0])
    seen = set()
    for seed in range(60):
        picks = topk(scores, 4, np.random.default_rng(seed)).tolist()
        assert scores[picks].tolist() == [3, 3, 2, 2]
        seen.add(tuple(picks))
    assert seen == {(1, 3, 2, 4), (3, 1, 2, 4), (1, 3, 4, 2), (3, 1, 4, 2)}
    counts = Counter(int(topk(scores, 3, np.random.default_rng(s))[2]) for s in range(400))
    assert chi_square(counts, {2: 0.5, 4: 0.5}) > ACCEPTED


# --- the bandit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "p_min"), [(1, 0.5), (2, np.sqrt(np.log(2) / 4)), (20, 0.131638), (100, 0.0588705)])
def test_p_min_comes_from_the_arms_and_the_horizon(rounds: int, p_min: float) -> None:
    """libact's √(ln K / (K T)); capped at 1/K, where it would make the other probabilities negative."""
    assert ALBL(rounds=rounds).p_min == pytest.approx(p_min, rel=1e-5)


def test_bandit_by_hand() -> None:
    """EXP4.P: one round, every number worked out."""
    bandit = ALBL(p_min=0.05, delta=0.1, rounds=100)
    assert bandit.probabilities().tolist() == [0.5, 0.5]
    pool, labeled = badge.Outputs(P[1:], H[1:]), badge.Outputs(P[:1], H[:1])
    rng = np.random.default_rng(0)
    picks = bandit(pool, 2, rng, labeled=labeled)
    arms = {"coreset": [3, 1], "conf": [1, 3]}  # positions in the pool of four
    assert bandit.drawn is not None
    assert picks.tolist() == list(arms.values())[bandit.drawn]
    bandit.picked(np.array([14, 12]) if bandit.drawn == 0 else np.array([12, 14]))
    assert bandit.importance == {12: 1.0, 14: 1.0}  # both arms asked for both: probability 0.5 + 0.5

    bandit.observe(np.array([10, 12, 14]), np.array([True, False, True]))
    reward = 1 / (5 * 100)  # of the queried 12 and 14 one is right; 10 was not queried; five examples, T = 100
    bonus = np.sqrt(np.log(2 / 0.1) / (2 * 100))
    np.testing.assert_allclose(
        bandit.log_weights, 0.05 / 2 * np.full(2, reward + bonus / 0.5)
    )  # both arms advised both
    before = bandit.log_weights.copy()
    bandit.observe(np.array([10]), np.array([True]))  # no batch since: no reward
    assert (bandit.log_weights == before).all()


def test_inclusion_probabilities() -> None:
    """An example that one arm alone asked for weighs 1 / p of that arm, and that arm alone is credited."""
    pool = badge.Outputs([[0.51, 0.49], [0.9, 0.1], [0.99, 0.01]], [[0.1], [0.2], [9.0]])
    labeled = badge.Outputs([[0.5, 0.5]], [[0.0]])  # coreset asks for row 2, conf for row 0
    for seed in range(4):
        bandit = ALBL(p_min=0.2, rounds=100)
        bandit.log_weights = np.log([3.0, 1.0])  # p = 0.6 · (3/4, 1/4) + 0.2 = (0.65, 0.35)
        picks = bandit(pool, 1, np.random.default_rng(seed), labeled)
        assert picks.tolist() == [2 if bandit.drawn == 0 else 0]
        bandit.picked(np.array([77]))
        weight = 1 / (0.65, 0.35)[bandit.drawn or 0]
        assert bandit.importance[77] == pytest.approx(weight)
        drawn, before = bandit.drawn or 0, bandit.log_weights.copy()
        bandit.observe(np.array([1, 77]), np.array([False, True]))
        reward = weight / (4 * 100)
        bonus = np.sqrt(np.log(2 / 0.1) / (2 * 100))
        p = (0.65, 0.35)[drawn]
        assert bandit.log_weights[drawn] - before[drawn] == pytest.approx(0.1 * (reward + bonus) / p)
        assert bandit.log_weights[1 - drawn] - before[1 - drawn] == pytest.approx(0.1 * bonus / (1 - p))


class Libact:
    """The formulas of libact's ActiveLearningByLearning and Exp4P for one example a query, written down anew."""

    def __init__(self, arms: int, horizon: int, size: int) -> None:
        self.w, self.horizon, self.size = np.ones(arms), horizon, size
        self.p_min = np.sqrt(np.log(arms) / arms / horizon)
        self.asked: list[tuple[int, float]] = []

    def ask(self, advice: list[int]) -> np.ndarray[Any, Any]:
        """The probability of each example, given the one that each arm advises."""
        self.p = (1 - len(self.w) * self.p_min) * self.w / self.w.sum() + self.p_min
        self.query = np.zeros((len(self.w), self.size))
        self.query[np.arange(len(self.w)), advice] = 1
        return self.p @ self.query

    def answer(self, asked: int, probability: float, right: set[int]) -> None:
        self.asked.append((asked, 1 / probability))
        reward = sum(weight * (x in right) for x, weight in self.asked) / self.size / self.horizon
        credited = reward * self.query[:, asked] / probability
        spread = np.sqrt(np.log(len(self.w) / 0.1) / len(self.w) / self.horizon)
        self.w = self.w * np.exp(self.p_min / 2 * (credited + spread / self.p))


def test_one_example_a_query_is_libact() -> None:
    """A whole run, with rounds in which both arms advise the same example: probabilities as libact's, step by step."""
    size, horizon = 12, 8
    p = np.random.default_rng(3).dirichlet(np.ones(3), size)
    h = np.random.default_rng(4).normal(size=(size, 2))
    p[5], h[5] = [1 / 3, 1 / 3, 1 / 3], [40.0, 40.0]  # both arms want it
    out, known = badge.Outputs(p, h), [0, 1]
    bandit, theirs = ALBL(rounds=horizon), Libact(2, horizon, size)
    assert bandit.p_min == pytest.approx(theirs.p_min)
    agreed, rng = 0, np.random.default_rng(0)
    for _ in range(horizon):
        left = [i for i in range(size) if i not in known]
        labeled = out[known]
        advice = [left[int(arm(out[left], 1, np.random.default_rng(0), labeled)[0])] for arm in ALBL.arms]
        chances = theirs.ask(advice)
        np.testing.assert_allclose(bandit.probabilities(), theirs.p)
        asked = left[int(bandit(out[left], 1, rng, labeled)[0])]
        bandit.picked(np.array([asked]))
        known.append(asked)
        right = {i for i in known if i % 3}
        bandit.observe(np.array(sorted(known)), np.array([i in right for i in sorted(known)]))
        theirs.answer(asked, float(chances[asked]), right)
        agreed += advice[0] == advice[1]
        np.testing.assert_allclose(bandit.log_weights, np.log(theirs.w), rtol=1e-12)
    assert 0 < agreed < horizon


def test_arms_are_drawn_by_their_probabilities() -> None:
    pool, labeled = badge.Outputs(P[1:], H[1:]), badge.Outputs(P[:1], H[:1])
    drawn: Counter[int] = Counter()
    for seed in range(400):
        bandit = ALBL(p_min=0.05)
        bandit.log_weights = np.array([1e4, 0.0])  # no overflow
        bandit(pool, 1, np.random.default_rng(seed), labeled)
        drawn[bandit.drawn or 0] += 1
    assert chi_square(drawn, {0: 0.95, 1: 0.05}) > ACCEPTED


def test_the_bandit_learns() -> None:
    """An arm whose batches make the model right is drawn more, and the other never less than p_min."""
    bandit, rng = ALBL(p_min=0.1, rounds=100), np.random.default_rng(0)
    pool = badge.Outputs([[0.51, 0.49], [0.9, 0.1], [0.99, 0.01]], [[0.1], [0.2], [9.0]])
    labeled = badge.Outputs([[0.5, 0.5]], [[0.0]])  # the arms disagree
    for round_ in range(300):
        bandit(pool, 1, rng, labeled=labeled)
        bandit.picked(np.array([round_]))
        bandit.observe(np.arange(round_ + 1), np.full(round_ + 1, bandit.drawn == 1))
    p = bandit.probabilities()
    assert p[1] > 0.8
    assert p.min() >= 0.1
    assert p.sum() == pytest.approx(1)


@pytest.mark.parametrize("moment", ["fresh", "asked", "told ids", "observed"])
def test_state_survives_json(moment: str) -> None:
    """Whatever has happened so far: what is restored goes on exactly as what was saved."""

    def go_on(bandit: ALBL, after: str, rng: np.random.Generator) -> list[Any]:
        out, trace = random_outputs(40), []
        for round_ in range(3):
            if after in ("fresh", "observed") or round_:
                trace.append(bandit(out, 4, rng, labeled=out[:3]).tolist())
            if after != "told ids" or round_:
                bandit.picked(np.arange(100 * round_, 100 * round_ + 4))
            bandit.observe(np.arange(0, 400, 2), np.arange(200) % 3 > 0)
            trace.append(bandit.probabilities().tolist())
        return trace

    first, rng = ALBL(), np.random.default_rng(1)
    if moment != "fresh":
        first(random_outputs(40), 4, rng, labeled=random_outputs(3))
    if moment in ("told ids", "observed"):
        first.picked(np.array([7, 8, 9, 10]))
    if moment == "observed":
        first.observe(np.array([7, 8]), np.array([True, False]))
    second = ALBL()
    second.restore(json.loads(json.dumps(first.state())))
    assert go_on(first, moment, np.random.default_rng(2)) == go_on(second, moment, np.random.default_rng(2))
    assert first.state() == second.state()


def test_bandit_arguments() -> None:
    for wrong, message in (
        ({"p_min": 0.6}, r"p_min must be in \(0, 0.5\], not 0.6"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), not 1.0"),
        ({"rounds": 0}, "rounds must be a whole number ≥ 1, not 0"),
    ):
        with pytest.raises(InputError, match=message):
            ALBL(**wrong)  # type: ignore[arg-type]
    bandit = ALBL()
    bandit(OUT, 2, np.random.default_rng(0), labeled=OUT[:1])
    with pytest.raises(InputError, match="the last batch had 2 examples, not 3"):
        bandit.picked(np.arange(3))


# --- the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE_PASS)
def test_excluded_positions_are_never_picked(name: str) -> None:
    out = random_outputs(30)
    exclude = [0, 3, 29, 7, 3]
    for form in (exclude, set(exclude), np.array(exclude), torch.tensor(exclude), np.isin(np.arange(30), exclude)):
        picks = badge.select_from(out, 6, name, seed=1, exclude=form)
        assert not set(picks.tolist()) & set(exclude)
        left = np.setdiff1d(np.arange(30), exclude)
        labeled = out[sorted(set(exclude))]
        assert picks.tolist() == left[badge.select_from(out[left], 6, name, seed=1, labeled=labeled)].tolist()


@pytest.mark.parametrize("name", ONE_PASS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_large_pool_is_not_copied(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above a size the rows that are left are read block by block: pick for pick the same as from a copy."""
    out = random_outputs(200, 5, 7)
    out = badge.Outputs.trusted(out.probabilities.to(dtype), out.embeddings.to(dtype))
    exclude = np.arange(0, 200, 3)
    expected = badge.select_from(out, 20, name, seed=2, exclude=exclude)
    views: list[int] = []
    subset = core_rows.Subset
    monkeypatch.setattr(core_rows, "Subset", lambda base, ids: views.append(1) or subset(base, ids))
    monkeypatch.setattr(core_rows, "CHUNK_BYTES", 64)
    monkeypatch.setattr(rows, "TILE_BYTES", 256)
    assert badge.select_from(out, 20, name, seed=2, exclude=exclude).tolist() == expected.tolist()
    assert len(views) == len(spec(name).reads)


def test_own_strategies() -> None:
    """A callable is enough; it gets tensors, and what it returns is checked."""

    def longest(outputs: badge.Outputs, k: int, rng: Any, labeled: Any = None) -> Any:
        assert isinstance(outputs.embeddings, torch.Tensor)
        return outputs.embeddings.norm(dim=1).topk(k).indices

    assert badge.select_from(OUT, 2, longest).tolist() == [4, 2]  # type: ignore[arg-type]
    assert badge.select_from(OUT, 2, longest, exclude=[4]).tolist() in ([2, 3], [3, 2])  # type: ignore[arg-type]
    for wrong in ([0, 0], [0, 9], [-1, 2], [1], [[0, 1]]):
        with pytest.raises(InputError, match=r"where 2 distinct positions \(whole numbers below 5\) were asked for"):
            badge.select_from(OUT, 2, lambda *_, wrong=wrong, **__: wrong)  # type: ignore[misc, arg-type]


def test_own_strategies_get_tensors_of_large_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_rows, "CHUNK_BYTES", 8)
    seen: list[type] = []

    def first(outputs: badge.Outputs, k: int, rng: Any, labeled: Any = None) -> Any:
        seen.append(type(outputs.probabilities))
        return np.arange(k)

    assert badge.select_from(OUT, 2, first, exclude=[0]).tolist() == [1, 2]  # type: ignore[arg-type]
    assert seen == [torch.Tensor]


def test_strategy_objects_keep_their_memory() -> None:
    bandit = ALBL()
    badge.select_from(OUT, 2, bandit, exclude=[0])
    assert bandit.drawn is not None


def test_seeds() -> None:
    """The authors' code has no seed anywhere; small-text is unseeded. Here a seed is the answer, and None draws one."""
    out = random_outputs(500)
    for name in ("badge", "rand", "kdpp", "kcenter-grad"):
        assert badge.select_from(out, 9, name, seed=5).tolist() == badge.select_from(out, 9, name, seed=5).tolist()
        assert len({tuple(badge.select_from(out, 9, name, seed=s).tolist()) for s in range(5)}) > 1
        assert len({tuple(badge.select_from(out, 9, name, seed=None).tolist()) for _ in range(5)}) > 1


def test_first_pick_is_uniform_and_not_the_longest() -> None:
    """The authors' code starts from the largest norm where the paper says uniform."""
    out = badge.Outputs(np.tile([[0.5, 0.5]], (4, 1)), [[1.0], [2.0], [3.0], [100.0]])
    counts = Counter(int(badge.select_from(out, 1, seed=s)[0]) for s in range(400))
    assert chi_square(counts, dict.fromkeys(range(4), 0.25)) > ACCEPTED


@pytest.mark.parametrize("name", ["coreset", "albl"])
def test_labeled_is_needed(name: str) -> None:
    nothing: list[Any] = [None, [], np.zeros(5, dtype=bool)]
    for exclude in nothing:
        with pytest.raises(InputError, match=r"conditioned on the labelled examples; pass labeled="):
            badge.select_from(OUT, 2, name, exclude=exclude)


def test_unknown_names() -> None:
    with pytest.raises(
        UnknownNameError,
        match=r"unknown strategy 'Badge': did you mean badge\? Known: badge, coreset, conf, .*kcenter-grad",
    ):
        badge.select_from(OUT, 2, "Badge")
    with pytest.raises(InputError, match=r"a strategy is a name or a callable .* not 3"):
        badge.select_from(OUT, 2, 3)  # type: ignore[arg-type]
