"""Active Learning by Learning (Hsu & Lin 2015): a bandit that chooses between coreset and conf, round by round.

EXP4.P (Beygelzimer et al. 2011) over K arms with weights w: each round an arm is drawn for the whole batch with

    q_j = (1 − K p_min) w_j / Σ w + p_min

and when the newly trained model is known the arm that was drawn is rewarded with the importance-weighted accuracy of that
model on the labelled examples, r = Σ W_x [correct] / Σ W_x, where W_x = 1 / (probability that x was asked for: the sum of
q_j over the arms whose batch held it), and 1 for examples that were labelled without the bandit. Then

    w_j ← w_j exp( p_min/2 · ( r [j drawn] / q_j + 1/q_j · √(ln(K/δ) / (K T)) ) )
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies.coreset import coreset
from badge.strategies.uncertainty import conf

__all__ = ["ALBL"]


class ALBL:
    """The bandit over the arms coreset and conf. `rounds` is the horizon T that EXP4.P's confidence term is set for.

    >>> from badge.strategies import ALBL
    >>> ALBL().probabilities().tolist()
    [0.5, 0.5]
    """

    needs_labeled = True
    arms = (coreset, conf)

    def __init__(self, p_min: float = 0.05, delta: float = 0.1, rounds: int = 100) -> None:
        if not 0 < p_min <= 1 / len(self.arms):
            raise InputError(f"p_min must be in (0, {1 / len(self.arms)}], not {p_min}")
        if not 0 < delta < 1:
            raise InputError(f"delta must be in (0, 1), not {delta}")
        if rounds < 1:
            raise InputError(f"rounds must be at least 1, not {rounds}")
        self.p_min, self.delta, self.rounds = p_min, delta, rounds
        self.log_weights = np.zeros(len(self.arms))
        self.importance: dict[int, float] = {}  # the caller's id of an example -> W_x
        self.drawn: int | None = None  # the arm of the last batch, until its reward is known
        self.drawn_probabilities: list[float] = []
        self._batch_importance: list[float] = []

    def __repr__(self) -> str:
        return f"ALBL(p_min={self.p_min}, delta={self.delta}, rounds={self.rounds})"

    def probabilities(self) -> NDArray[np.float64]:
        """q: how likely each arm is to be drawn next."""
        w = np.exp(self.log_weights - self.log_weights.max())
        q: NDArray[np.float64] = (1 - len(self.arms) * self.p_min) * w / w.sum() + self.p_min
        return q

    def __call__(
        self, outputs: Outputs, k: int, rng: np.random.Generator, labeled: Outputs | None = None
    ) -> NDArray[np.int64]:
        if labeled is None:
            raise InputError(
                "albl's arm coreset is conditioned on the labelled examples: pass labeled= (their Outputs)"
            )
        q = self.probabilities()
        self.drawn = int(rng.choice(len(self.arms), p=q))
        self.drawn_probabilities = q.tolist()
        batches = [arm(outputs, k, rng, labeled) for arm in self.arms]
        asked = np.zeros(len(outputs))
        for batch, probability in zip(batches, q, strict=True):
            asked[batch] += probability
        self._batch_importance = (1 / asked[batches[self.drawn]]).tolist()
        return batches[self.drawn]

    def picked(self, ids: NDArray[np.int64]) -> None:
        """The caller's own, stable ids of the batch that the last call chose, in its order."""
        if len(ids) != len(self._batch_importance):
            raise InputError(f"the last batch had {len(self._batch_importance)} examples, not {len(ids)}")
        self.importance.update(zip((int(i) for i in ids), self._batch_importance, strict=True))

    def observe(self, ids: NDArray[np.int64], correct: NDArray[np.bool_]) -> None:
        """After training: the ids of the labelled examples, and whether the new model gets each right."""
        if self.drawn is None:
            return  # nothing was asked through the bandit since the last reward
        weights = np.array([self.importance.get(int(i), 1.0) for i in ids])
        reward = float(weights @ np.asarray(correct, dtype=float) / weights.sum())
        q, arms = np.array(self.drawn_probabilities), len(self.arms)
        gain = 1 / q * np.sqrt(np.log(arms / self.delta) / (arms * self.rounds))
        gain[self.drawn] += reward / q[self.drawn]
        self.log_weights += self.p_min / 2 * gain
        self.drawn = None

    def state(self) -> dict[str, Any]:
        """Everything that the bandit remembers, fit for JSON."""
        return {
            "log_weights": self.log_weights.tolist(),
            "importance": {str(i): w for i, w in self.importance.items()},
            "drawn": self.drawn,
            "drawn_probabilities": self.drawn_probabilities,
            "batch_importance": self._batch_importance,  # of a batch whose ids are not known yet
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` gave."""
        self.log_weights = np.array(state["log_weights"], dtype=float)
        self.importance = {int(i): float(w) for i, w in state["importance"].items()}
        self.drawn = state["drawn"]
        self.drawn_probabilities = list(state["drawn_probabilities"])
        self._batch_importance = list(state["batch_importance"])
