"""The last accuracies of some cells, as a small text table."""

import statistics
from collections.abc import Sequence
from pathlib import Path

from badge import journal
from badge.experiment.cell import Cell
from badge.experiment.resuming import journal_path


def final_accuracies(cells: Sequence[Cell], folder: Path) -> str:
    """The last test accuracy of every setting: mean and standard error over the seeds."""
    groups: dict[tuple[str, str, str, str], list[tuple[int, float]]] = {}
    for cell in cells:
        path = journal_path(cell, folder)
        rounds = [event for event in journal.read(path) if event["event"] == "round"] if path.exists() else []
        if rounds:
            key = (cell.data, cell.shown_model, f"{cell.batch_size:,}", cell.strategy)
            groups.setdefault(key, []).append((rounds[-1]["labels"], rounds[-1]["test_accuracy"]))
    rows = []
    for key, ends in groups.items():
        accuracies = [accuracy for _, accuracy in ends]
        error = statistics.stdev(accuracies) / len(accuracies) ** 0.5 if len(accuracies) > 1 else float("nan")
        labels = sorted({labels for labels, _ in ends})
        span = f"{labels[0]:,}" if len(labels) == 1 else f"{labels[0]:,} to {labels[-1]:,}"
        spread = f" ± {error:.4f}" if len(accuracies) > 1 else ""
        rows.append([*key, str(len(ends)), span, f"{statistics.fmean(accuracies):.4f}{spread}"])
    return text_table(["data", "model", "batch", "strategy", "seeds", "labels", "test accuracy"], rows)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns with two spaces between them; columns of numbers are aligned to the right.

    >>> print(text_table(["who", "labels"], [["badge", "350"], ["rand", "1,000"]]))
    who    labels
    badge     350
    rand    1,000
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [rows and all(cell[:1].isdigit() or cell[:1] in "-–" for cell in column[1:]) for column in columns]
    signs = [f"{'>' if numbers else '<'}{width}" for numbers, width in zip(right, widths, strict=True)]
    lines = (zip(line, signs, strict=True) for line in [header, *rows])
    return "\n".join("  ".join(f"{cell:{sign}}" for cell, sign in line).rstrip() for line in lines)
