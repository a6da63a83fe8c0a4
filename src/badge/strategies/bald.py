"""BALD: examples on which several answers are each sure and do not agree."""

from collections.abc import Iterable

import torch
from numpy.random import Generator
from torch import Tensor

from badge import samplers
from badge.errors import InputError
from badge.outputs import Outputs
from badge.strategies.protocol import Picks, Strategy, listed, unwrapped
from badge.strategies.uncertainty import Power, entropies


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
        raise _one_answer()
    return (whole - outputs.expected_entropy[:][:, 0].to(whole.device)).clamp(min=0)


def _one_answer() -> InputError:
    what = "bald compares several answers about each example, and these outputs hold one: use entropy"
    way_out = (
        "or badge.predict(model, pool, passes=20) with dropout, or a list of models in place of the model; "
        "for a learner predict=functools.partial(badge.predict, passes=20)"
    )
    return InputError(what, in_python=way_out)


@listed("bald")
def bald(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None) -> Picks:
    """The k examples of largest mutual information between label and model; `rng` decides between equal ones.

    >>> import badge
    >>> pair = mean_of([Outputs([[1.0, 0.0], [0.5, 0.5]]), Outputs([[0.0, 1.0], [0.5, 0.5]])])
    >>> badge.select_from(pair, k=1, strategy="bald").tolist()
    [0]
    """
    return samplers.topk(mutual_information(outputs).numpy(force=True), k, rng)


power_bald = listed("power-bald")(Power(mutual_information))


def compares(strategy: Strategy) -> bool:
    """Whether a strategy, or the one that a partial calls, compares several answers about each example."""
    base, *_ = unwrapped(strategy)
    return base in (bald, power_bald)


def check_one_answer(strategy: Strategy) -> None:
    """Refuse, before a pass that says one thing about each example, a strategy that compares several.

    >>> check_one_answer(bald)
    Traceback (most recent call last):
    badge.errors.InputError: bald compares several answers about each example, and these outputs hold one: use entropy; or ...
    """
    if compares(strategy):
        raise _one_answer()
