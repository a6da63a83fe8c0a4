"""Batches of several samplers on the same models, with more labels than the curves have: `python -m results variants`.

For the claims about figures 2 and 24 of the paper: what furthest-first is on gradients and on penultimate embeddings, and
what the k-DPP's chain is with the paper's ⌊5 k ln k⌋ steps and with ten times these.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from results import VARIANTS

__all__ = ["MODELS", "SAMPLERS", "Variant", "measure", "read_variants"]

#: (data, number of labels): six models, each trained on uniformly drawn labels
MODELS = (("letter", 500), ("letter", 2000), ("letter", 10000), ("mnist", 500), ("mnist", 5000), ("mnist", 20000))
SEEDS, BATCH = 3, 100
STEPS = math.floor(5 * BATCH * math.log(BATCH))
SAMPLERS = (
    "k-means++",
    "furthest-first on gradients",
    "furthest-first on embeddings",
    f"k-DPP, {STEPS:,} steps",
    f"k-DPP, {10 * STEPS:,} steps",
)


class Variant(NamedTuple):
    """One batch: who chose it on which model, its log-determinant and its mean gradient norm."""

    data: str
    labels: int
    seed: int
    sampler: str
    log_det: float
    mean_norm: float


def read_variants(path: Path = VARIANTS) -> list[Variant]:
    """The batches that were measured; none if there is no table."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Variant(
                r["data"], int(r["labels"]), int(r["seed"]), r["sampler"], float(r["log_det"]), float(r["mean_norm"])
            )
            for r in csv.DictReader(file)
        ]


def measure(path: Path = VARIANTS) -> None:
    """Add the models that are not in the table yet, one after the other: it may be stopped at any time."""
    done = {row[:3] for row in read_variants(path)}
    for seed in range(SEEDS):
        for data, labels in MODELS:
            if (data, labels, seed) not in done:
                rows = list(_batches(data, labels, seed))
                new = not path.exists()
                with path.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerows([Variant._fields] if new else [])
                    writer.writerows((*row[:4], f"{row.log_det:.3f}", f"{row.mean_norm:.4f}") for row in rows)
                print(f"{data}, {labels:,} labels, seed {seed}", flush=True)


def _batches(data: str, labels: int, seed: int) -> Iterator[Variant]:
    import numpy as np
    import torch

    import badge
    from badge.strategies.explain import log_det
    from badge.training import networks

    dataset = badge.data.load(data, seed)
    rng = np.random.default_rng([seed, labels])
    order = rng.permutation(len(dataset.y_train))
    build = networks.resolve("mlp")
    trainer = badge.Trainer(lambda: build(dataset.shape, dataset.classes), lr=dataset.lr)
    model = trainer.fit(torch.from_numpy(dataset.X_train[order[:labels]]), dataset.y_train[order[:labels]], rng)
    outputs = badge.predict(model, torch.from_numpy(dataset.X_train[order[labels:]]))
    gradients, embeddings = badge.gradient_embedding(outputs), badge.Dense(outputs.embeddings)
    draws: dict[str, Any] = {
        SAMPLERS[0]: lambda: badge.samplers.kmeanspp(gradients, BATCH, rng),
        SAMPLERS[1]: lambda: badge.samplers.kcenter(gradients, BATCH, rng),
        SAMPLERS[2]: lambda: badge.samplers.kcenter(embeddings, BATCH, rng),
        SAMPLERS[3]: lambda: badge.samplers.kdpp(gradients, BATCH, rng, steps=STEPS),
        SAMPLERS[4]: lambda: badge.samplers.kdpp(gradients, BATCH, rng, steps=10 * STEPS),
    }
    for sampler, draw in draws.items():
        rows = gradients.rows(torch.from_numpy(draw()))
        norm = float(rows.double().sq_norms().sqrt().mean())
        yield Variant(data, labels, seed, sampler, log_det(rows, gradients.rank_bound), norm)
