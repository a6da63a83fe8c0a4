"""BAIT's sampler: the examples that lower the variance of the last layer most, by its Fisher information.

The Fisher information of example i is P_i ⊗ h_i h_iᵀ with P = diag p − p pᵀ. F is its mean over pool and labelled set L, F_L
that over L. BAIT (Ash, Goel, Krishnamurthy & Kakade 2021, "Gone Fishing: Neural Active Learning with Fisher Embeddings",
NeurIPS) lowers tr(M⁻¹F) greedily, M = λI + |L|/(|L|+k) F_L + Σ P_i ⊗ h_i h_iᵀ over the picks, h_i scaled by √(k/(|L|+k)). It
takes 2k forward steps, each adding the example of largest

    tr[ (I + P_i G_i)⁻¹ P_i E_i ],   G_i = H_iᵀ M⁻¹ H_i,   E_i = H_iᵀ M⁻¹ F M⁻¹ H_i,   H_i = I ⊗ h_i

and then k backward steps, each removing the pick of smallest tr[ (I − P_i G_i)⁻¹ P_i E_i ]. Of equal scores the lowest
position is added, and of equal losses the pick that was added first is removed.

`Blocks` keeps G and E of every row and renews them from two products with [D × C²] per step, so that N × C × CD numbers never
exist. P maps (1, …, 1) to 0: it is written in C − 1 coordinates. `Vectors` is the rank-one case: per step one product with
[D × 2]. Products run in float32. `Vectors` bounds their rounding, and works out in float64 from M⁻¹ itself every row that the
bound leaves open: its picks are those of the plain loop. `Blocks` has no such bound. It works out the rows whose scores are
within CLOSE of the largest, at most MOST of them: its picks are those of the plain loop if scores in float32 are right to
CLOSE/2 and no more than MOST rows are that close. Backward steps look at the picks alone, in float64.
"""

from __future__ import annotations

from functools import reduce
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.core.threads import in_threads
from badge.features import Dense, Features
from badge.features.rows import resolution

#: Forward steps per pick.
OVERSAMPLE = 2
#: Scores that differ by less than this share are equal.
TIE = 1e-10
#: Blocks whose scores in float32 differ by less than CLOSE are worked out again in float64, at most MOST of them.
CLOSE, MOST = 1e-3, 16
#: Rows at a time in passes over the pool: what they need stays in cache.
ROWS = 4096


def forward_backward(information: Vectors | Blocks, n: int, k: int, device: torch.device) -> NDArray[np.int64]:
    """k positions: min(2k, n) forward steps, then backward to k; in the order of the forward steps."""
    taken = torch.zeros(n, dtype=torch.bool, device=device)
    picks: list[int] = []
    while len(picks) < min(OVERSAMPLE * k, n):
        picks.append(information.best(taken))
        taken[picks[-1]] = True
        information.change(picks[-1], +1)
    few, kept = information.narrowed(picks), list(range(len(picks)))
    while len(kept) > k:
        place = _first(-few.losses()[kept])
        few.change(kept.pop(place), -1)
    return np.array(picks, dtype=np.int64)[kept]


def _first(scores: Tensor) -> int:
    """The lowest place of a largest score."""
    largest = float(scores.max())
    return int((scores >= largest - TIE * abs(largest)).nonzero()[0])


def _tiles(n: int, rows: int) -> list[slice]:
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


class Information(Protocol):
    """What `Vectors` and `Blocks` share; `inverse` is M⁻¹."""

    inverse: Tensor

    def scores(self, ids: Tensor) -> Tensor: ...

    def change(self, row: int, sign: int) -> None: ...

    def added(self, ids: list[int]) -> list[float]:
        """By how much each of the rows `ids`, in this order, lowers tr(M⁻¹F)."""
        lowered = []
        for i in ids:
            lowered.append(float(self.scores(torch.tensor([i], device=self.inverse.device))))
            self.change(i, +1)
        return lowered


class Vectors(Information):
    """The rank-one form: score e/(1 + g) with g = zᵀM⁻¹z and e = zᵀM⁻¹FM⁻¹z.

    Adding s with w = M⁻¹z_s, q = M⁻¹Fw and j = 1/(1 + g_s): u = Zw, v = Zq; g −= j u²; e −= 2j uv − j² (wᵀFw) u².
    The rounding of these steps adds up. Rows that it leaves undecided are worked out from M⁻¹ itself.
    """

    def __init__(self, z: Features, fisher: Tensor, inverse: Tensor, scale: float) -> None:
        """`z` are the vectors; `fisher` is F, `inverse` M⁻¹ without picks (both [D, D], float64), changed in place."""
        self.z, self.fisher, self.inverse, self.scale = z, fisher, inverse, scale
        self.sq_norms = z.sq_norms.double() * scale**2
        self.g, self.e = torch.empty_like(self.sq_norms), torch.empty_like(self.sq_norms)
        middle = self.inverse @ fisher @ self.inverse

        def begin(tile: slice) -> None:
            rows = z.rows(tile).as_matrix() * scale
            self.g[tile] = (rows @ self.inverse.to(rows.dtype) * rows).sum(dim=1)
            self.e[tile] = (rows @ middle.to(rows.dtype) * rows).sum(dim=1)

        self.tiles = _tiles(len(z), 4 * ROWS)
        in_threads(begin, self.tiles, z.device)
        self.rounding = resolution(z.dtype) * (4 + z.width / 2)
        # errors of g and e per unit of squared norm, at most: from two sums and the rounding of a matrix
        self.errors = torch.stack([3 * self.rounding * x.norm() for x in (self.inverse, middle)])
        self.without = self.errors.new_zeros(2, len(z))  # what they were when a row was worked out

    def _rows(self, ids: slice | Tensor) -> Tensor:
        return self.z.rows(ids).as_matrix().double() * self.scale

    def _exact(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        z = self._rows(ids)
        w = z @ self.inverse
        return (w * z).sum(dim=1), (w @ self.fisher * w).sum(dim=1)

    def best(self, taken: Tensor) -> int:
        """The row not taken of largest forward score."""
        high = torch.empty_like(self.e)

        def lowest(tile: slice) -> float:
            g, e, gone = self.g[tile], self.e[tile], taken[tile]
            g_error, e_error = (self.errors[:, None] - self.without[:, tile]).mul_(self.sq_norms[tile])
            high[tile] = ((e + e_error) / (1 + (g - g_error).clamp_(min=0))).masked_fill_(gone, -torch.inf)
            return float(((e - e_error) / (1 + g + g_error)).masked_fill_(gone, -torch.inf).max())

        left = (high >= max(in_threads(lowest, self.tiles, high.device))).nonzero()[:, 0]
        if len(left) == 1:
            return int(left[0])
        self.g[left], self.e[left] = (
            torch.cat(x) for x in zip(*map(self._exact, torch.split(left, ROWS)), strict=True)
        )
        self.without[:, left] = self.errors[:, None]
        return int(left[_first(self.e[left] / (1 + self.g[left]))])

    def scores(self, ids: Tensor) -> Tensor:
        """By how much adding each of these rows lowers tr(M⁻¹F), in float64."""
        g, e = self._exact(ids)
        return e / (1 + g)

    def losses(self) -> Tensor:
        """What removing each row costs, [N]."""
        return self.e / (1 - self.g)

    def narrowed(self, ids: list[int]) -> Vectors:
        """These rows alone, in float64."""
        rows = self.z.rows(torch.tensor(ids, device=self.sq_norms.device)).as_matrix().double()
        return Vectors(Dense.trusted(rows), self.fisher, self.inverse, self.scale)

    def change(self, row: int, sign: int) -> None:
        """Add a row (+1), or take it out again (−1)."""
        z = self._rows(slice(row, row + 1))[0]
        w = self.inverse @ z
        q = self.inverse @ (self.fisher @ w)
        j, wfw = 1 / (sign + float(z @ w)), float(w @ self.fisher @ w)
        both = (torch.stack([w, q]) * self.scale).to(self.z.dtype).T

        def renew(tile: slice) -> None:
            *roots, h = self.z.rows(tile).factors  # a product with h alone leaves no copy of the rows in memory
            u, v = reduce(torch.mul, roots, h @ both).double().unbind(1)
            self.g[tile] -= j * u * u
            self.e[tile] -= (2 * j * v - j * j * wfw * u) * u

        in_threads(renew, self.tiles, self.z.device)
        r = self.rounding * (2 + self.rounding)
        w_norm, q_norm = float(w.norm()), float(q.norm())
        self.errors[0] += abs(j) * r * w_norm**2
        self.errors[1] += 2 * abs(j) * r * w_norm * q_norm + j * j * wfw * r * w_norm**2
        self.inverse -= j * torch.outer(w, w)


def coordinates(classes: int, device: torch.device) -> Tensor:
    """An orthonormal basis of what is orthogonal to (1, …, 1), [C, C − 1] in float64."""
    eye = torch.eye(classes, dtype=torch.float64, device=device)
    eye[:, 0] = 1
    whole: Tensor = torch.linalg.qr(eye).Q
    return whole[:, 1:]


def weights(p: Tensor) -> Tensor:
    """diag p − p pᵀ of each row of probabilities in `coordinates`, [N, C − 1, C − 1]."""
    basis = coordinates(p.shape[1], p.device)
    outer, mean = basis[:, :, None] * basis[:, None, :], p @ basis
    return (p @ outer.flatten(1)).view(-1, *outer.shape[1:]) - mean[:, :, None] * mean[:, None, :]


class Blocks(Information):
    """The full form. Adding s with P_s = AᵀA, V = A ⊗ h_sᵀ and RRᵀ = (I + VM⁻¹Vᵀ)⁻¹: W = RᵀVM⁻¹, X = 2WFM⁻¹ − (WFWᵀ)W,
    and with Z_i = WH_i and Y_i = XH_i

    G_i −= Z_iᵀZ_i;   E_i −= Z_iᵀY_i;   M⁻¹ −= WᵀW

    of which E is the symmetric part. Scores read no other. The methods are those of `Vectors`.
    """

    def __init__(self, p: Tensor, h: Dense, fisher: Tensor, inverse: Tensor, scale: float) -> None:
        """`p` [N, C] in float64; `fisher` and `inverse` as in Vectors, but [(C − 1)D, (C − 1)D]."""
        self.probabilities, self.h, self.fisher, self.scale = p, h, fisher, scale
        self.inverse = inverse.contiguous()  # a product with a transposed matrix can be forty times slower
        self.c, self.tiles = p.shape[1] - 1, _tiles(len(p), ROWS)
        self.p = torch.empty(len(p), self.c, self.c, dtype=h.dtype, device=p.device)
        for tile in self.tiles:
            self.p[tile] = weights(p[tile])
        self.g, self.e = (self._sandwich(x) for x in (self.inverse, self.inverse @ fisher @ self.inverse))
        self.traces = torch.cat([(self.p[tile] * self.e[tile]).sum(dim=(1, 2)) for tile in self.tiles])

    def _sandwich(self, x: Tensor) -> Tensor:
        """H_iᵀ X H_i of every row, [N, C − 1, C − 1]: h_iᵀ X_cd h_i for each pair of coordinates."""
        found = torch.empty_like(self.p)
        by_pair = x.view(self.c, self.h.width, self.c, self.h.width).to(self.h.dtype)
        for tile in self.tiles:
            h = self.h.rows(tile).as_matrix() * self.scale
            for one in range(self.c):
                for other in range(one, self.c):
                    found[tile, one, other] = found[tile, other, one] = (h @ by_pair[one, :, other] * h).sum(dim=1)
        return found

    def scores(self, ids: Tensor) -> Tensor:
        """By how much adding each of these rows lowers tr(M⁻¹F), in float64."""
        h = self.h.rows(ids).as_matrix().double() * self.scale
        eye = torch.eye(self.c, dtype=h.dtype, device=h.device)
        v = (eye[None, :, :, None] * h[:, None, None, :]).flatten(2)
        w = v @ self.inverse
        g, e = w @ v.transpose(1, 2), w @ self.fisher @ w.transpose(1, 2)
        return _traces(weights(self.probabilities[ids]), g, e, +1)

    def best(self, taken: Tensor) -> int:
        bounds = self.traces.masked_fill(taken, -torch.inf)  # tr[(I + PG)⁻¹PE] ≤ tr[PE]
        order = bounds.argsort(descending=True)
        scores, leader = torch.full_like(bounds, -torch.inf), -torch.inf
        for some in torch.split(order, ROWS // 4):
            if float(bounds[some[0]]) <= leader:
                break
            found = _traces(self.p[some], self.g[some], self.e[some], +1)
            scores[some] = found.masked_fill_(taken[some], -torch.inf)
            leader = max(leader, float(found.max()))
        close = (scores >= leader - CLOSE * abs(leader)).nonzero()[:, 0]
        if len(close) == 1:
            return int(close[0])
        close = close[scores[close].sort(descending=True, stable=True).indices[:MOST]].sort().values
        return int(close[_first(self.scores(close))])

    def losses(self) -> Tensor:
        return _traces(self.p, self.g, self.e, -1)

    def narrowed(self, ids: list[int]) -> Blocks:
        rows = torch.tensor(ids, device=self.p.device)
        h = Dense.trusted(self.h.rows(rows).as_matrix().double())
        return Blocks(self.probabilities[rows], h, self.fisher, self.inverse, self.scale)

    def change(self, row: int, sign: int) -> None:
        one = slice(row, row + 1)
        values, vectors = torch.linalg.eigh(weights(self.probabilities[one])[0])
        root = (vectors * values.clamp(min=0).sqrt()).T
        v = (root[:, :, None] * (self.h.rows(one).as_matrix()[0].double() * self.scale)).flatten(1)
        eye, w = torch.eye(len(v), dtype=v.dtype, device=v.device), v @ self.inverse
        w = torch.linalg.cholesky(torch.linalg.inv(eye + sign * (w @ v.T))).T @ w
        middle = w @ self.fisher
        x = 2 * middle @ self.inverse - sign * (middle @ w.T) @ w
        self.inverse.addmm_(w.T, w, alpha=-sign)
        w, x = (
            (v.view(self.c, self.c, -1) * self.scale).permute(2, 1, 0).flatten(1).to(self.h.dtype).contiguous()
            for v in (w, x)
        )
        for tile in self.tiles:
            h = self.h.rows(tile).as_matrix()
            z, y = ((h @ v).view(len(h), self.c, self.c) for v in (w, x))
            self.g[tile].baddbmm_(z, z.transpose(1, 2), alpha=-sign)
            self.e[tile].baddbmm_(z, y.transpose(1, 2), alpha=-sign)
            self.traces[tile] = (self.p[tile] * self.e[tile]).sum(dim=(1, 2))


def _traces(p: Tensor, g: Tensor, e: Tensor, sign: int) -> Tensor:
    """tr[(I ± PG)⁻¹ P E] of each row."""
    eye = torch.eye(p.shape[1], dtype=p.dtype, device=p.device)
    solved: Tensor = torch.linalg.solve(eye + sign * (p @ g), p @ e)
    return solved.diagonal(dim1=1, dim2=2).sum(dim=1)
