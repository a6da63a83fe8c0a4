"""What a cell of an experiment takes beside training, prediction and selection: `python -m benchmarks.cell_cost`.

A whole cell on digits: data, journal, labels, figures of each batch. Cells on digits are the shortest that there are, so
this is the worst case; a first cell is not counted, because it loads parts of torch.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from badge import journal
from badge.experiment import Cell, journal_path, run_cell

__all__ = ["LIMIT", "main", "measure"]

#: a cell may take this much of the time of its training, prediction and selection: 5 % of the whole for the rest
LIMIT = 1 / 0.95


def measure(repeats: int = 3, labels: int = 400) -> dict[str, float]:
    """Seconds of whole cells and of their three parts, summed over seeds, and the ratio of the two."""
    whole = parts = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(repeats + 1):
            cell = Cell("digits", "mlp", "badge", batch_size=50, initial=50, labels=labels, seed=seed)
            started = time.perf_counter()
            run_cell(cell, Path(folder))
            if seed > 0:
                whole += time.perf_counter() - started
                rounds = [e for e in journal.read(journal_path(cell, Path(folder))) if e["event"] == "round"]
                names = ("train_seconds", "predict_seconds", "select_seconds")
                parts += sum(event[name] or 0.0 for event in rounds for name in names)
    return {"whole": whole, "parts": parts, "ratio": whole / parts}


def main() -> None:
    """Print the figures; exit code 1 where more than 5 % of a cell's time is something else."""
    found = measure()
    print(
        f"cells on digits: {found['whole']:.2f} s, of which training, prediction and selection {found['parts']:.2f} s"
    )
    print(f"  everything else {1 - 1 / found['ratio']:.1%} (limit {1 - 1 / LIMIT:.0%})")
    raise SystemExit(found["ratio"] > LIMIT)


if __name__ == "__main__":
    main()
