"""The paper's networks: shapes, sizes against the original architectures, names."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import badge
from badge.errors import InputError, UnknownNameError
from badge.training import networks


def parameters(network: nn.Module) -> int:
    return sum(p.numel() for p in network.parameters())


def last(network: nn.Module) -> nn.Module:
    return list(network.modules())[-1]


def test_mlp_has_one_hidden_layer_of_the_papers_width() -> None:
    build = networks.resolve("mlp")
    assert parameters(build((1, 28, 28), 10)) == 785 * 256 + 256 * 10  # images: 256; no output bias
    assert parameters(build((16,), 26)) == 17 * 1024 + 1024 * 26  # tables: 1,024
    assert parameters(networks.resolve("mlp", width=32)((16,), 26)) == 17 * 32 + 32 * 26


def test_resnet18_is_the_original_with_a_small_stem() -> None:
    # He et al.: 11,689,512 parameters with a 7 × 7 stem, 1,000 classes and an output bias
    stem, bias = 64 * 3 * (7 * 7 - 3 * 3), 1000
    assert parameters(networks.resnet18(1000)) == 11_689_512 - stem - bias
    assert parameters(networks.resnet18(10)) == 11_173_952


def test_vgg11_features_are_the_original() -> None:
    network = networks.vgg11(10)
    head = last(network)
    assert parameters(network) - parameters(head) == 9_225_984  # the convolutions and batch norms of VGG-11-BN
    assert parameters(network) == 9_231_104


@pytest.mark.parametrize("name", ["resnet18", "vgg11"])
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (1, 8, 8)])
def test_convolutional_networks_take_small_images(name: str, shape: tuple[int, ...]) -> None:
    network = networks.resolve(name, width=8)(shape, 7)
    assert network(torch.randn(2, *shape)).shape == (2, 7)
    network(torch.randn(2, *shape)).sum().backward()
    assert all(p.grad is not None for p in network.parameters())


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_every_network_ends_in_a_linear_layer_without_bias(name: str) -> None:
    """f = σ(W·z) (section 3): what is trained in the output layer is what g_x is the gradient of."""
    head = last(networks.resolve(name, width=8)((3, 32, 32), 5))
    assert isinstance(head, nn.Linear)
    assert head.out_features == 5 and head.bias is None


def test_vgg_and_resnet_halve_32_pixels_as_the_originals_do() -> None:
    for build, side in ((networks.resnet18, 4), (networks.vgg11, 1)):
        body = nn.Sequential(*list(build(10, width=4).children())[:-3])
        assert body(torch.zeros(1, 3, 32, 32)).shape == (1, 32, side, side)


def test_learning_rates() -> None:
    assert networks.learning_rate((1, 28, 28)) == 1e-3
    assert networks.learning_rate((10,)) == 1e-4


def test_one_s_own_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ownnet.py").write_text(
        "from torch import nn\n\ndef build(shape, classes, width=3):\n    return nn.Linear(shape[0] * width, classes)\n"
        "constant = 3\n"
    )
    (tmp_path / "ownbroken.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert networks.resolve("ownnet:build")((4,), 2).in_features == 12
    assert networks.resolve("ownnet:build", width=5)((4,), 2).in_features == 20
    with pytest.raises(InputError, match=r"no module 'ownnot'"):
        networks.resolve("ownnot:build")
    with pytest.raises(InputError, match=r"has no 'missing'"):
        networks.resolve("ownnet:missing")
    with pytest.raises(InputError, match=r"is int, not a function"):
        networks.resolve("ownnet:constant")
    with pytest.raises(InputError, match=r"form package.module:function"):
        networks.resolve("ownnet:")
    with pytest.raises(InputError, match=r"form package.module:function"):
        networks.resolve("..ownnet:build")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        networks.resolve("ownbroken:build")


def test_errors() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown network 'lenet'; known: mlp, resnet18, vgg11"):
        networks.resolve("lenet")
    with pytest.raises(InputError, match=r"resnet18 needs images .* not examples of shape \(16,\)"):
        networks.resolve("resnet18")((16,), 26)
    for width in (0, True, 1.5):
        with pytest.raises(InputError, match="width must be"):
            networks.resolve("mlp", width=width)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "width", "dimensions"), [("mlp", None, 256), ("resnet18", 4, 32), ("vgg11", 4, 32)])
def test_networks_train_and_predict_finds_their_embedding(name: str, width: int | None, dimensions: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 1, 8, 8)).astype(np.float32), np.arange(24) % 3
    trainer = badge.Trainer(partial(networks.resolve(name, width), x.shape[1:], 3), lr=1e-2)
    out = badge.predict(trainer.fit(x, y, rng), x)
    assert trainer.last is not None and trainer.last.stopped == "accuracy"
    assert out.embeddings.shape == (24, dimensions) and out.probabilities.shape == (24, 3)
