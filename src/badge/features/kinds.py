"""The two kinds of features: plain vectors, and gradient embeddings, kept factored: g = a ⊗ h with a = p − e_ŷ.

With one logistic output per label (multi-label) the loss is the sum of the labels' binary cross-entropies, and appendix B of
the paper holds in each column: a_l = p_l − 1[p_l > ½]. Each |a_l| is the smaller of p_l and 1 − p_l, so that ‖g‖ is the
smallest gradient norm over all label vectors, as proposition 1 says for one label.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from badge.core.arrays import as_tensor, check_finite
from badge.core.numbers import flag
from badge.core.rows import RowSource, place_of, small
from badge.core.threads import one_thread
from badge.errors import InputError
from badge.features.rows import Features, check_norms, index_of
from badge.outputs import Outputs
from badge.outputs.checks import check_matrix, check_scale

#: Up to this number, probabilities are turned into p − e_ŷ all at once. For more, fresh memory takes longer than the work.
IN_CACHE = 2**20


class Dense(Features):
    """Plain vectors [N, D] with the interface of gradient embeddings.

    Args:
        matrix: [N, D], numpy or torch. Memory-mapped arrays stay on disk.

    Raises:
        InputError: the argument is not a matrix of finite numbers.

    >>> import badge
    >>> badge.Dense([[0.0, 0.0], [3.0, 4.0]]).sq_norms.tolist()
    [0.0, 25.0]
    """

    def __init__(self, matrix: Any) -> None:
        x = as_tensor(matrix, "features")
        check_matrix(x, "features")
        check_finite(x, "features")
        check_scale(x, "features")
        self.factors = (x,)

    @property
    def rank_bound(self) -> int:
        return min(self.factors[0].shape)

    @classmethod
    def trusted(cls, matrix: RowSource) -> Dense:
        """Features of a matrix that was validated before (or that is read row block by row block); nothing is read."""
        self = cls.__new__(cls)
        self.factors = (matrix,)
        return self

    @classmethod
    def embeddings(cls, outputs: Outputs) -> Dense:
        """The embeddings of outputs as vectors.

        Args:
            outputs: the model's outputs for a pool.
        """
        self = cls.trusted(outputs.embeddings)
        self.norms = outputs.norms
        return self

    def __getitem__(self, ids: Any) -> Dense:
        return Dense.trusted(self.rows(index_of(ids, len(self), self.device)).factors[0])


class Unit(Dense):
    """Vectors that are scaled to length 1 when they are read; rows of zeros stay."""

    def derived(self, *factors: Tensor) -> tuple[Tensor, ...]:
        return (scaled(factors[0]),)


def scaled(x: Tensor) -> Tensor:
    """Rows of length 1, in float32 or float64."""
    unit = x.to(torch.float64, copy=True)
    length = torch.linalg.vector_norm(unit, dim=1, keepdim=True)
    if x.dtype == torch.float64 and len(x):  # squares of other numbers do not overflow
        longest = float(length.max())
        check_norms(longest * longest, x.dtype)
    unit.div_(length.masked_fill_(length == 0, 1.0))  # in place: fresh memory takes longer
    return unit if x.dtype == torch.float64 else unit.float()


def unit_rows(rows: RowSource) -> Dense:
    """Features whose rows have length 1.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).as_matrix().tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    return Dense.trusted(scaled(rows[:])) if small(rows) else Unit.trusted(rows)


class Factored(Features):
    """Gradient embeddings g_i = a_i ⊗ h_i, kept as their two factors.

    Args:
        a: [N, C], the gradient of the loss with respect to the scores: p − e_ŷ for BADGE.
        h: [N, D], the input of the output layer.
        bias: append a 1 to each h, which adds the gradient of the output layer's bias.

    Raises:
        InputError: the numbers of rows differ, or a number is not finite.

    >>> import badge, torch
    >>> g = badge.Factored(torch.tensor([[0.1, -0.1]]), torch.tensor([[3.0, 4.0]]))
    >>> g.as_matrix().shape, round(float(g.sq_norms[0]), 4)
    (torch.Size([1, 4]), 0.5)
    """

    multilabel = False

    def __init__(self, a: Any, h: Any, bias: bool = False) -> None:
        a, h = as_tensor(a, "a"), as_tensor(h, "h")
        if a.ndim != 2 or h.ndim != 2 or len(a) != len(h) or 0 in (*a.shape, *h.shape):
            shapes = f"{tuple(a.shape)} and {tuple(h.shape)}"
            raise InputError(f"a must be [N, C] and h [N, D] with the same N; got {shapes}")
        check_finite(a, "a")
        check_finite(h, "h")
        self.factors, self.bias = (a, h), flag(bias, "bias")

    @property
    def rank_bound(self) -> int:
        c, d = self.factors[0].shape[1], self.factors[1].shape[1] + self.bias
        # The rows of a sum to 0, which costs one dimension; but for logistic outputs, whose columns are independent.
        return min(len(self), (c if self.multilabel or c == 1 else c - 1) * d)

    @classmethod
    def trusted(cls, a: RowSource, h: RowSource, bias: bool = False, multilabel: bool = False) -> Factored:
        """Features of factors that were validated before (or that are read row block by row block); nothing is read."""
        self = cls.__new__(cls)
        self.factors, self.bias, self.multilabel = (a, h), bias, multilabel
        return self

    @property
    def a(self) -> Tensor:
        """p − e_ŷ, [N, C]."""
        return self.rows(slice(None)).factors[0]

    @property
    def h(self) -> Tensor:
        """Penultimate embeddings, [N, D], with the constant 1 appended if `bias` is set."""
        return self.rows(slice(None)).factors[1]

    def __getitem__(self, ids: Any) -> Factored:
        a, h = self.rows(index_of(ids, len(self), self.device)).factors
        return Factored.trusted(a, h, multilabel=self.multilabel)


class Gradient(Factored):
    """Gradient embeddings of outputs that stay where they are: a = p − e_ŷ is worked out for the rows that are read."""

    def derived(self, *factors: Tensor) -> tuple[Tensor, ...]:
        return residual(factors[0], self.multilabel), *factors[1:]


def residual(p: Tensor, multilabel: bool = False) -> Tensor:
    """p − e_ŷ, in float32 or float64; p whose square vanishes counts as 0, because products of p lose it.

    >>> residual(torch.tensor([[0.75, 0.25]])).tolist(), residual(torch.tensor([[0.75, 0.25]]), multilabel=True).tolist()
    ([[-0.25, 0.25]], [[-0.25, 0.25]])
    """
    wide = p.to(torch.float64 if p.dtype == torch.float64 else torch.float32)
    a = torch.nn.functional.hardshrink(wide, 2 * math.sqrt(torch.finfo(wide.dtype).tiny))
    if multilabel or p.shape[1] == 1:  # appendix B: ŷ = +1 where p > 1/2
        return a.sub_((a > 0.5).to(a.dtype))
    if a.device.type == "cpu":  # numpy finds the largest of many columns several times faster
        label = torch.from_numpy(a.numpy().argmax(axis=1, keepdims=True))
    else:
        label = a.argmax(dim=1, keepdim=True)
    return a.scatter_add_(1, label, a.new_full(label.shape, -1.0))


def gradient_embedding(outputs: Outputs, bias: bool = False) -> Factored:
    """Gradient embeddings: gradients of the loss at the guessed class with respect to the output layer.

    This is the paper's g_x (section 3), for the cross-entropy. By proposition 1, ‖g_x‖ is the smallest gradient norm over
    all labels: if it is large, the gradient is large whatever the true label is. Probabilities whose square is too small
    for the dtype (below 2e-19 in float32) count as 0.

    Args:
        outputs: the probabilities and embeddings of a pool.
        bias: append the gradient of the output layer's bias.

    Returns:
        `Factored`: the two factors of every gradient. `as_matrix()` multiplies them, [N, C·D].

    Raises:
        InputError: the outputs have no probabilities or no embeddings.

    >>> import badge
    >>> out = badge.Outputs(probabilities=[[0.6, 0.4]], embeddings=[[1.0, 2.0]])
    >>> [round(x, 4) for x in badge.gradient_embedding(out).as_matrix()[0].tolist()]
    [-0.4, -0.8, 0.4, 0.8]
    """
    if not isinstance(outputs, Outputs):
        raise InputError(f"outputs must be badge.Outputs, not {type(outputs).__name__}")
    bias = flag(bias, "bias")
    p, h = outputs.probabilities, outputs.embeddings
    if p.shape.numel() <= IN_CACHE and place_of(p) is None:
        with one_thread():
            g = Factored.trusted(residual(p[:], outputs.multilabel), h, bias, outputs.multilabel)
    else:
        g = Gradient.trusted(p, h, bias, outputs.multilabel)
    g.norms = None if bias else outputs.norms
    return g
