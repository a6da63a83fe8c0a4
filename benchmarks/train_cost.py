"""What `badge.Trainer` costs beside the bare loop of the same epochs: `python -m benchmarks.train_cost`.

One MLP fit on 1,000 letter examples to 99 %, as in the paper, against forward, backward and Adam step on tensors that
were cut into minibatches beforehand: no shuffling, no counting, no stopping rule, no restart. The runs alternate, so
that a slow moment of the machine meets both; the least time of each counts. The bare loop is the faster one of two:
with torch's default Adam, and with the fused one that the trainer takes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from badge import data
from badge.core.rng import derive
from badge.training import networks
from badge.training.trainer import Trainer

__all__ = ["bare_seconds", "main", "measure"]

#: the trainer may take this much more time than the bare loop
LIMIT = 1.5


def bare_seconds(build: Callable[[], nn.Module], x: Tensor, y: Tensor, lr: float, epochs: int, fused: bool) -> float:
    """Seconds for `epochs` epochs of nothing but forward, backward and step."""
    start = time.perf_counter()
    model = build()
    adam = torch.optim.Adam(model.parameters(), lr=lr, fused=fused)
    batches = list(zip(torch.split(x, 64), torch.split(y, 64), strict=True))
    for _ in range(epochs):
        for inputs, target in batches:
            adam.zero_grad()
            cross_entropy(model(inputs), target).backward()  # type: ignore[no-untyped-call]
            adam.step()
    return time.perf_counter() - start


def measure(repeats: int = 5, labels: int = 1000) -> dict[str, float]:
    """Least seconds of the fit and of both bare loops, the ratio to the faster of them, and the epochs of the fit."""
    letter = data.load("letter")
    x, y = torch.from_numpy(letter.X_train[:labels]), torch.from_numpy(letter.y_train[:labels])
    build = partial(networks.resolve("mlp"), letter.shape, letter.classes)
    trainer = Trainer(build, letter.lr, device="cpu")
    bare_seconds(build, x, y, letter.lr, 1, fused=True)  # the first step of a process loads parts of torch
    fit, default, fused, epochs = math.inf, math.inf, math.inf, 0
    for _ in range(repeats):
        trainer.fit(x, y, derive(0, "train"))  # the same fit every time
        assert trainer.last is not None
        epochs, fit = trainer.last.epochs, min(fit, trainer.last.seconds)
        default = min(default, bare_seconds(build, x, y, letter.lr, epochs, fused=False))
        fused = min(fused, bare_seconds(build, x, y, letter.lr, epochs, fused=True))
    seconds = {"fit": fit, "bare, default Adam": default, "bare, fused Adam": fused}
    return {**seconds, "ratio": fit / min(default, fused), "epochs": epochs}


def main() -> None:
    """Print the figures; exit code 1 where the trainer takes more than 1.5 times the bare loop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train_cost", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="fits to take the fastest of")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    found = measure(chosen.repeats)
    print(f"one MLP fit on 1,000 letter examples to 99 % ({found['epochs']} epochs, {chosen.threads} thread(s))")
    for name in ("fit", "bare, default Adam", "bare, fused Adam"):
        print(f"  {name:20s} {found[name]:7.3f} s")
    print(f"  fit / faster bare loop {found['ratio']:.2f} (limit {LIMIT})")
    raise SystemExit(found["ratio"] > LIMIT)


if __name__ == "__main__":
    main()
