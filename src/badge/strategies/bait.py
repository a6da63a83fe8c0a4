"""BAIT and its rank-one form: what the labels of a batch would tell about the last layer (`samplers/fisher.py`)."""

import torch
from numpy.random import Generator
from torch import Tensor

from badge.core.arrays import chunks
from badge.core.numbers import positive
from badge.core.rows import small
from badge.core.threads import one_thread
from badge.errors import InputError
from badge.features import Dense, Factored, Features
from badge.outputs import Outputs
from badge.samplers.fisher import ROWS, Blocks, Vectors, forward_backward, weights
from badge.strategies.protocol import Picks, check_one_label, listed

#: λ, as a share of the mean squared length of the embeddings. The authors' code has λ = 1, and 0.01 for CIFAR.
STRENGTH = 0.01
#: With less, M⁻¹ in float64 has too few right digits to tell rows apart.
LEAST_STRENGTH = 1e-9
#: The largest matrix of Fisher information, C·D, and the most C × C numbers that are kept of a pool.
WIDEST, MOST_NUMBERS = 4096, 2**28


@listed("bait-binary")
def bait_binary(
    outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, strength: float = STRENGTH
) -> Picks:
    """BAIT with a binary likelihood (Huseljic et al. 2024, "Fast Fishing: Approximating BAIT for Efficient and Scalable Deep
    Active Image Classification", ECML-PKDD): is the predicted class right or not?

    With p̂ = max_y p_y its Fisher information is p̂(1 − p̂) h hᵀ, of rank one: one vector z = √(p̂(1 − p̂)) h per example.
    λ is `strength` times the mean squared length of the embeddings, so that it fits their scale. Deterministic: of equal
    examples the lowest position is added first, and what was added first is removed first.

    >>> import badge, numpy as np
    >>> out = badge.Outputs([[0.5, 0.5], [0.99, 0.01], [0.5, 0.5]], [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    >>> sorted(bait_binary(out, 2, np.random.default_rng(0)).tolist())
    [0, 2]
    """
    information = vectors(outputs, k, rng, labeled, strength)
    with one_thread():
        return forward_backward(information, len(outputs), k, information.z.device)


def vectors(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None, strength: float = STRENGTH) -> Vectors:
    """The objective of `bait-binary`."""
    pool, seen = _rank_one(outputs), _outer(_rank_one(labeled)) if labeled else None
    return Vectors(pool, *_before_picks(_outer(pool), seen, outputs, labeled, k, strength))


@listed("bait")
def bait(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None = None, strength: float = STRENGTH) -> Picks:
    """BAIT (Ash, Goel, Krishnamurthy & Kakade 2021): greedy on tr(M⁻¹F), the Fisher information F of the last layer.

    Keeps a matrix of C·D rows, and two of C rows for each example: if these do not fit, use bait-binary. λ and ties are as
    there.

    >>> import badge, numpy as np
    >>> out = badge.Outputs([[0.5, 0.5], [0.99, 0.01], [0.5, 0.5]], [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    >>> sorted(bait(out, 2, np.random.default_rng(0)).tolist())
    [0, 2]
    """
    information = blocks(outputs, k, rng, labeled, strength)
    return forward_backward(information, len(outputs), k, information.h.device)


def blocks(outputs: Outputs, k: int, rng: Generator, labeled: Outputs | None, strength: float = STRENGTH) -> Blocks:
    """The objective of `bait`."""
    p, h = _classes(outputs), Dense.trusted(outputs.embeddings)
    n, c, d = len(h), p.shape[1], h.width
    if c * d > WIDEST or n * c * c > MOST_NUMBERS:
        kept = f"{c * c:,} numbers for each of {n:,} examples (at most {MOST_NUMBERS:,} in all)"
        matrix = f"a matrix of {c} × {d} = {c * d:,} rows (at most {WIDEST:,})"
        raise InputError(f"bait needs {matrix} and {kept}: use bait-binary")
    seen = _fisher(_classes(labeled), Dense.trusted(labeled.embeddings)) if labeled else None
    return Blocks(p, h, *_before_picks(_fisher(p, h), seen, outputs, labeled, k, strength))


def _before_picks(
    pool: Tensor, seen: Tensor | None, outputs: Outputs, labeled: Outputs | None, k: int, strength: float
) -> tuple[Tensor, Tensor, float]:
    """F, M⁻¹ without picks, and the scale of rows. `pool` and `seen` are the sums over `outputs` and `labeled`."""
    if positive(strength, "strength") < LEAST_STRENGTH:
        found = f"strength is {strength:g}, and must be at least {LEAST_STRENGTH:g}"
        raise InputError(f"{found}: the default is {STRENGTH}")
    penalty = strength * (float(Dense.trusted(outputs.embeddings).sq_norms.double().mean()) or 1.0)
    start, known = penalty * torch.eye(len(pool), dtype=pool.dtype, device=pool.device), len(labeled or ())
    if seen is not None:
        start, pool = start + seen / (known + k), pool + seen
    return pool / (len(outputs) + known), torch.linalg.inv(start), (k / (known + k)) ** 0.5


def _classes(outputs: Outputs) -> Tensor:
    """Probabilities [N, C] with C ≥ 2, in float64."""
    check_one_label(outputs, "bait")
    p = outputs.probabilities[:].double().clamp(min=0)
    return torch.cat([1 - p, p], dim=1) if p.shape[1] == 1 else p


def _rank_one(outputs: Outputs) -> Features:
    """√(p̂(1 − p̂)) h."""
    check_one_label(outputs, "bait-binary")
    p, dtype = outputs.probabilities, outputs.embeddings.dtype
    sure = torch.cat([p[part].double().amax(dim=1) for part in chunks(p)])
    if p.shape[1] == 1:
        sure = torch.maximum(sure, 1 - sure)
    root = (sure * (1 - sure)).clamp(min=0).sqrt()[:, None]
    z = Factored.trusted(root.to(dtype if dtype == torch.float64 else torch.float32), outputs.embeddings)
    return Dense.trusted(z.as_matrix()) if small(outputs.embeddings) else z


def _outer(z: Features) -> Tensor:
    """Σ z zᵀ in float64."""
    d = z.factors[-1].shape[1]
    total = torch.zeros(d, d, dtype=torch.float64, device=z.device)
    for tile in z.tiles(2**22):
        rows = z.rows(tile).as_matrix().double()
        total += rows.T @ rows
    return total


def _fisher(p: Tensor, h: Dense) -> Tensor:
    """Σ (diag p − p pᵀ) ⊗ h hᵀ in C − 1 coordinates, [(C − 1)D, (C − 1)D] in float64."""
    c, d = p.shape[1] - 1, h.width
    total = torch.zeros(c, d, c, d, dtype=torch.float64, device=p.device)
    for begin in range(0, len(p), ROWS):
        rows = h.rows(slice(begin, begin + ROWS)).as_matrix()
        of_pair = weights(p[begin : begin + ROWS]).to(rows.dtype)
        for one in range(c):
            for other in range(one, c):
                total[one, :, other] += (rows * of_pair[:, one, other, None]).T @ rows
    for one in range(c):
        for other in range(one):
            total[one, :, other] = total[other, :, one].T
    return total.reshape(c * d, c * d)
