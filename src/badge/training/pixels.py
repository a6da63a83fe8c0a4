"""Images of 0 to 255 for a network that takes numbers with a fraction.

`badge.predict` refuses to guess how images were scaled for a network that was trained elsewhere. Here the same hook scales
them when the network trains and when it predicts.
"""

from typing import Any

import torch
from torch import Tensor, nn

from badge.models.borrowed import eval_mode

#: what images of `uint8` are divided by
WHITE = 255


def take_pixels(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """From now on `model` takes `uint8`, divided by 255, unless it takes it by itself; tried on a few examples.

    >>> net = nn.Linear(2, 1, bias=False)
    >>> images = torch.tensor([[255, 0]], dtype=torch.uint8)
    >>> take_pixels(net, (images,), {})
    >>> bool(torch.allclose(net(images), net(torch.tensor([[1.0, 0.0]]))))
    True
    """
    if not any(_is_pixels(x) for x in (*args, *kwargs.values())):
        return
    try:
        with torch.no_grad(), eval_mode(model):
            model(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError):
        model.register_forward_pre_hook(_scale, with_kwargs=True)


def _scale(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    kind = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)

    def scaled(x: Any) -> Any:
        return x.to(kind) / WHITE if _is_pixels(x) else x

    return tuple(scaled(x) for x in args), {name: scaled(x) for name, x in kwargs.items()}


def _is_pixels(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.uint8
