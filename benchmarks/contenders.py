"""Who is measured. A contender is prepared with a pool and k, and then called with a seed: that call is what is timed.

Preparation holds nothing that a selection needs: everything from `Outputs` to positions is inside the timer. The bare
product is the exception, because it is a yardstick and selects nothing.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from badge import samplers
from badge.core.rng import generator
from badge.features import gradient_embedding
from badge.outputs import Outputs
from badge.samplers.plain import plain_kcenter
from badge.strategies.choose import select_from

__all__ = ["CONTENDERS", "Contender", "Pick", "residual"]

#: seed -> positions (None: it selects nothing)
Pick = Callable[[int], "np.ndarray[Any, Any] | None"]
#: Columns of the bare product.
COLUMNS = 512
#: The bare product's buffer is not larger than this; a larger pool is multiplied in equal pieces.
BUFFER_BYTES = 2**30


@dataclass(frozen=True)
class Contender:
    """`prepare(outputs, k)` gives the call that is timed.

    `distinct`: it promises k distinct positions. `package`: what must be installed (None: badge alone). `per_columns`:
    the call does the work of this many centres, and is scaled to k.
    """

    name: str
    prepare: Callable[[Outputs, int], Pick]
    distinct: bool = True
    package: str | None = None
    per_columns: int | None = None

    @property
    def missing(self) -> str | None:
        """Why it cannot run here, or None."""
        if self.package is None:
            return None
        try:
            importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return f"{self.package} is not installed: pip install 'badge-learn[bench]'"
        return None

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package) if self.package and not self.missing else ""


def residual(probabilities: Tensor) -> Tensor:
    """a = p − e_ŷ, [N, C]."""
    a = probabilities.clone()
    return a.scatter_add_(1, a.argmax(1, keepdim=True), a.new_full((len(a), 1), -1.0))


def ours(strategy: str) -> Callable[[Outputs, int], Pick]:
    return lambda outputs, k: lambda seed: select_from(outputs, k, strategy, seed=seed)


def ours_coreset(labels: int | None = None) -> Callable[[Outputs, int], Pick]:
    """The last rows of the outputs count as labelled: this number, or half of them."""

    def prepare(outputs: Outputs, k: int) -> Pick:
        first = len(outputs) - min(labels or len(outputs), len(outputs) // 2)
        pool, labeled = outputs[:first], outputs[first:]
        return lambda seed: select_from(pool, k, "coreset", seed=seed, labeled=labeled)

    return prepare


def labelled_product(labels: int) -> Callable[[Outputs, int], Pick]:
    """N × D by D × labelled into a preallocated buffer: what the distances to all labelled examples cost at least."""

    def prepare(outputs: Outputs, k: int) -> Pick:
        first = len(outputs) - min(labels, len(outputs) // 2)
        pool, labeled = outputs.embeddings[:first], outputs.embeddings[first:].T.contiguous()
        buffer = torch.empty(first, labeled.shape[1])

        def multiply(seed: int) -> None:
            torch.mm(pool, labeled, out=buffer)

        return multiply

    return prepare


def ours_kdpp(method: Any, steps: int | None = None) -> Callable[[Outputs, int], Pick]:
    def prepare(outputs: Outputs, k: int) -> Pick:
        return lambda seed: samplers.kdpp(gradient_embedding(outputs), k, generator(seed), method=method, steps=steps)

    return prepare


def plain_kmeanspp(outputs: Outputs, k: int) -> Pick:
    """One centre at a time: two matrix-vector products, a clamp, a minimum, a cumulative sum, a search; all in place."""

    def pick(seed: int) -> np.ndarray[Any, Any]:
        rng = generator(seed)
        centre = _Centre(outputs)
        first = int(rng.integers(len(outputs)))
        picks, at = [first], torch.from_numpy(rng.random(k))
        mass = torch.empty(len(outputs), dtype=torch.float64)
        best = centre.sq_dists_to(first).clone()
        best[first] = 0
        for i in range(1, k):
            torch.cumsum(best, 0, dtype=torch.float64, out=mass)
            new = min(int(torch.searchsorted(mass, at[i] * mass[-1], right=True)), len(mass) - 1)
            picks.append(new)
            torch.minimum(best, centre.sq_dists_to(new), out=best)
            best[new] = 0
        return np.array(picks, dtype=np.int64)

    return pick


def plain_furthest(outputs: Outputs, k: int) -> Pick:
    """Furthest-first in float32, one centre at a time, with one argmax in place of the draw."""

    def pick(seed: int) -> np.ndarray[Any, Any]:
        centre = _Centre(outputs)
        new = int(generator(seed).integers(len(outputs)))
        picks = [new]
        best = centre.sq_dists_to(new).clone()
        best[new] = -1
        for _ in range(1, k):
            new = int(best.argmax())
            picks.append(new)
            torch.minimum(best, centre.sq_dists_to(new), out=best)
            best[new] = -1
        return np.array(picks, dtype=np.int64)

    return pick


class _Centre:
    """Squared distances of the whole pool to one row, in buffers that are used again."""

    def __init__(self, outputs: Outputs) -> None:
        # Transposed, because a product with so narrow a matrix takes half the time that way.
        self.a, self.h = residual(outputs.probabilities).T.contiguous().T, outputs.embeddings
        norms = torch.linalg.vector_norm(self.a, dim=1) * torch.linalg.vector_norm(self.h, dim=1)
        self.sq_norms = norms.square_()
        self.u, self.v = torch.empty_like(norms), torch.empty_like(norms)

    def sq_dists_to(self, row: int) -> Tensor:
        torch.mv(self.a, self.a[row], out=self.u)
        torch.mv(self.h, self.h[row], out=self.v)
        torch.addcmul(self.sq_norms, self.u, self.v, value=-2, out=self.u)
        return self.u.add_(self.sq_norms[row]).clamp_(min=0)


def exact_furthest(outputs: Outputs, k: int) -> Pick:
    """The plain greedy loop that decides near ties in float64: what ours must agree with, pick by pick."""
    return lambda seed: plain_kcenter(gradient_embedding(outputs), k, generator(seed))


def bare_product(outputs: Outputs, k: int) -> Pick:
    """N × (C + D) by (C + D) × 512 into a preallocated buffer."""
    x = torch.cat([residual(outputs.probabilities), outputs.embeddings], 1)
    y = torch.randn(x.shape[1], COLUMNS, generator=torch.Generator().manual_seed(0))
    pieces = torch.chunk(x, -(-len(x) * COLUMNS * 4 // BUFFER_BYTES))
    buffer = torch.empty(len(pieces[0]), COLUMNS)

    def multiply(seed: int) -> None:
        for piece in pieces:
            torch.mm(piece, y, out=buffer[: len(piece)])

    return multiply


def _all() -> dict[str, Contender]:
    from benchmarks import peers

    found = [
        Contender("ours", ours("badge")),
        Contender("plain loop", plain_kmeanspp),
        Contender("bare product", bare_product, per_columns=COLUMNS),
        # A picked point may be drawn again by these two: neither takes it out, and float residue has mass.
        Contender("scikit-learn", peers.scikit_learn, distinct=False, package="scikit-learn"),
        Contender("scikit-activeml", peers.scikit_activeml, distinct=False, package="scikit-activeml"),
        Contender("bmdal-reg kmeanspp", peers.bmdal("KmeansppSelectionMethod"), package="bmdal-reg"),
        Contender("ours kcenter-grad", ours("kcenter-grad")),
        Contender("plain furthest-first", plain_furthest),
        Contender("plain furthest-first, ties in float64", exact_furthest),
        Contender("bmdal-reg maxdist", peers.bmdal("MaxDistSelectionMethod"), package="bmdal-reg"),
        Contender("ours coreset, half labelled", ours_coreset()),
        Contender("ours coreset, 500 labelled", ours_coreset(500)),
        Contender("bare product with 500 labelled", labelled_product(500)),
        Contender("ours k-DPP exact", ours_kdpp("exact")),
        Contender("ours k-DPP mcmc", ours_kdpp("mcmc")),
        Contender("ours k-DPP mcmc, 100 steps", ours_kdpp("mcmc", 100)),
        Contender("DPPy exact", peers.dppy_exact, package="dppy"),
        Contender("DPPy mcmc", peers.dppy_mcmc, package="dppy"),
    ]
    return {contender.name: contender for contender in found}


CONTENDERS = _all()
