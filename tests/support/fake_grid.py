"""Made-up results of the paper's full grid: seeded, plausible, `badge` best; for tests and for measuring."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from badge.core.catalog import PAPER_STRATEGIES
from badge.stats import Results, write
from journal_lines import write_journal

#: (data, model) -> (first accuracy, last accuracy, labels at which half of the way is done)
PAIRS = {
    ("mnist", "mlp"): (0.70, 0.975, 900),
    ("svhn", "mlp"): (0.15, 0.82, 5000),
    ("svhn", "resnet18"): (0.18, 0.93, 4000),
    ("svhn", "vgg11"): (0.17, 0.92, 5000),
    ("cifar10", "mlp"): (0.18, 0.52, 5000),
    ("cifar10", "resnet18"): (0.22, 0.78, 7000),
    ("cifar10", "vgg11"): (0.20, 0.76, 8000),
    ("letter", "mlp"): (0.30, 0.96, 1500),
    ("pokerhand", "mlp"): (0.45, 0.95, 3000),
    ("randomrbf", "mlp"): (0.40, 0.94, 2500),
    ("kropt", "mlp"): (0.20, 0.86, 3500),
}
#: how many times faster than rand a strategy learns: (at small batches, at large batches)
SPEED = {
    "badge": (1.65, 1.5),
    "coreset": (1.0, 1.4),
    "conf": (1.2, 0.8),
    "marg": (1.6, 1.1),
    "entropy": (1.1, 0.75),
    "albl": (1.25, 1.3),
    "rand": (1.0, 1.0),
    "kdpp": (1.62, 1.48),
    "kcenter-grad": (1.1, 1.2),
    "kmeanspp": (1.05, 1.15),
    "typiclust": (1.02, 1.05),
}
ROWS = {"mnist": 60000, "svhn": 73257, "cifar10": 50000, "letter": 20000}


def fake_grid(
    *,
    pairs: Sequence[tuple[str, str]] = tuple(PAIRS),
    batch_sizes: Sequence[int] = (100, 1000, 10000),
    strategies: Sequence[str] = PAPER_STRATEGIES,
    seeds: int = 5,
    rounds: int = 300,
    initial: int = 100,
    seed: int = 0,
) -> dict[str, list[Any]]:
    """Columns of a flat table of results, all optional ones included."""
    rng = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {}

    def add(name: str, values: Any) -> None:
        table.setdefault(name, []).extend(values.tolist() if isinstance(values, np.ndarray) else values)

    for data, model in pairs:
        first, last, half = PAIRS[data, model]
        for batch_size in batch_sizes:
            labels = initial + batch_size * np.arange(rounds)
            large = min(1.0, max(0.0, np.log10(batch_size / 100) / 2))
            for s in range(seeds):
                start_luck, seed_luck = rng.normal(0, 0.01), rng.normal(0, 0.003)
                for name in strategies:
                    speed = SPEED[name][0] * (1 - large) + SPEED[name][1] * large
                    way = 1 - (1 + (labels - initial) * speed / half) ** -1.3
                    noise = rng.normal(0, 0.004, rounds) * (1 - 0.7 * way) + seed_luck + start_luck * (1 - way)
                    accuracy = np.clip(first + (last - first) * way + noise, 0.0, 1.0).round(6)
                    add("data", [data] * rounds)
                    add("model", [model] * rounds)
                    add("strategy", [name] * rounds)
                    add("batch_size", [batch_size] * rounds)
                    add("seed", [s] * rounds)
                    add("labels", labels)
                    add("test_accuracy", accuracy)
                    add("round", np.arange(rounds))
                    add("train_accuracy", np.full(rounds, 0.992))
                    add("epochs", rng.integers(10, 40, rounds))
                    add("train_seconds", (labels * 2e-4 * rng.uniform(0.9, 1.1, rounds)).round(4))
                    _add_batches(add, name, batch_size, way, rng)
                    whole = ROWS.get(data, 30000)
                    add("rows", [min(whole, 20000)] * rounds)
                    add("total_rows", [whole] * rounds)
    return table


def _add_batches(add: Any, name: str, batch_size: int, way: np.ndarray, rng: np.random.Generator) -> None:
    """Norm, log-determinant (−inf in some batches of `conf`) and seconds of the batch that each model chose."""
    rounds = len(way)
    norm = {"conf": 9.0, "entropy": 8.0, "marg": 7.5, "badge": 7.0, "kdpp": 6.0, "kcenter-grad": 4.0}.get(name, 3.0)
    norms = (norm * (1 - 0.5 * way) * rng.uniform(0.95, 1.05, rounds)).round(4)
    spread = {"badge": 1.0, "kdpp": 0.9, "coreset": 0.7, "kcenter-grad": 0.6}.get(name, 0.4)
    log_det = (batch_size * (spread + 0.5 * np.log(norms)) + rng.normal(0, 0.02 * batch_size, rounds)).round(3)
    if name == "conf":
        log_det[rng.random(rounds) < 0.04] = -np.inf
    seconds = {"kdpp": 1.2e-3, "badge": 1e-4, "coreset": 1.5e-4}.get(name, 1e-5) * batch_size
    times = (seconds * rng.uniform(0.8, 1.2, rounds)).round(6)
    for column, values in (("mean_norm", norms), ("log_det", log_det), ("select_seconds", times)):
        values[-1] = np.nan  # the last model chooses nothing
        add(column, values)


def write_journals(results: Results, folder: Path) -> None:
    """One journal per run, as `badge grid` writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in results.runs:
        setting, strategy, seed, rows = run
        cell = {**setting._asdict(), "strategy": strategy, "seed": seed, "threads": 1}
        used, whole = (int(results.column(name)[rows.start]) for name in ("rows", "total_rows"))
        data = {"name": setting.data, "rows": used, "total": whole, "complete": used == whole}
        data["text"] = f"{used:,} of {whole:,}"
        events: list[dict[str, Any]] = [{"event": "start", "cell": cell, "data": data}]
        for i in range(rows.start, rows.stop):
            names = ("train_accuracy", "epochs", "train_seconds", "select_seconds", "mean_norm", "log_det")
            values = {name: float(results.column(name)[i]) for name in names}
            numbers = {name: value if np.isfinite(value) else None for name, value in values.items()}
            number = int(results.column("round")[i])
            labels, accuracy = int(results.labels[i]), float(results.test_accuracy[i])
            events.append(
                {
                    "event": "round",
                    "round": number,
                    "labels": labels,
                    "test_accuracy": accuracy,
                    "picked": None,
                    **numbers,
                }
            )
        events.append({"event": "end", "reason": "labels reached"})
        name = f"{setting.data}-{setting.model}-{setting.batch_size}-{strategy}-{seed}.jsonl"
        write_journal(folder / name, *events)


if __name__ == "__main__":  # python tests/fake_grid.py all.csv [rounds] : the full grid, for measuring
    write(Results.of(fake_grid(rounds=int(sys.argv[2]) if len(sys.argv) > 2 else 300)), sys.argv[1])
