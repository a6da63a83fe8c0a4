"""Labels saved on real texts: `python -m benchmarks.labels_saved`.

The 10,003 training texts of banking77 (77 intents of a bank's customers) are the pool, its 3,080 test texts measure the
accuracy. The model is that of `badge label` for texts: TF-IDF reduced to 256 columns (learnt from all texts, no label seen)
and logistic regression. The same loop runs with BADGE's picks and in random order, from several seeds; then the labels that
each needs for some accuracies are compared. The texts are read from `$BADGE_DATA/banking77.jsonl.xz`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from badge.errors import DataError
from badge.labelling.models import Texts
from badge.learner import ActiveLearner
from badge.models import predict
from badge.training.fit import align

__all__ = ["curve", "main", "measure", "texts"]

#: what stands against what
BADGE, RANDOM = "badge", "rand"
Array = np.ndarray[Any, Any]


def texts() -> tuple[list[str], Array, Array]:
    """Texts, class numbers, and which are for training."""
    path = Path(os.environ.get("BADGE_DATA", "")) / "banking77.jsonl.xz"
    if not path.is_file():
        raise DataError("banking77.jsonl.xz is needed in the folder that BADGE_DATA names")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    names = {name: number for number, name in enumerate(sorted({row["label"] for row in rows}))}
    classes = np.array([names[row["label"]] for row in rows])
    return [row["text"] for row in rows], classes, np.array([row["split"] == "train" for row in rows])


def curve(
    rows: torch.Tensor, y: Array, training: Array, strategy: str, seed: int, batch: int, labels: int
) -> list[float]:
    """Test accuracy after each batch of one run."""

    class Head(Texts):
        def prepare(self, pool: torch.Tensor) -> torch.Tensor:
            return pool  # they are rows of numbers already, once for all runs

    classes, pool, truth = int(y.max()) + 1, rows[training], y[training]
    learner = ActiveLearner(pool, Head(classes), classes=classes, strategy=strategy, seed=seed)
    found = []
    while len(learner.labels) < labels:
        ids = learner.ask(batch)
        learner.tell(ids, truth[ids])
        said = align(predict(learner.model, rows[~training]), learner.model, classes).probabilities.argmax(dim=1)
        found.append(float((said.numpy() == y[~training]).mean()))
    return found


def measure(
    seeds: int = 5, batch: int = 100, labels: int = 3000, targets: tuple[float, ...] = (0.5, 0.6, 0.7, 0.75, 0.8)
) -> Any:
    """Mean accuracies of both, and the labels that each needs for the targets (linear between batches)."""
    pool, y, training = texts()
    rows = Texts(int(y.max()) + 1).prepare(pool)
    counts = np.arange(batch, labels + batch, batch)
    runs = {
        name: np.array([curve(rows, y, training, name, seed, batch, labels) for seed in range(seeds)])
        for name in (BADGE, RANDOM)
    }
    needed = {
        name: {target: [_needed(counts, one, target) for one in runs[name]] for target in targets} for name in runs
    }
    return {
        "labels": counts.tolist(),
        "accuracy": {name: runs[name].mean(axis=0).tolist() for name in runs},
        "needed": needed,
    }


def _needed(counts: Array, accuracies: Array, target: float) -> float:
    """Labels at which a rising curve first reaches the target; infinitely many where it does not."""
    reached = np.flatnonzero(accuracies >= target)
    if not len(reached):
        return float("inf")
    at = reached[0]
    if at == 0:
        return float(counts[0])
    below, above = accuracies[at - 1], accuracies[at]
    return float(counts[at - 1] + (target - below) / (above - below) * (counts[at] - counts[at - 1]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels_saved", description=__doc__)
    for name, default in (("seeds", 5), ("batch", 100), ("labels", 3000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    found = measure(**vars(parser.parse_args()))
    most = found["labels"][-1]
    print("labels needed for a test accuracy: mean over seeds (smallest to largest)")
    print(f"{'accuracy':>8s} {'badge':>24s} {'random order':>30s} {'saved':>6s}")
    for target in found["needed"][BADGE]:
        ours, theirs = (np.array(found["needed"][name][target]) for name in (BADGE, RANDOM))
        reached = bool(np.isfinite(ours).all() and np.isfinite(theirs).all())
        saved = f"{1 - ours.mean() / theirs.mean():.0%}" if reached else "–"
        print(f"{target:>8.0%} {_shown(ours, most):>24s} {_shown(theirs, most):>30s} {saved:>6s}")


def _shown(labels: Array, most: int) -> str:
    if np.isinf(labels).any():
        return f"not by {most:,} in {np.isinf(labels).sum()} of {len(labels)}"
    return f"{labels.mean():,.0f} ({labels.min():,.0f} to {labels.max():,.0f})"


if __name__ == "__main__":
    main()
