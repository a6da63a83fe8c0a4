"""Kernels of `coverage.py`: what it is worth to have a row covered from some distance."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from badge.core.numbers import positive


@dataclass(frozen=True)
class Gauss:
    """The kernel κ = exp(−d²/σ²) of `badge.samplers.coverage`.

    Args:
        sigma: the distance σ, above 0.

    >>> round(Gauss(2.0)(torch.tensor([4.0])).item(), 4)
    0.3679
    """

    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, "sigma")

    def __call__(self, sq_dists: Tensor) -> Tensor:
        return sq_dists.div(-(self.sigma**2)).clamp_(min=_least(sq_dists)).exp_()

    def upper(self, products: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """κ where the squared distance is x_i + y_j − 2 products_ij, or 0 if that is negative; in place."""
        scale = self.sigma**-2 / math.log(2)  # exp2 takes a third of the time of exp
        exponents = torch.add(y * -scale, products, alpha=2 * scale, out=products).sub_((x * scale)[:, None])
        return exponents.clamp_(_least(products), 0).exp2_()

    def sq_reach(self, least: Tensor) -> Tensor:
        """The squared distances beyond which κ is below the given values.

        Args:
            least: the values, above 0.
        """
        return least.log().mul_(-(self.sigma**2)).clamp_(min=0)


@dataclass(frozen=True)
class Ball:
    """The kernel κ = 1 where d < δ, else 0, of `badge.samplers.coverage`.

    Args:
        delta: the radius δ, above 0.

    >>> Ball(2.0)(torch.tensor([3.9, 4.0])).tolist()
    [1.0, 0.0]
    """

    delta: float

    def __post_init__(self) -> None:
        positive(self.delta, "delta")

    def __call__(self, sq_dists: Tensor) -> Tensor:
        return (sq_dists < self.delta**2).to(sq_dists.dtype)

    def upper(self, products: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return self(torch.add(y, products, alpha=-2, out=products).add_(x[:, None]))

    def sq_reach(self, least: Tensor) -> Tensor:
        """The squared distances beyond which κ is below the given values.

        Args:
            least: the values, above 0.
        """
        return torch.full_like(least, self.delta**2)


def _least(x: Tensor) -> float:
    """Exponents below this give denormal numbers, which are ten times slower."""
    return math.log(torch.finfo(x.dtype).tiny) / 2
