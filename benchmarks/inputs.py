"""What the benchmark selects from: a trained network's outputs on MNIST, and generated ones that are skewed or isotropic.

An `Input` is a description that travels to the measuring process as JSON; `load` makes the `Outputs` there. Trained
networks' outputs are kept in the user's cache, so that repeats are cheap; generated ones are made again from their seed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from badge import data
from badge.core.rng import derive
from badge.errors import DataError, InputError
from badge.models import predict
from badge.outputs import Outputs
from badge.training.networks import mlp
from badge.training.trainer import Trainer

__all__ = ["Input", "at_hand", "letters", "load", "quantiles", "trained", "write_memmap"]

KINDS = ("mnist", "digits", "letter", "skewed", "isotropic")
#: Rows that are generated at a time: a large pool costs no more memory than itself.
ROWS = 50_000


@dataclass(frozen=True)
class Input:
    """A pool: `kind` is a data set (of a network trained on `labels` labels), or skewed or isotropic (generated)."""

    kind: str
    n: int
    c: int
    d: int
    labels: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown kind of input {self.kind!r}; known: {', '.join(KINDS)}")

    @property
    def bytes(self) -> int:
        """Bytes of its float32 arrays."""
        return 4 * self.n * (self.c + self.d)

    def __str__(self) -> str:
        name = f"{self.kind} MLP, {self.labels:,} labels" if self.labels else self.kind
        return f"{name}, N = {self.n:,}, ({self.c}, {self.d})"


def trained(labels: int) -> Input:
    """The outputs of the MLP with 256 hidden units on MNIST's training set, or on digits where MNIST is not at hand."""
    if at_hand("mnist"):
        return Input("mnist", 60_000, 10, 256, labels)
    return Input("digits", 1_437, 10, 256, min(labels, 1_000))


def letters() -> list[Input]:
    """The outputs of the same network on letter, of 26 classes, where the data set is at hand."""
    return [Input("letter", 18_000, 26, 256, 500)] if at_hand("letter") else []


def at_hand(name: str) -> bool:
    """Whether the data set can be loaded without a download."""
    given = os.environ.get("BADGE_DATA")
    places = [*([Path(given)] if given else []), data.cache_folder()]
    return name == "digits" or any((place / f"{name}.npz").is_file() for place in places)


def load(of: Input) -> Outputs:
    """The outputs that `of` describes, in float32.

    >>> load(Input("skewed", n=100, c=3, d=8))
    Outputs(100 examples, 3 probability columns, 8 embedding columns)
    """
    if of.labels is not None:
        return _trained(of)
    p, h = torch.empty(of.n, of.c), torch.empty(of.n, of.d)
    for rows, part_p, part_h in _generated(of):
        p[rows], h[rows] = part_p, part_h
    return Outputs.trusted(p, h)


def _trained(of: Input) -> Outputs:
    labels = int(of.labels or 0)
    file = data.cache_folder() / "bench" / f"{of.kind}-mlp-{labels}-seed{of.seed}-v1.npz"
    if not file.is_file():
        p, h = _train(of.kind, labels, of.seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, p=p.numpy(), h=h.numpy())
        partial.replace(file)  # nobody sees half a file
    with np.load(file) as arrays:
        p, h = torch.from_numpy(arrays["p"]), torch.from_numpy(arrays["h"])
    if (len(p), p.shape[1], h.shape[1]) != (of.n, of.c, of.d):
        raise DataError(f"{file} is of shape {tuple(p.shape)} and {tuple(h.shape)}, not {of}: delete it")
    return Outputs.trusted(p, h)


def _train(name: str, labels: int, seed: int) -> tuple[Tensor, Tensor]:
    """One round of the paper's protocol: random labels, an MLP trained on them, its outputs on the whole pool."""
    found = data.load(name, seed, progress=False)
    rng = derive(seed, "bench", labels)
    chosen = rng.choice(len(found.y_train), size=labels, replace=False)
    inputs = int(np.prod(found.X_train.shape[1:]))
    trainer = Trainer(lambda: mlp(inputs, found.classes), lr=1e-3, device="cpu")
    model = trainer.fit(found.X_train[chosen], found.y_train[chosen], rng)
    out = predict(model, found.X_train, batch_size=1024, device="cpu")
    return out.probabilities.float(), out.embeddings.float()


def _generated(of: Input) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """(slice, probabilities, embeddings), block by block; the same rows whatever the block is used for."""
    make = _skewed if of.kind == "skewed" else _isotropic
    random = torch.Generator().manual_seed(of.seed)
    means = torch.randn(of.c, of.d, generator=random)
    for start in range(0, of.n, ROWS):
        rows = slice(start, min(start + ROWS, of.n))
        yield rows, *make(rows.stop - rows.start, means, random)


def _isotropic(n: int, means: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Gaussian embeddings and near-uniform probabilities: all norms are alike, so that pruning by norm cannot help."""
    c, d = means.shape
    return torch.softmax(0.1 * torch.randn(n, c, generator=random), 1), torch.randn(n, d, generator=random)


def _skewed(n: int, means: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """ReLU features around class means and the softmax of scaled logits: norms over decades, like a trained network's.

    A row lies between its own class and another one; how far is what its difficulty is. Most are easy. The scale of the
    logits is such that the ratios of the norms' quantiles are those of the MNIST network with 1,000 labels (a test
    compares them): between the 5th and the 95th percentile lie three decades.
    """
    c, d = means.shape
    own = torch.randint(c, (n,), generator=random)
    other = (own + torch.randint(1, max(c, 2), (n,), generator=random)) % c
    towards = 0.62 * torch.rand(n, 1, generator=random).pow_(2.2)
    size = torch.randn(n, 1, generator=random).mul_(0.25).exp_()
    h = torch.lerp(means[own], means[other], towards).add_(torch.randn(n, d, generator=random), alpha=0.7)
    h = h.mul_(size).relu_()
    weights = means - means.mean(0)
    logits = (h @ weights.T).mul_((12 + 4 * math.log10(c)) / d)
    return torch.softmax(logits, 1), h


def quantiles(outputs: Outputs, at: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)) -> list[float]:
    """Quantiles of the gradient embeddings' norms: how skewed an input is.

    >>> q = quantiles(load(Input("isotropic", n=1000, c=10, d=64)))
    >>> q[-1] / q[0] < 2
    True
    """
    from badge.features import gradient_embedding

    norms = gradient_embedding(outputs).sq_norms.double().sqrt()
    found: list[float] = torch.quantile(norms[:: max(1, len(norms) // 1_000_000)], torch.tensor(at).double()).tolist()
    return found


def write_memmap(of: Input, folder: Path) -> Outputs:
    """A generated input as float16 files on disk, written block by block and mapped into memory."""
    files = [folder / "probabilities.npy", folder / "embeddings.npy"]
    maps = [np.lib.format.open_memmap(f, "w+", np.float16, (of.n, w)) for f, w in zip(files, (of.c, of.d), strict=True)]
    for rows, p, h in _generated(of):
        maps[0][rows], maps[1][rows] = p.half().numpy(), h.half().numpy()
    del maps
    p, h = (torch.from_numpy(np.load(f, mmap_mode="c")) for f in files)
    return Outputs.trusted(p, h)
