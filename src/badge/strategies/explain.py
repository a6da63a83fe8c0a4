"""`explain`: why a batch was picked, in the terms of the paper's figures."""

from collections.abc import Callable
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
from badge.strategies.auto import auto
from badge.strategies.bait import bait, bait_binary, blocks, vectors
from badge.strategies.choose import check_labeled, given_to
from badge.strategies.coverage import all_alike, balls, by_doubt, maxherding, probcover, uherding
from badge.strategies.protocol import Strategy, title, unwrapped
from badge.strategies.registry import get
from badge.strategies.request import Request

#: Each strategy with an objective, and the function that makes the objective from the arguments of the strategy.
OBJECTIVES: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (maxherding, all_alike),
    (uherding, by_doubt),
    (auto, by_doubt),  # after its first batch
    (probcover, balls),
    (bait, blocks),
    (bait_binary, vectors),
)
#: A Cholesky pivot below this share of its row's squared norm counts as vanished.
VANISHED = 1e-12


@dataclass(frozen=True)
class Explanation:
    """The result of `badge.explain`: numbers for each pick, in pick order, and for the batch.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> why = badge.explain(out, [0, 2])
    >>> round(why.mean_norm, 3), why.rows()[0]["confidence"]
    (0.636, 0.5)
    """

    ids: NDArray[np.int64]
    norm: NDArray[np.float64]  #: length of the gradient embedding: uncertainty
    #: the class ŷ that the model guesses (binary with one column: 1 where p > 1/2); multi-label: [k, labels], 1 where p > 1/2
    label: NDArray[np.int64]
    confidence: NDArray[np.float64]  #: probability of ŷ, of all its labels together
    nearest: NDArray[np.float64]  #: distance to the nearest earlier pick (inf for the first): diversity
    coverage: NDArray[np.int64]  #: number of pool points that are nearest to this pick
    mean_norm: float  #: mean gradient norm of the batch
    log_det: float  #: ln det of the batch's Gram matrix; −inf where the batch is linearly dependent
    #: what each pick, in this order, added to the objective of the strategy; None: it has none
    gain: NDArray[np.float64] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per pick, for tables and JSON. Several labels become a list of class numbers.

        Returns:
            The position and the numbers of each pick, in pick order.
        """
        label = self.label if self.label.ndim == 1 else [np.flatnonzero(row).tolist() for row in self.label]
        columns = {"position": self.ids, "norm": self.norm, "label": label, "confidence": self.confidence}
        columns |= {"nearest": self.nearest, "coverage": self.coverage}
        columns |= {} if self.gain is None else {"gain": self.gain}
        plain = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
        return [dict(zip(columns, values, strict=True)) for values in zip(*plain, strict=True)]


def explain(
    outputs: Outputs,
    ids: Any,
    strategy: str | Strategy | None = None,
    labeled: Outputs | None = None,
    exclude: Any = None,
    seed: int | None = 0,
) -> Explanation:
    """Explain picks: gradient norm, guessed class, confidence, distance to earlier picks, coverage.

    Args:
        outputs: the model's outputs for the pool, with probabilities and embeddings.
        ids: positions of the picks, in pick order.
        strategy: the strategy that picked them, if it has an objective: maxherding, uherding, probcover, bait, bait-binary,
            or auto after its first batch. `gain` then holds what each pick added to the objective. For maxherding and
            uherding that is coverage of the pool; for probcover, the share of the pool that is newly covered; for bait, how
            far the variance tr(M⁻¹F) of the last layer falls. bait's gain depends on the number of picks: explain a whole
            batch at once.
        labeled: the labelled examples, as in the call of `select_from`. The objective depends on them.
        exclude: positions that had labels already, as in that call. Without `labeled`, they are the labelled examples.
        seed: the seed of that call; probcover uses it to choose its radius.

    Returns:
        An `Explanation`: numbers for each pick, and the mean norm and log-determinant of the batch.

    Raises:
        InputError: the outputs lack probabilities or embeddings, an id is not a position of the pool, or the strategy has no
            objective.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> why = badge.explain(out, [0, 2])
    >>> why.label.tolist(), why.norm.round(3).tolist(), why.coverage.tolist()
    ([0, 1], [0.707, 0.566], [2, 1])
    >>> badge.explain(out, badge.select_from(out, k=2, strategy="maxherding"), strategy="maxherding").gain.round(2).tolist()
    [2.14, 0.86]
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
    gain = None if strategy is None else _gain(outputs, columns["ids"], strategy, labeled, exclude, seed)
    return Explanation(**columns, mean_norm=float(norm.mean()), log_det=log_det(rows, features.rank_bound), gain=gain)


def _gain(
    outputs: Outputs, ids: NDArray[np.int64], strategy: str | Strategy, labeled: Any, exclude: Any, seed: int | None
) -> NDArray[np.float64]:
    check_labeled(labeled)
    if why := no_objective(strategy, labelled=True):
        raise InputError(f"{why}: leave strategy out")
    found = gains(Request.of(strategy, 1, len(outputs), seed, labeled, exclude), outputs, ids)
    if found is None:
        raise InputError(f"{no_objective(strategy, labelled=False)}: leave strategy out, or give the labelled examples")
    return found


def gains(request: Request, outputs: Outputs, ids: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """What each of these picks, in this order, added to the objective of the strategy; None: it has none.

    The strategy, its options, the rows that may be picked and the labelled examples are those of the request.
    """
    base, _, options = unwrapped(request.strategy)
    if (objective := _objective(base)) is None:
        return None
    seen, labeled = given_to(request, outputs)
    if base is auto and not labeled:
        return None
    rows = np.arange(len(request.left))
    places = np.full(len(outputs), -1)
    places[request.left.positions(rows)] = rows
    if len(missing := ids[places[ids] < 0]):
        raise InputError(f"id {int(missing[0])} is excluded: gains are of examples that could be picked")
    return np.array(objective(seen, len(ids), request.rng, labeled, **options).added(places[ids].tolist()))


def no_objective(strategy: str | Strategy, labelled: bool) -> str | None:
    """One line that says why there are no gains, with or without labelled examples; None: there are.

    >>> no_objective("uherding", labelled=False), no_objective("marg", labelled=False)
    (None, 'marg has no objective that each pick adds to')
    """
    base, *_ = unwrapped(get(strategy))
    if base is auto and not labelled:
        return "auto picks the first batch by typiclust, which has no objective that each pick adds to"
    return None if _objective(base) else f"{title(strategy)} has no objective that each pick adds to"


def _objective(base: Any) -> Callable[..., Any] | None:
    return next((objective for strategy, objective in OBJECTIVES if strategy is base), None)


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
