"""`explain`: why a batch was picked, in the terms of the paper's figures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.arrays import as_index
from badge.errors import InputError
from badge.features import Exact, Factored, Rows, gradient_embedding
from badge.outputs import Outputs
from badge.strategies.bait import bait_added
from badge.strategies.coverage import coverage_added

#: A Cholesky pivot below this share of its row's squared norm counts as vanished.
VANISHED = 1e-12


@dataclass(frozen=True)
class Explanation:
    """Per pick, in pick order, and for the batch."""

    ids: NDArray[np.int64]
    norm: NDArray[np.float64]  #: length of the gradient embedding: uncertainty
    #: hallucinated label ŷ (binary with one column: 1 where p > 1/2); multi-label: [k, labels], 1 where p > 1/2
    label: NDArray[np.int64]
    confidence: NDArray[np.float64]  #: probability of ŷ, of all its labels together
    nearest: NDArray[np.float64]  #: distance to the nearest earlier pick (inf for the first): diversity
    coverage: NDArray[np.int64]  #: number of pool points that are nearest to this pick
    mean_norm: float  #: mean gradient norm of the batch
    log_det: float  #: ln det of the batch's Gram matrix; −inf where the batch is linearly dependent
    #: what each pick, in this order, added to the objective of the strategy, where `strategy` names one that has an objective
    gain: NDArray[np.float64] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per pick, for tables and JSON; several labels are given as positions.

        Returns:
            The id and the numbers of each pick, in the order of the picks.
        """
        label = self.label if self.label.ndim == 1 else [np.flatnonzero(row).tolist() for row in self.label]
        columns = {"position": self.ids, "norm": self.norm, "label": label, "confidence": self.confidence}
        columns |= {"nearest": self.nearest, "coverage": self.coverage}
        columns |= {} if self.gain is None else {"gain": self.gain}
        plain = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
        return [dict(zip(columns, values, strict=True)) for values in zip(*plain, strict=True)]


def explain(outputs: Outputs, ids: Any, strategy: str | None = None, labeled: Outputs | None = None) -> Explanation:
    """Why these picks: gradient norm, hallucinated label, confidence, distance to earlier picks, coverage.

    Args:
        outputs: what the model says about the pool, with probabilities and embeddings.
        ids: positions of the picks, in pick order.
        strategy: maxherding, uherding, probcover, bait or bait-binary: `gain` is what each pick added to its objective. For
            probcover that is the share of the pool newly covered, with its default `delta` and seed 0.
        labeled: outputs of the labelled examples, on which that objective depends.

    Returns:
        An `Explanation` with a row per pick, and the mean norm and log-determinant of the batch.

    Raises:
        InputError: the outputs lack probabilities or embeddings, or an id is not a position of the pool.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> why = badge.explain(out, [0, 2])
    >>> why.label.tolist(), why.norm.round(3).tolist(), why.coverage.tolist()
    ([0, 1], [0.707, 0.566], [2, 1])
    """
    if not isinstance(outputs, Outputs):
        raise InputError(f"outputs must be badge.Outputs, not {type(outputs).__name__}: badge.predict makes them")
    for name in ("probabilities", "embeddings"):
        if not getattr(outputs, f"has_{name}"):
            why = outputs.missing or f"pass {name}= too"
            raise InputError(f"picks are explained by probabilities and embeddings: the outputs hold no {name}: {why}")
    index = as_index(ids, len(outputs)).to(outputs.device)
    if not len(index):
        raise InputError("no picks to explain: ids is empty")
    lowest, highest = (int(edge) for edge in index.aminmax())
    if lowest < 0 or highest >= len(outputs):
        raise InputError(f"ids go from {lowest} to {highest}: positions go from 0 to {len(outputs) - 1}")
    features = gradient_embedding(outputs)
    rows = features.rows(index)
    p = outputs.probabilities.index_select(0, index).double()
    if outputs.multilabel:
        label = (p > 0.5).long()
        confidence = torch.maximum(p, 1 - p).prod(dim=1)
    else:
        confidence, label = (torch.cat([1 - p, p], dim=1) if p.shape[1] == 1 else p).max(dim=1)
    norm = rows.double().sq_norms().sqrt()
    per_pick = {"ids": index, "norm": norm, "label": label, "confidence": confidence}
    sq_dists = Exact.of(rows).among()
    sq_dists[torch.ones_like(sq_dists, dtype=torch.bool).triu_()] = torch.inf  # to itself and to later picks
    per_pick |= {"nearest": sq_dists.amin(dim=1).sqrt(), "coverage": _coverage(features, rows)}
    columns: dict[str, Any] = {name: column.numpy(force=True) for name, column in per_pick.items()}
    gain = None if strategy is None else _gain(strategy, outputs, index.tolist(), labeled)
    return Explanation(**columns, mean_norm=float(norm.mean()), log_det=log_det(rows, features.rank_bound), gain=gain)


def _gain(strategy: str, outputs: Outputs, ids: list[int], labeled: Outputs | None) -> NDArray[np.float64]:
    if strategy in ("bait", "bait-binary"):
        return np.array(bait_added(outputs, ids, labeled, strategy == "bait-binary"))
    if strategy in ("maxherding", "uherding", "probcover"):
        return np.array(coverage_added(outputs, ids, labeled, strategy))
    known = "maxherding, uherding, probcover, bait and bait-binary"
    raise InputError(f"gains are known for {known}, not for {strategy!r:.60}: leave it out")


def _coverage(features: Factored, picks: Rows) -> Tensor:
    sq_norms = picks.sq_norms()
    counts = torch.zeros(len(picks), dtype=torch.int64, device=features.device)
    for tile in features.tiles():
        nearest = features.rows(tile).gram(picks).mul_(-2).add_(sq_norms).argmin(dim=1)
        counts += torch.bincount(nearest, minlength=len(picks))
    return counts


def log_det(rows: Rows, rank_bound: int) -> float:
    """ln det⟨g_i, g_j⟩ in float64, −inf where k exceeds the rank bound or a pivot vanishes."""
    exact = rows.double()
    sq_norms = exact.sq_norms()
    if len(rows) > rank_bound or not bool((sq_norms > 0).all()):
        return -float("inf")
    scale = sq_norms.rsqrt()
    factor, failed = torch.linalg.cholesky_ex(exact.gram(exact).mul_(scale).mul_(scale[:, None]))
    pivots = factor.diagonal().square()
    if int(failed) or not bool((pivots > VANISHED).all()):
        return -float("inf")
    return float(pivots.log().sum() + sq_norms.log().sum())
