"""Where to compute."""

import torch
from torch import Tensor

from badge.errors import InputError, in_short


def chosen(mask: Tensor) -> Tensor:
    """Positions at which a mask is true, for work that does no harm at the others.

    On a GPU these are all positions: to count the true ones, the host would wait longer than the extra work takes.
    """
    return mask.nonzero()[:, 0] if mask.device.type == "cpu" else torch.arange(len(mask), device=mask.device)


def usable_device(device: str | torch.device) -> torch.device:
    """The device of a name, if something can be put on it; "cuda" becomes "cuda:0".

    >>> usable_device("gpu")
    Traceback (most recent call last):
    badge.errors.InputError: device='gpu' cannot be used: ...
    """
    try:
        usable = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError, ValueError) as error:
        raise InputError(f"device={str(device)!r} cannot be used: {in_short(error)}") from error
    if usable.type == "meta":
        raise InputError("device='meta' cannot be used: it holds no numbers, and a model there loses its weights")
    return usable
