"""The paper's three networks, in a few lines each, and how to name your own.

Protocol, the same for the built-in ones and for `--model mypkg.mod:build`:

    build(shape: tuple[int, ...], classes: int) -> torch.nn.Module

`shape` is the shape of one example: (channels, height, width) for images, (columns,) for tables. The module returns raw
scores [N, classes] and ends in an `nn.Linear`. Its input is the embedding that badge works with. A build that takes
`width=` can be scaled. The built-in ones have no output bias: f = σ(W·z) is the paper's (section 3), and W's gradient is
all of the output layer's.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from badge.core.importing import imported
from badge.core.names import name_of
from badge.core.numbers import whole
from badge.data.dataset import is_image, learning_rate
from badge.errors import InputError, UnknownNameError

__all__ = ["NETWORKS", "Build", "learning_rate", "mlp", "resnet18", "resolve", "vgg11"]

#: build(shape of one example, classes) -> network; see the module's docstring
Build = Callable[..., nn.Module]


def mlp(inputs: int, classes: int, hidden: int = 256) -> nn.Module:
    """One hidden layer with ReLU, on flattened examples.

    Args:
        inputs: the number of values per example.
        classes: the number of classes.
        hidden: the width of the hidden layer.

    Returns:
        An untrained network.

    >>> mlp(16, 26, hidden=1024)(torch.zeros(2, 16)).shape
    torch.Size([2, 26])
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes, bias=False))


def resnet18(classes: int, channels: int = 3, width: int = 64) -> nn.Module:
    """ResNet-18 (He et al., 2016) for small images: 3 × 3 stem, no max-pooling. The authors' code uses `width=16`.

    Args:
        classes: the number of classes.
        channels: 3 for colour images, 1 for grey images.
        width: channels after the first layer; the others scale with it.

    Returns:
        An untrained network.

    >>> resnet18(10, width=8)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    blocks = [_Block(width, width, 1), _Block(width, width, 1)]
    for i in range(3):
        blocks += [_Block(width << i, width << i + 1, 2), _Block(width << i + 1, width << i + 1, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes, bias=False)]
    return _channels_last(nn.Sequential(*_conv(channels, width, bias=False), *blocks, *head))


def vgg11(classes: int, channels: int = 3, width: int = 64) -> nn.Module:
    """VGG-11 (Simonyan & Zisserman, 2015) with batch norm and one linear layer, for small images.

    Args:
        classes: the number of classes.
        channels: 3 for colour images, 1 for grey images.
        width: channels after the first layer; the others scale with it.

    Returns:
        An untrained network.

    >>> vgg11(10, width=8)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    layers: list[nn.Module] = []
    for multiple, pool in [(1, True), (2, True), (4, False), (4, True), (8, False), (8, True), (8, False), (8, True)]:
        layers += _conv(channels, multiple * width, bias=True)
        channels = multiple * width
        if pool:  # ceil_mode changes nothing at 32 × 32 and lets 28 × 28 through
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes, bias=False)]
    return _channels_last(nn.Sequential(*layers, *head))


def _channels_last(network: nn.Module) -> nn.Module:
    """Weights, and with them all activations, in the layout in which convolutions take a fifth less time on CPUs."""
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _conv(inputs: int, outputs: int, bias: bool, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=bias), nn.BatchNorm2d(outputs), nn.ReLU()]


class _Block(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_conv(inputs, outputs, False, stride), *_conv(outputs, outputs, False)[:-1])
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _build_mlp(shape: tuple[int, ...], classes: int, width: int | None = None) -> nn.Module:
    return mlp(math.prod(shape), classes, width or (256 if is_image(shape) else 1024))


def _build_of_images(network: Build, shape: tuple[int, ...], classes: int, width: int = 64) -> nn.Module:
    if is_image(shape):
        return network(classes, shape[0], width)
    wanted = f"{network.__name__} needs images (channels, height, width)"
    raise InputError(f"{wanted}, not examples of shape {shape}: use mlp")


#: name -> build(shape, classes, width=...); the mlp has 256 hidden units for images and 1,024 for tables (the paper)
NETWORKS: dict[str, Build] = {"mlp": _build_mlp} | {n.__name__: partial(_build_of_images, n) for n in (resnet18, vgg11)}


def resolve(name: str, width: int | None = None) -> Build:
    """The function that builds a network, by its name.

    Args:
        name: "mlp", "resnet18", "vgg11", or "package.module:function".
        width: the width of the network; None: its default.

    Returns:
        A function (shape of an example, classes) -> untrained network.

    Raises:
        UnknownNameError: no network has this name.

    >>> resolve("mlp")((1, 8, 8), 10)[1]
    Linear(in_features=64, out_features=256, bias=True)
    """
    width = None if width is None else whole(width, "width")
    if ":" in name_of(name, "a network"):
        build: Build = imported("network", name)
    elif name in NETWORKS:
        build = NETWORKS[name]
    else:
        raise UnknownNameError("network", name, list(NETWORKS), "or your own as package.module:build")
    return build if width is None else partial(build, width=width)
