"""Active Learning by Learning (Hsu & Lin 2015) as libact has it: a bandit that chooses between coreset and conf.

EXP4.P (Beygelzimer et al. 2011) over K arms with weights w and a horizon of T queries. A query here is a batch: an arm is
drawn for the whole of it. For a batch of one example each formula below is libact's (whose N is K too):

    p_min = min(√(ln K / (K T)), 1/K)
    p_j   = (1 − K p_min) w_j / Σ w + p_min                       how likely arm j is drawn
    q_x   = Σ p_j [x in j's batch]                                how likely x is asked for; W_x = 1 / q_x
    r     = Σ W_x [correct] / (n T)                               over all x ever queried; n examples in the pool
    r̂_j   = r · mean over the batch of [x in j's batch] / q_x     so every arm that advised x is credited
    w_j   ← w_j exp( p_min/2 · ( r̂_j + 1/p_j · √(ln(K/δ) / (K T)) ) )

r is known when the model is trained with the batch's labels. `docs/experiments.md` says where the paper, libact and Hsu &
Lin differ, and which is followed.
"""

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from badge.core.numbers import whole
from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies.coreset import coreset
from badge.strategies.protocol import Picks, check_one_label, listed, required
from badge.strategies.uncertainty import conf


@listed("albl")
class ALBL:
    """ALBL (Hsu & Lin 2015): a bandit that chooses between coreset and conf.

    `rounds` only sets how fast the bandit adapts. You may ask for more batches.

    Args:
        rounds: the expected number of batches.
        p_min: the smallest probability of an arm. None: the formula of its paper.
        delta: δ of that formula.

    Raises:
        InputError: `p_min` or `delta` is out of its range.

    >>> from badge.strategies import ALBL
    >>> bandit = ALBL(rounds=20)
    >>> bandit.probabilities().tolist(), round(bandit.p_min, 4)
    ([0.5, 0.5], 0.1316)
    """

    arms = (coreset, conf)

    def __init__(self, rounds: int = 100, p_min: float | None = None, delta: float = 0.1) -> None:
        arms, rounds = len(self.arms), whole(rounds, "rounds")
        if p_min is not None and not 0 < p_min <= 1 / arms:
            raise InputError(f"p_min must be in (0, {1 / arms}], not {p_min}")
        if not 0 < delta < 1:
            raise InputError(f"delta must be in (0, 1), not {delta}")
        self.rounds, self.delta = rounds, delta
        self.p_min = min(math.sqrt(math.log(arms) / (arms * rounds)), 1 / arms) if p_min is None else p_min
        self.log_weights = np.zeros(arms)
        self.importance: dict[int, float] = {}  # the caller's id of a queried example -> W_x
        self.drawn: int | None = None  # the arm of the last batch, until its reward is known
        self.drawn_probabilities: list[float] = []
        self.credit: list[float] = []  # r̂_j / r of the last batch
        self.pool_size = 0
        self.batch_importance: list[float] = []  # of the last batch, until `picked` names its ids

    def __repr__(self) -> str:
        return f"ALBL(rounds={self.rounds}, p_min={self.p_min:.4g}, delta={self.delta})"

    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each arm.

        Returns:
            [2]: coreset, conf.
        """
        w = np.exp(self.log_weights - self.log_weights.max())
        p: NDArray[np.float64] = (1 - len(self.arms) * self.p_min) * w / w.sum() + self.p_min
        return p

    def __call__(self, outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
        check_one_label(outputs, "albl")  # it is rewarded for the one right label of an example
        labeled, p = required(labeled, "albl"), self.probabilities()
        self.drawn = int(rng.choice(len(self.arms), p=p))
        self.drawn_probabilities = p.tolist()
        self.pool_size = len(outputs) + len(labeled)
        batches = [arm(outputs, k, rng, labeled) for arm in self.arms]
        picks = batches[self.drawn]
        advised = np.array([np.isin(picks, batch) for batch in batches])  # which arms had each pick in their batch
        importance = 1 / (p @ advised)
        self.batch_importance = importance.tolist()
        self.credit = (advised @ importance / k).tolist()
        return picks

    def picked(self, ids: NDArray[np.int64]) -> None:
        if len(ids) != len(self.batch_importance):
            raise InputError(f"the last batch had {len(self.batch_importance)} examples, not {len(ids)}")
        self.importance.update(zip((int(i) for i in ids), self.batch_importance, strict=True))

    def observe(self, ids: NDArray[np.int64], correct: NDArray[np.bool_]) -> None:
        """Examples that the bandit did not pick, such as the initial ones, do not count."""
        if self.drawn is None:
            return  # nothing was asked through the bandit since the last reward
        weights = np.array([self.importance.get(int(i), 0.0) for i in ids])
        reward = float(weights @ np.asarray(correct, dtype=float)) / (self.pool_size * self.rounds)
        arms = len(self.arms)
        bonus = math.sqrt(math.log(arms / self.delta) / (arms * self.rounds))
        gains = reward * np.array(self.credit) + bonus / np.array(self.drawn_probabilities)
        self.log_weights += self.p_min / 2 * gains
        self.drawn = None

    def state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in _KEPT}
        weights = {str(i): w for i, w in self.importance.items()}
        return {"log_weights": self.log_weights.tolist(), "importance": weights, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        self.log_weights = np.array(state["log_weights"], dtype=float)
        self.importance = {int(i): float(w) for i, w in state["importance"].items()}
        for name in _KEPT:
            setattr(self, name, state[name])


_KEPT = ("drawn", "drawn_probabilities", "credit", "pool_size", "batch_importance")
