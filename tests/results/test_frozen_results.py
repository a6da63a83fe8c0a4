"""The table of strategies on frozen encoders: differences from `rand` of the same setting and seed."""

from __future__ import annotations

import numpy as np

from badge.stats import Results
from results.frozen import above_reference, by_budget


def table() -> Results:
    rows = [
        ("a", strategy, seed, 10 * (i + 1), 0.5 + 0.01 * i + gain * (i > 0))
        for strategy, gain in (("rand", 0.0), ("badge", 0.02), ("marg", -0.01))
        for seed in (0, 1)
        for i in range(20)
        if strategy != "marg" or seed == 0
    ]
    data, strategy, seed, labels, accuracy = zip(*rows, strict=True)
    n = len(rows)
    return Results.of(
        {"data": data, "model": ["linear"] * n, "strategy": strategy, "batch_size": [10] * n, "seed": seed,
         "labels": labels, "test_accuracy": accuracy}
    )  # fmt: skip


def test_points_above_rand() -> None:
    found = above_reference(table(), (1, 3))
    assert np.allclose(list(found["badge"].values()), 2.0) and len(found["badge"]) == 2
    assert np.allclose(list(found["marg"].values()), -1.0) and len(found["marg"]) == 1


def test_the_table() -> None:
    lines = by_budget(table()).splitlines()
    assert (
        lines[2]
        == "| `badge` | +2.0 ± 0.0 (ahead in 2 of 2) | +2.0 ± 0.0 (ahead in 2 of 2) | +2.0 ± 0.0 (ahead in 2 of 2) | 2 |"
    )
    assert "-1.0 (ahead in 0 of 1)" in lines[3] and len(lines) == 4
