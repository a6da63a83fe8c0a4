"""The swap chain for k-DPPs (Kang 2013): replace one member at a time, keeping the inverse of the Gram matrix.

State: a set S of k rows and B = (Gram matrix of S)⁻¹. A step proposes to replace the member in slot i, uniform, by a row
v outside, uniform, and accepts with probability min(1, det(S − s_i + v) / det(S)). With b = ⟨S, v⟩ and y = B b that ratio is

    B_ii (⟨v, v⟩ − bᵀ y) + y_i²

and an accepted swap changes B by two outer products: O(k² + k(C+D)) a step. A proposal depends on earlier ones only through
S. So proposals are evaluated a block at a time, with matrix products in place of matrix-vector products, and an accepted swap
corrects the later ones of its block. Rows are scaled to length 1 and their lengths kept apart: norms that span many decades
would ruin the inverse.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.errors import RankError
from badge.features import Features, Rows

#: Proposals evaluated together.
BLOCK = 64
#: B is computed again when a row of (Gram matrix · B) is off the identity by more than this.
DRIFT = 1e-6
#: Share of a row's squared length that must lie outside the span of the others for the row to count as independent.
INDEPENDENT = 1e-10
#: A row with less than this share outside the span is swapped in only if the new set can be factorised: B's rounding is near.
CLEAR = 1e-4


def swap_chain(
    features: Features, k: int, rng: np.random.Generator, steps: int, start: Literal["uniform", "cholesky"] = "uniform"
) -> NDArray[np.int64]:
    """The state of the chain after `steps` steps, for k < N."""
    device = features.device
    inside = uniform_rows(features, k, rng) if start == "uniform" else None
    if inside is None:
        inside = independent_rows(features, k)
    outside = torch.ones(len(features), dtype=torch.bool, device=device)
    outside[inside] = False
    others = outside.nonzero()[:, 0]
    log_norms = features.sq_norms.double().log()
    members = unit(features, inside)
    inverse = invert(members)
    slots, places = rng.integers(k, size=steps), rng.integers(len(others), size=steps)
    log_u = np.log(rng.random(steps))
    done = 0
    while done < steps:
        part = slice(done, min(done + BLOCK, steps))
        block = Block(inverse, members, unit(features, others[torch.from_numpy(places[part]).to(device)]))
        taken: set[int] = set()
        for t in range(part.stop - part.start):
            slot, place = int(slots[done]), int(places[done])
            if place in taken:  # what stands there was swapped in this block: evaluate it again
                break
            old, new = inside[slot], others[place]
            ratio = block.ratio(t, slot)
            if ratio > 0 and log_u[done] < np.log(ratio) + float(log_norms[new] - log_norms[old]):
                swapped = inside.clone()
                swapped[slot] = new
                if block.outside(t, slot) > CLEAR or factorised(unit(features, swapped)) is not None:
                    block.swap(t, slot)
                    inside, others[place] = swapped, old.clone()
                    taken.add(place)
            done += 1
        if block.swapped:
            members, inverse = block.members, block.inverse()
            # A row that stayed: those just swapped in satisfy the identity by construction, whatever the others do.
            slot = next((s for s in range(k) if s not in block.swapped), block.swapped[0])
            product = members[slot : slot + 1].gram(members)[0].cpu() @ inverse
            product[slot] -= 1
            if not float(product.abs().max()) <= DRIFT:
                inverse = invert(members)
    return inside.cpu().numpy()


class Block:
    """The swaps of one block: everything about its proposals, corrected as swaps are accepted.

    Products of matrices run in torch; what a single swap changes is a few vectors, worked on in numpy, on the host and
    on one thread: at this size starting threads costs more than the work.
    """

    def __init__(self, inverse: Tensor, members: Rows, proposals: Rows) -> None:
        self.base, self.members, self.proposals = inverse, members, proposals
        self.updates = np.empty((len(inverse), 2 * len(proposals)))  # B = base + Σ ± u uᵀ, columns u
        self.signs = np.tile([-1.0, 1.0], len(proposals))
        self.swapped: list[int] = []
        self.diagonal = inverse.diagonal().numpy().copy()
        b = members.gram(proposals).cpu()
        self.b, self.y = b.numpy(), (inverse @ b).numpy()
        self.left = 1 - (self.b * self.y).sum(axis=0)  # squared length of each proposal outside the span of S
        self.among = proposals.gram(proposals).cpu().numpy()

    def ratio(self, t: int, slot: int) -> float:
        """det(S − s_slot + v_t) / det(S), rows scaled to length 1; 0 where v_t depends on the other members."""
        pivot = float(self.diagonal[slot])
        ratio = pivot * max(float(self.left[t]), 0.0) + float(self.y[slot, t]) ** 2
        return ratio if ratio > INDEPENDENT * pivot else 0.0  # rounding, times a long row's length, is not volume

    def outside(self, t: int, slot: int) -> float:
        """Squared length of v_t outside the span of the members but that in `slot`."""
        return self.ratio(t, slot) / float(self.diagonal[slot])

    def swap(self, t: int, slot: int) -> None:
        """Replace the member in `slot` by proposal t, and correct everything about the proposals."""
        pivot = float(self.diagonal[slot])
        rest = self.outside(t, slot)
        done = 2 * len(self.swapped)
        u = self.updates[:, :done]
        x = self.base[:, slot].numpy() + np.einsum("kj,j->k", u, u[slot] * self.signs[:done])  # column `slot` of B
        z = self.y[:, t] - x * (self.y[slot, t] / pivot)
        z[slot] = -1.0
        # B changes by − x xᵀ / pivot + z zᵀ / rest
        self.updates[:, done] = x / pivot**0.5
        self.updates[:, done + 1] = z / rest**0.5
        self.diagonal += z**2 / rest - x**2 / pivot
        new, old, y_slot = self.among[t], self.b[slot].copy(), self.y[slot].copy()
        change = new - old
        self.b[slot] = new
        along_x, along_z = y_slot + change * pivot, np.einsum("k,kp->p", z, self.b)
        self.left -= 2 * change * y_slot + change**2 * pivot
        self.left += along_x**2 / pivot - along_z**2 / rest
        self.y -= x[:, None] * (y_slot / pivot)
        self.y += z[:, None] * (along_z / rest)
        for member, proposal in zip(self.members.factors, self.proposals.factors, strict=True):
            member[slot] = proposal[t]
        self.swapped.append(slot)

    def inverse(self) -> Tensor:
        """B after the swaps, in place of the one before."""
        done = 2 * len(self.swapped)
        u = torch.from_numpy(self.updates[:, :done])
        return self.base.addmm_(u * torch.from_numpy(self.signs[:done]), u.T)


def unit(features: Features, ids: Tensor) -> Rows:
    """Rows scaled to length 1, in float64 (rows of length 0 stay 0)."""
    factors = features.rows(ids).double().factors
    return Rows(tuple(torch.nn.functional.normalize(f, dim=1, eps=1e-300) for f in factors))


def factorised(members: Rows) -> Tensor | None:
    """The Cholesky factor of the Gram matrix; None if a row depends on those before it, up to rounding."""
    factor, failed = torch.linalg.cholesky_ex(members.gram(members))
    return None if int(failed) or float(factor.diagonal().min()) ** 2 <= INDEPENDENT else factor


def invert(members: Rows) -> Tensor:
    """The inverse of the Gram matrix, symmetric, on the host."""
    factor = factorised(members)
    if factor is None:
        raise RankError(
            f"the Gram matrix of {len(members)} points cannot be factorised: they are linearly dependent up to rounding; "
            "lower k, or use kmeanspp"
        )
    return torch.cholesky_inverse(factor).cpu()


def uniform_rows(features: Features, k: int, rng: np.random.Generator) -> Tensor | None:
    """The first k linearly independent rows of a random order; None if that takes too many rows to find.

    This is a uniform set if its determinant is positive. Otherwise dependent rows are replaced.
    """
    order = torch.from_numpy(rng.permutation(len(features))[: max(4 * k, 1024)]).to(features.device)
    factor = torch.zeros(k, k, dtype=torch.float64, device=features.device)
    found = order[:0]
    for some in torch.split(order, BLOCK):
        done = len(found)
        rows = unit(features, some)
        members = unit(features, found)
        new = torch.linalg.solve_triangular(factor[:done, :done], members.gram(rows), upper=False).T
        small = rows.gram(rows) - new @ new.T
        kept = _independent_places(small, 0.0)[: k - done]
        lower, failed = torch.linalg.cholesky_ex(small[kept][:, kept])
        if int(failed):
            return None
        size = len(kept)
        factor[done : done + size, :done] = new[kept]
        factor[done : done + size, done : done + size] = lower
        found = torch.cat([found, some[kept]])
        if len(found) == k:
            return found
    return None


def independent_rows(features: Features, k: int) -> Tensor:
    """k linearly independent rows of large determinant: block-pivoted Cholesky on the rows of largest norm.

    Looks at more rows where these do not span enough; where the whole pool does not, the error names its rank.
    """
    order = torch.argsort(features.sq_norms, descending=True, stable=True)
    order = order[: int((features.sq_norms > 0).sum())]
    size = min(len(order), max(4 * k, 1024))
    while True:
        found = _pivoted_cholesky(unit(features, order[:size]), features.sq_norms[order[:size]].double(), k)
        if len(found) == k:
            return order[found]
        if size == len(order):
            raise RankError(
                f"asked for {k} points of a kernel of rank {len(found)} (pivoted Cholesky stopped there): "
                "every determinant is 0; lower k, or use kmeanspp"
            )
        size = min(len(order), 4 * size)


def _pivoted_cholesky(rows: Rows, sq_norms: Tensor, k: int) -> Tensor:
    """Up to k places of independent rows; each block takes those of largest residual that stay independent."""
    n = len(rows)
    factor = rows.factors[0].new_empty(n, min(k, n))
    left = sq_norms.new_ones(n)  # share of each row's squared length outside the span so far
    found: list[int] = []
    while len(found) < min(k, n):
        done = len(found)
        left[left <= INDEPENDENT] = 0  # else the rounding of long rows would crowd out short independent ones
        top = (left * sq_norms).topk(min(BLOCK, n, min(k, n) - done)).indices
        top = top[left[top] > 0]
        if not len(top):
            break
        some, f = rows[top], factor[top, :done]
        small = some.gram(some) - f @ f.T
        kept = _independent_places(small, 0.05)
        picks = top[kept]
        lower, failed = torch.linalg.cholesky_ex(small[kept][:, kept])
        if not len(kept) or int(failed):  # independent by rounding alone
            left[top] = 0
            continue
        residual = rows.gram(rows[picks]) - factor[:, :done] @ factor[picks, :done].T
        new = torch.linalg.solve_triangular(lower, residual.T, upper=False).T
        factor[:, done : done + len(picks)] = new
        left -= new.square().sum(dim=1)
        found += picks.tolist()
        left[found] = 0
    return torch.tensor(found, dtype=torch.int64, device=left.device)


def _independent_places(gram: Tensor, share: float) -> Tensor:
    """Places of a small Gram matrix, in order, that keep a clear residual, and `share` of theirs, over those before."""
    gram = gram.clone()
    start = gram.diagonal().clone()
    kept: list[int] = []
    for j in range(len(gram)):
        if gram[j, j] > max(INDEPENDENT, share * float(start[j])):
            kept.append(j)
            gram -= torch.outer(gram[:, j], gram[j]) / gram[j, j]
    return torch.tensor(kept, dtype=torch.int64, device=gram.device)
