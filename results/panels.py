"""The pictures of learning curves: several settings in one figure, and one setting with what it saves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from badge.core.catalog import REFERENCE
from badge.report.drawings import RC, Lines
from badge.report.figures import WIDTH, fill
from badge.stats import labels_to_reach

__all__ = ["headline", "panels"]


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


def headline(drawing: Lines, strategy: str = "badge") -> Figure:
    """One setting for those who have never seen such curves: how many labels reach what random labels end with."""
    lines = {line.strategy: line for line in drawing.lines}
    end, target = float(lines[REFERENCE].x[-1]), float(lines[REFERENCE].y[-1])
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(5.2, 4.0), facecolor="white")
        axes = figure.add_axes((0.115, 0.2, 0.865, 0.71))
        fill(axes, drawing)
        for curve in axes.lines:
            if curve.get_label() not in (strategy, REFERENCE):
                curve.set(alpha=0.45, linewidth=1)
        floor = axes.get_ylim()[0]
        needed = float(
            labels_to_reach(lines[strategy].x.astype(np.int64), lines[strategy].y[None], np.array([target]))[0]
        )
        if needed < end:
            axes.plot(
                [needed, needed, end], [floor, target, target], color="black", linewidth=1.2, linestyle=":", zorder=4
            )
            words = (
                f"{strategy} reaches with\n{round(needed, -1):,.0f} labels what random\nlabels reach with {end:,.0f}"
            )
            left = needed > end / 2
            axes.annotate(words, (needed, floor), (-6 if left else 6, 8), textcoords="offset points",
                          ha="right" if left else "left", fontsize=10)  # fmt: skip
        axes.set_ylim(bottom=floor)
        found = axes.get_legend_handles_labels()
        figure.legend(*found, loc="lower center", ncol=len(found[0]), columnspacing=0.9, handlelength=1.4,
                      handletextpad=0.3, borderaxespad=0.2)  # fmt: skip
    return figure
