"""Uncertainty sampling: examples about which the model is least sure, taken, drawn or spread; and the uniform baseline.

For multi-label outputs, with labels independent given the example:

    conf     smallest probability of the predicted set of labels, Π max(p_l, 1 − p_l)
    marg     smallest margin |2 p_l − 1| of any label ("binary minimum", Brinker 2006): the least certain decision
    entropy  largest entropy of the set of labels, which is the sum of the labels' entropies
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.core.arrays import chunks
from badge.core.numbers import positive
from badge.errors import InputError
from badge.features import Dense, gradient_embedding
from badge.outputs import Outputs
from badge.samplers.lloyd import lloyd_from
from badge.samplers.topk import Score, topk_by
from badge.strategies.protocol import Picks, listed


@listed("conf")
def conf(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Confidence sampling: smallest max_i p_i.

    >>> import numpy as np
    >>> from badge import Outputs
    >>> conf(Outputs([[0.9, 0.1], [0.6, 0.4]], [[1.0], [1.0]]), 1, np.random.default_rng(0)).tolist()
    [1]
    """
    return topk_by(_of_rows(outputs, _least_sure), outputs.probabilities, k, rng)


@listed("marg")
def marg(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Margin sampling: smallest p_ŷ − p_y', the difference of the two largest probabilities."""
    return topk_by(_of_rows(outputs, _closeness), outputs.probabilities, k, rng)


@listed("entropy")
def entropy(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """Entropy sampling: largest Σ p_i ln 1/p_i."""
    return topk_by(_of_rows(outputs, _entropy), outputs.probabilities, k, rng)


@listed("rand")
def rand(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """The naive baseline: k examples uniformly, without replacement."""
    return rng.choice(len(outputs), size=k, replace=False).astype(np.int64)


def doubt(outputs: Outputs) -> Tensor:
    """1 − margin of every row, [N], in float64: 0 where the model is sure, 1 where two classes are level.

    >>> doubt(Outputs([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.5, 1.0]
    """
    return 1 + _each(outputs, _closeness)


def entropies(outputs: Outputs) -> Tensor:
    """The entropy of every row, [N], in float64."""
    return _each(outputs, _entropy)


# Scores of rows [n, C] of probabilities; with `labels` (multi-label) these are max(p_l, 1 − p_l) for each label.


def _least_sure(p: Tensor, labels: bool) -> Tensor:
    return -p.log().sum(dim=1) if labels else -p.amax(dim=1)


def _closeness(p: Tensor, labels: bool) -> Tensor:
    if labels:
        return 1 - 2 * p.amin(dim=1)
    two = p.topk(2, dim=1).values
    return two[:, 1] - two[:, 0]


def _entropy(p: Tensor, labels: bool) -> Tensor:
    terms: Tensor = torch.special.entr(p.clamp(min=0)).sum(dim=1)
    return terms + _entropy(1 - p, False) if labels else terms


def _each(outputs: Outputs, score: Callable[[Tensor, bool], Tensor]) -> Tensor:
    p, of_rows = outputs.probabilities, _of_rows(outputs, score)
    return torch.cat([of_rows(p[part].double()) for part in chunks(p)])


def _of_rows(outputs: Outputs, score: Callable[[Tensor, bool], Tensor]) -> Score:
    """The score of rows as a model gives them."""
    labels = outputs.multilabel

    def of_rows(p: Tensor) -> Tensor:
        if labels:
            p = torch.maximum(p, 1 - p).clamp(max=1)
        elif p.shape[1] == 1:  # binary: the other class is implied
            p = torch.cat([1 - p, p], dim=1)
        return score(p, labels)

    return of_rows


@dataclass(eq=False)
class Power:
    """A strategy that draws k examples without replacement, each time in proportion to score^β.

    Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal (2023, "Stochastic Batch Acquisition: A Simple Baseline
    for Deep Active Learning", TMLR): the k largest of log s_i + ε_i with ε_i ~ Gumbel(0, 1/β) have this law. Examples of
    score 0 come last, in random order. β = ∞ would be the k largest scores, β = 0 uniform.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5], [1.0, 0.0], [0.6, 0.4]])
    >>> Power(doubt)(out, 3, np.random.default_rng(0)).tolist()[-1]
    1
    """

    score: Callable[[Outputs], Tensor]
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive(self.beta, "beta")

    def __call__(self, outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
        scores = self.score(outputs).double().numpy(force=True)
        with np.errstate(divide="ignore"):  # log 0 = −∞: last
            return samplers.topk(np.log(scores.clip(min=0)) + rng.gumbel(scale=1 / self.beta, size=len(scores)), k, rng)


def gradient_norm(outputs: Outputs) -> Tensor:
    """The length of every hallucinated gradient, [N]."""
    return gradient_embedding(outputs).sq_norms.sqrt()


power_marg = listed("power-marg")(Power(doubt))
power_entropy = listed("power-entropy")(Power(entropies))
power_norm = listed("power-norm")(Power(gradient_norm))


def mean_of(members: Iterable[Outputs]) -> Outputs:
    """The mean probabilities of several outputs of one pool, which `bald` can pick from; embeddings are the first one's.

    Members are read once, and only the mean and one number per row are kept: a generator needs memory for one member.

    >>> pair = mean_of([Outputs([[1.0, 0.0], [0.5, 0.5]]), Outputs([[0.0, 1.0], [0.5, 0.5]])])
    >>> pair.probabilities.tolist(), [round(float(x), 4) for x in mutual_information(pair)]
    ([[0.5, 0.5], [0.5, 0.5]], [0.6931, 0.0])
    """
    total, entropy, first, count = torch.zeros(0), torch.zeros(0), Outputs.unread(0), 0
    for member in members:
        p, h = member.probabilities[:].double(), entropies(member)
        if count and p.shape != total.shape:
            raise InputError(f"members differ: probabilities {tuple(total.shape)} and {tuple(p.shape)}")
        total, entropy = (total.add_(p), entropy.add_(h)) if count else (p.clone(), h.clone())
        first, count = first if count else member, count + 1
    if count < 2:
        raise InputError(f"bald needs two members or more that can disagree, not {count}")
    return first.with_probabilities(total / count, entropy[:, None] / count)


def mutual_information(outputs: Outputs) -> Tensor:
    """H(mean of p_m) − mean of H(p_m) of every row, [N], in float64.

    Houlsby, Huszár, Ghahramani & Lengyel (2011, "Bayesian Active Learning for Classification and Preference Learning"), with
    passes with dropout as draws from the posterior (Gal, Islam & Ghahramani 2017), or the members of an ensemble.
    """
    whole = entropies(outputs)
    if outputs.expected_entropy is None:
        what = "bald compares several answers about each example, and these outputs hold one: use entropy"
        way_out = (
            "or badge.predict(model, pool, passes=20) with dropout, or a list of models in place of the model; "
            "for a learner predict=functools.partial(badge.predict, passes=20)"
        )
        raise InputError(what, in_python=way_out)
    return (whole - outputs.expected_entropy[:][:, 0].to(whole.device)).clamp(min=0)


@listed("bald")
def bald(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """The k examples of largest mutual information between label and model.

    >>> import badge
    >>> pair = mean_of([Outputs([[1.0, 0.0], [0.5, 0.5]]), Outputs([[0.0, 1.0], [0.5, 0.5]])])
    >>> badge.select_from(pair, k=1, strategy="bald").tolist()
    [0]
    """
    return samplers.topk(mutual_information(outputs).numpy(force=True), k, rng)


power_bald = listed("power-bald")(Power(mutual_information))


@listed("wkmeans")
def wkmeans(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, beta: float = 10.0) -> Picks:
    """Weighted k-means over the smallest margins (Zhdanov 2019, "Diverse mini-batch Active Learning", arXiv 1901.05954).

    The β·k examples of smallest margin are clustered into k clusters of their embeddings, with weights 1 − margin
    (k-means++, then Lloyd). Each centre gives the nearest example that is not taken yet. β = ∞ clusters the whole pool.

    Cluster-Margin (Citovsky et al. 2021, NeurIPS) also joins margins and clusters, but the other way round: it clusters the
    pool once, bottom-up, and then takes the smallest margins from cluster after cluster, small clusters first.

    >>> import badge
    >>> out = badge.Outputs([[0.5, 0.5]] * 4 + [[1.0, 0.0]], [[0.0], [0.1], [9.0], [9.1], [5.0]])
    >>> sorted(i // 2 for i in wkmeans(out, 2, np.random.default_rng(0), beta=2).tolist())
    [0, 1]
    """
    n, weights = len(outputs), doubt(outputs)
    size = n if math.isinf(beta) else min(n, max(k, math.ceil(positive(beta, "beta") * k)))
    some = torch.arange(n) if size == n else torch.from_numpy(samplers.topk(weights.numpy(force=True), size, rng))
    some = some.to(outputs.device)
    x = Dense.trusted(outputs.embeddings.index_select(0, some))
    first = x.rows(torch.from_numpy(samplers.kmeanspp(x, k, rng)).to(x.device)).as_matrix()
    return some.numpy(force=True)[nearest_distinct(x, lloyd_from(x, first, weights=weights[some])[1])]


def nearest_distinct(x: Dense, centres: Tensor) -> Picks:
    """For each centre in turn the nearest row that no earlier centre took."""
    picks, taken = [], torch.zeros(len(x), dtype=torch.bool, device=x.device)
    origin = centres.mean(dim=0)
    rows = (x.as_matrix().double() - origin).to(x.dtype)
    sq_norms = rows.square().sum(dim=1)
    for part in torch.split((centres - origin).to(x.dtype), max(1, 2**22 // len(x))):
        for sq_dists in sq_norms - 2 * part @ rows.T:
            picks.append(int(sq_dists.masked_fill_(taken, torch.inf).argmin()))
            taken[picks[-1]] = True
    return np.array(picks, dtype=np.int64)
