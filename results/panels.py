"""The picture of the learning curves: several settings in one figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from badge.report.drawings import Lines
from badge.report.figures import WIDTH, fill
from badge.report.style import RC

__all__ = ["panels"]


def panels(drawings: Sequence[Lines]) -> Figure:
    """Figures of curves in one, two side by side, with one legend."""
    rows = math.ceil(len(drawings) / 2)
    top, plot, between, legend = 0.34, 2.2, 0.9, 0.4
    height = top + rows * plot + (rows - 1) * between + 0.5 + legend
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(2 * WIDTH, height), facecolor="white")
        found: dict[str, Any] = {}
        for i, drawing in enumerate(drawings):
            row, column = divmod(i, 2)
            bottom = height - top - plot - row * (plot + between)
            box = ((column * WIDTH + 0.7) / (2 * WIDTH), bottom / height, (WIDTH - 0.9) / (2 * WIDTH), plot / height)
            axes = figure.add_axes(box)
            fill(axes, drawing)
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                found.setdefault(name, handle)
        figure.legend(
            list(found.values()), list(found), loc="lower center", ncol=min(len(found), 9) or 1, columnspacing=1.1,
            handlelength=2.0, handletextpad=0.5, borderaxespad=0.2,
        )  # fmt: skip
    return figure
