"""BAIT's sampler: examples whose Fisher information reduces the pool's remaining uncertainty most.

With V_i the rows √p_iy (e_y − p_i) ⊗ h_i of example i, V_iᵀV_i is the Fisher information of the last layer. F is the mean of
V_jᵀV_j over pool and labelled set L, F_L that over L. BAIT (Ash, Goel, Krishnamurthy & Kakade 2021, "Gone Fishing: Neural
Active Learning with Fisher Embeddings", NeurIPS) lowers tr(M⁻¹F) greedily, M = λI + |L|/(|L|+k) F_L + Σ V_iᵀV_i over the
picks, every V_i scaled by √(k/(|L|+k)). It takes 2k forward steps, each adding the example of largest

    tr[ E_i (I + G_i)⁻¹ ],   G_i = V_i M⁻¹ V_iᵀ,   E_i = V_i M⁻¹ F M⁻¹ V_iᵀ        (C × C each)

and then k backward steps, each removing the pick of smallest tr[ E_i (I − G_i)⁻¹ ].

`Blocks` keeps G and E of every row and renews them from two products with [D × C²] per step, so that N × C × CD numbers never
exist. `Vectors` is the rank-one case V_i = z_iᵀ: per step one product with [D × 2]. Products run in float32.
`Vectors` bounds their rounding, and works out in float64 from M⁻¹ itself every row that the bound leaves open: its picks are
those of the plain loop. `Blocks` has no such bound. It works out the rows whose scores are within CLOSE of the largest, at
most MOST of them: its picks are those of the plain loop if scores in float32 are right to CLOSE/2 and no more than MOST
rows are that close.
"""

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from badge.features import Dense, Features
from badge.features.rows import resolution

#: Forward steps per pick.
OVERSAMPLE = 2
#: Scores that differ by less than this share are equal: the lowest position wins.
TIE = 1e-10
#: Blocks whose scores in float32 differ by less than CLOSE are worked out again in float64, at most MOST of them.
CLOSE, MOST = 1e-3, 16
#: Rows at a time in passes over the pool: what they need stays in cache.
ROWS = 4096


class Information(Protocol):
    """What the loop asks of either form."""

    def best(self, taken: Tensor) -> int:
        """The row not taken of largest forward score."""

    def losses(self, rows: list[int]) -> Tensor:
        """What removing each of these rows costs, [n]."""

    def change(self, row: int, sign: int) -> None:
        """Add a row (+1), or take it out again (−1)."""


def forward_backward(information: Information, n: int, k: int, device: torch.device) -> NDArray[np.int64]:
    """k positions: min(2k, n) forward steps, then backward to k; in the order of the forward steps."""
    taken = torch.zeros(n, dtype=torch.bool, device=device)
    picks: list[int] = []
    while len(picks) < min(OVERSAMPLE * k, n):
        picks.append(information.best(taken))
        taken[picks[-1]] = True
        information.change(picks[-1], +1)
    while len(picks) > k:
        losses = information.losses(picks)
        least = float(losses.min())
        place = int((losses <= least + TIE * abs(least)).nonzero()[0])
        information.change(picks.pop(place), -1)
    return np.array(picks, dtype=np.int64)


class Vectors:
    """The rank-one form: score e/(1 + g) with g = zᵀM⁻¹z and e = zᵀM⁻¹FM⁻¹z.

    Adding s with w = M⁻¹z_s, q = M⁻¹Fw and j = 1/(1 + g_s): u = Zw, v = Zq; g −= j u²; e −= 2j uv − j² (wᵀFw) u².
    The rounding of these steps adds up. Rows that it leaves undecided are worked out from M⁻¹, and begin anew.
    """

    def __init__(self, z: Features, fisher: Tensor, start: Tensor, scale: float) -> None:
        """`z` are the vectors; `fisher` is F, `start` M without picks (both [D, D], float64)."""
        self.z, self.fisher, self.scale = z, fisher, scale
        self.inverse = torch.linalg.inv(start)
        self.sq_norms = z.sq_norms.double() * scale**2
        self.g, self.e = torch.empty_like(self.sq_norms), torch.empty_like(self.sq_norms)
        middle = self.inverse @ fisher @ self.inverse
        for tile in z.tiles(2**22):
            rows = z.rows(tile).as_matrix() * scale
            self.g[tile] = (rows @ self.inverse.to(rows.dtype) * rows).sum(dim=1)
            self.e[tile] = (rows @ middle.to(rows.dtype) * rows).sum(dim=1)
        self.rounding = resolution(z.dtype) * (4 + z.width / 2)
        # errors of g and e are at most these times the squared norm: two sums and the rounding of a matrix
        self.errors = torch.stack([3 * self.rounding * x.norm() for x in (self.inverse, middle)])
        self.without = self.errors.new_zeros(2, len(z))  # what they were when a row was worked out

    def _rows(self, ids: slice | Tensor) -> Tensor:
        return self.z.rows(ids).as_matrix().double() * self.scale

    def _exact(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        z = self._rows(ids)
        w = z @ self.inverse
        return (w * z).sum(dim=1), (w @ self.fisher * w).sum(dim=1)

    def best(self, taken: Tensor) -> int:
        g_error, e_error = (self.errors[:, None] - self.without).mul_(self.sq_norms)
        low = ((self.e - e_error) / (1 + self.g + g_error)).masked_fill_(taken, -torch.inf)
        high = ((self.e + e_error) / (1 + (self.g - g_error).clamp_(min=0))).masked_fill_(taken, -torch.inf)
        left = (high >= low.max()).nonzero()[:, 0]
        if len(left) == 1:
            return int(left[0])
        self.g[left], self.e[left] = (
            torch.cat(x) for x in zip(*map(self._exact, torch.split(left, ROWS)), strict=True)
        )
        self.without[:, left] = self.errors[:, None]
        scores = self.e[left] / (1 + self.g[left])
        largest = float(scores.max())
        return int(left[(scores >= largest - TIE * abs(largest)).nonzero()[0]])

    def score(self, row: int) -> float:
        """By how much adding the row lowers tr(M⁻¹F)."""
        g, e = self._exact(torch.tensor([row], device=self.sq_norms.device))
        return float(e / (1 + g))

    def losses(self, rows: list[int]) -> Tensor:
        g, e = self._exact(torch.tensor(rows, device=self.sq_norms.device))
        return e / (1 - g)

    def change(self, row: int, sign: int) -> None:
        z = self._rows(slice(row, row + 1))[0]
        w = self.inverse @ z
        q = self.inverse @ (self.fisher @ w)
        j = 1 / (sign + float(z @ w))
        if sign > 0:  # backward steps look at the picks alone, and work those out from M⁻¹
            self._renew(w, q, j, float(w @ self.fisher @ w))
        self.inverse -= j * torch.outer(w, w)

    def _renew(self, w: Tensor, q: Tensor, j: float, wfw: float) -> None:
        both = (torch.stack([w, q]) * self.scale).to(self.z.dtype).T
        for tile in self.z.tiles(2**24):
            u, v = (self.z.rows(tile).as_matrix() @ both).double().unbind(1)
            self.g[tile] -= j * u * u
            self.e[tile] -= (2 * j * v - j * j * wfw * u) * u
        r = self.rounding * (2 + self.rounding)
        w_norm, q_norm = float(w.norm()), float(q.norm())
        self.errors[0] += j * r * w_norm**2
        self.errors[1] += 2 * j * r * w_norm * q_norm + j * j * wfw * r * w_norm**2


class Blocks:
    """The full form. Adding s with W = M⁻¹V_sᵀ, Q = M⁻¹FW and J = (I + V_sW)⁻¹: Z_i = V_iW, Y_i = V_iQ, and

    G_i −= Z_iJZ_iᵀ;   E_i −= Z_iJY_iᵀ + Y_iJZ_iᵀ − Z_iJ(WᵀFW)JZ_iᵀ
    """

    def __init__(self, a: Tensor, h: Dense, fisher: Tensor, start: Tensor, scale: float) -> None:
        """`a` [N, C, C] holds the rows √p_y (e_y − p); `fisher` and `start` are [CD, CD] in float64."""
        self.a, self.h, self.fisher, self.scale = a, h, fisher, scale
        self.inverse = torch.linalg.inv(start)
        self.g, self.e = (self._sandwich(x) for x in (self.inverse, self.inverse @ fisher @ self.inverse))

    def _tiles(self) -> list[slice]:
        return [slice(s, min(s + ROWS, len(self.a))) for s in range(0, len(self.a), ROWS)]

    def _sandwich(self, x: Tensor) -> Tensor:
        """V_i X V_iᵀ of every row, [N, C, C]: h_iᵀ X_cd h_i for each pair of classes, then a on both sides."""
        c, d = self.a.shape[2], self.h.width
        found = torch.empty_like(self.a)
        by_pair = x.view(c, d, c, d).to(self.h.dtype)
        for tile in self._tiles():
            h = self.h.rows(tile).as_matrix() * self.scale
            inner = h.new_empty(len(h), c, c)
            for one in range(c):
                for other in range(one, c):
                    inner[:, one, other] = inner[:, other, one] = (h @ by_pair[one, :, other] * h).sum(dim=1)
            found[tile] = self.a[tile] @ inner @ self.a[tile].transpose(1, 2)
        return found

    def _block(self, ids: Tensor) -> Tensor:
        """V of some rows, [n, C, CD], in float64."""
        h = self.h.rows(ids).as_matrix().double() * self.scale
        return (self.a[ids].double()[:, :, :, None] * h[:, None, None, :]).flatten(2)

    def _exact(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        v = self._block(ids)
        w = v @ self.inverse
        return w @ v.transpose(1, 2), w @ self.fisher @ w.transpose(1, 2)

    def best(self, taken: Tensor) -> int:
        traces = self.e.diagonal(dim1=1, dim2=2).sum(dim=1).masked_fill_(taken, -torch.inf)
        order = traces.argsort(descending=True)
        scores = torch.full_like(traces, -torch.inf)
        eye, leader = torch.eye(self.a.shape[1], dtype=self.a.dtype, device=self.a.device), -torch.inf
        for some in torch.split(order, ROWS):  # tr[E (I + G)⁻¹] ≤ tr E
            if float(traces[some[0]]) <= leader:
                break
            scores[some] = torch.linalg.solve(eye + self.g[some], self.e[some]).diagonal(dim1=1, dim2=2).sum(dim=1)
            scores.masked_fill_(taken, -torch.inf)
            leader = float(scores.max())
        close = (scores >= leader - CLOSE * abs(leader)).nonzero()[:, 0]
        if len(close) == 1:
            return int(close[0])
        close = close[scores[close].topk(min(len(close), MOST)).indices].sort().values
        g, e = self._exact(close)
        exact = torch.linalg.solve(eye.double() + g, e).diagonal(dim1=1, dim2=2).sum(dim=1)
        largest = float(exact.max())
        return int(close[(exact >= largest - TIE * abs(largest)).nonzero()[0]])

    def losses(self, rows: list[int]) -> Tensor:
        losses = []
        for ids in torch.split(torch.tensor(rows, device=self.a.device), MOST):
            g, e = self._exact(ids)
            eye = torch.eye(g.shape[1], dtype=g.dtype, device=g.device)
            losses.append(torch.linalg.solve(eye - g, e).diagonal(dim1=1, dim2=2).sum(dim=1))
        return torch.cat(losses)

    def change(self, row: int, sign: int) -> None:
        v = self._block(torch.tensor([row], device=self.a.device))[0]
        w = self.inverse @ v.T
        middle = self.fisher @ w
        eye = torch.eye(len(v), dtype=v.dtype, device=v.device)
        j = torch.linalg.inv(sign * eye + v @ w)
        if sign > 0:
            self._renew(w, self.inverse @ middle, j, w.T @ middle)
        self.inverse -= w @ j @ w.T

    def _renew(self, w: Tensor, q: Tensor, j: Tensor, wfw: Tensor) -> None:
        c, d, dtype = self.a.shape[2], self.h.width, self.a.dtype
        both = torch.stack([w, q]).view(2, c, d, -1).permute(2, 1, 0, 3).reshape(d, -1).to(dtype) * self.scale
        j, wfw = j.to(dtype), wfw.to(dtype)
        for tile in self._tiles():
            a = self.a[tile]
            zy = a @ (self.h.rows(tile).as_matrix() @ both).view(len(a), c, -1)
            z, y = zy[:, :, : len(j)], zy[:, :, len(j) :]
            zj = z @ j
            self.g[tile] -= zj @ z.transpose(1, 2)
            cross = zj @ (y - zj @ wfw / 2).transpose(1, 2)
            self.e[tile] -= cross + cross.transpose(1, 2)
