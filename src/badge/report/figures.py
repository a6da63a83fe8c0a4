"""Drawing with matplotlib: learning curves, matrices, distribution functions, dots with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from badge.core.importing import needs
from badge.errors import InputError
from badge.report.drawings import INK, RC, Dots, Drawing, Heat, Line, Lines, accuracy_lines, look, thinned
from badge.stats import Results, Setting
from badge.stats.results import compared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of every figure in inches: narrow, so that its text stays legible on a phone.
WIDTH = 4.4
#: Markers on a curve, about.
MARKERS = 8
#: The fill of a matrix cell; its opacity says how large the entry is, so that it works on white and on black.
FILL = (0.12, 0.38, 0.68)


def learning_curves(
    results: Results,
    path: str | Path | None = None,
    *,
    setting: Setting | None = None,
    strategies: Sequence[str] | None = None,
    zoom: bool = False,
) -> Figure:
    """Draw test accuracy against the number of labels, with standard-error bands.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        path: the file to write, .svg or .png; None: only return the figure.
        setting: a `Setting`: data, model and batch size. None: the only setting of the results.
        strategies: names of strategies; None: all strategies in the results.
        zoom: show the part where the strategies differ most.

    Returns:
        A matplotlib figure.

    Raises:
        InputError: `setting` is missing and the results have several, or a name is wrong.

    >>> from badge.stats import example
    >>> figure = learning_curves(example())
    >>> figure.axes[0].get_ylabel()
    'test accuracy (%)'
    """
    names = compared(results, strategies)
    if setting is None:
        if len(results.settings) > 1:
            known = "; ".join(map(str, results.settings))
            raise InputError(f"these results have {len(results.settings)} settings: name one of {known}")
        setting = results.settings[0]
    figure = draw(accuracy_lines(results, setting, names, zoom))
    if path is not None:
        from badge.report.saving import save

        save(figure, Path(path))
    return figure


def draw(drawing: Drawing) -> Figure:
    """The figure of a drawing."""
    with needs("drawing", "matplotlib", "study"):
        import matplotlib
    with matplotlib.rc_context(RC):
        if isinstance(drawing, Lines):
            return _draw_lines(drawing)
        return _draw_heat(drawing) if isinstance(drawing, Heat) else _draw_dots(drawing)


def _figure(plot_inches: float, top: float, bottom: float, left: float, right: float = 0.2) -> tuple[Figure, Axes]:
    """A figure with one plot and margins in inches: fixed, so that no layout has to be solved."""
    from matplotlib.figure import Figure

    height = plot_inches + top + bottom
    figure = Figure(figsize=(WIDTH, height), facecolor="white")
    return figure, figure.add_axes((left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, plot_inches / height))


def _draw_lines(drawing: Lines) -> Figure:
    longest = max((len(line.strategy) for line in drawing.lines), default=0)
    columns = 4 if longest <= 8 else 3 if longest <= 14 else 2 if longest <= 25 else 1
    rows = math.ceil(len(drawing.lines) / columns)
    figure, axes = _figure(2.4, top=0.34, bottom=0.56 + 0.21 * rows, left=0.7)
    fill(axes, drawing)
    figure.legend(
        *axes.get_legend_handles_labels(), loc="lower center", ncol=columns, columnspacing=1.1,
        handlelength=2.0, handletextpad=0.5, borderaxespad=0.2, labelspacing=0.35,
    )  # fmt: skip
    return figure


def fill(axes: Axes, drawing: Lines) -> None:
    """The curves, scales and titles of one plot."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for i, whole in enumerate(drawing.lines):
        line, style = whole if drawing.steps else thinned(whole), look(whole.strategy)
        axes.plot(
            line.x, line.y, label=line.strategy, color=style.colour, linestyle=style.dash, linewidth=style.width,
            marker=style.marker, markevery=_markers(line, i / len(drawing.lines), drawing.steps),
            zorder=3 if line.strategy == "badge" else 2, drawstyle="steps-post" if drawing.steps else "default",
        )  # fmt: skip
        if line.error is not None and (line.error > 0).any():
            low, high = line.y - line.error, line.y + line.error
            axes.fill_between(line.x, low, high, color=style.colour, alpha=0.18, linewidth=0)
    values = np.concatenate([line.y[np.isfinite(line.y)] for line in drawing.lines] or [np.empty(0)])
    if drawing.log_y and len(values) and values.min() > 0:
        axes.set_yscale("log")
        decades = np.log10(values.max() / values.min())
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif not drawing.steps and max(abs(edge) for edge in axes.get_ylim()) >= 1e4:
        axes.yaxis.set_major_formatter(lambda value, _: _thousands(value))
    if drawing.window is not None:
        axes.set(xlim=drawing.window[:2], ylim=drawing.window[2:])
    if not drawing.steps:
        axes.xaxis.set_major_formatter(lambda value, _: _thousands(value))
    axes.locator_params(axis="x", nbins=6)
    _set_title(axes, drawing.title)
    axes.set_xlabel(drawing.x_label)
    axes.xaxis.set_label_coords(0.5, -0.119)  # below numbers of one line: need not be measured
    axes.set_ylabel(drawing.y_label)


def _markers(line: Line, phase: float, steps: bool) -> list[int]:
    """All points of a short curve; else about MARKERS, apart from other curves' markers, and points that stand alone."""
    if steps:  # the two ends lie at the edges of the plot
        inner = len(line.x) - 2
        return list(range(1, inner + 1, max(1, math.ceil(inner / MARKERS))))
    if len(line.x) <= 2 * MARKERS:
        return list(range(len(line.x)))
    there = np.isfinite(line.y)
    alone = there & ~np.roll(there, 1) & ~np.roll(there, -1) if len(there) > 2 else there
    step = max(len(line.x) / MARKERS, 1.0)
    spaced = np.arange(phase * step, len(line.x), step).astype(np.int64)
    return sorted({*spaced.tolist(), *np.flatnonzero(alone).tolist()})


def _thousands(value: float) -> str:
    """1,500 → "1,500"; 20,000 → "20k"; 3,000,000 → "3M".

    >>> _thousands(1500), _thousands(20000), _thousands(2500000)
    ('1,500', '20k', '2.5M')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e4 else f"{value:,.0f}"


def _draw_heat(drawing: Heat) -> Figure:
    """The matrix with a number in every cell, and below it, set apart, the column averages."""
    from matplotlib.patches import Rectangle

    matrix = drawing.matrix
    matrix = matrix._replace(strategies=tuple(_short(name, 15) for name in matrix.strategies))
    size = len(matrix.strategies)
    left = 0.2 + 0.082 * max(len(name) for name in (*matrix.strategies, "average"))
    upright = size > 7  # many names side by side
    ends = (0.065 * len(name) - 0.4 * (size - 1 - j) for j, name in enumerate(matrix.strategies))
    overhang = 0.0 if upright else max(ends, default=0.0)
    side = min((WIDTH - left - max(overhang - 0.2, 0.08)) / size, 0.62)
    top = 0.46 + (0.085 if upright else 0.058) * max(len(name) for name in matrix.strategies)
    figure, axes = _figure(side * (size + 1.25), top=top, bottom=0.1, left=left, right=WIDTH - left - side * size)
    bound = max(matrix.settings, 1)
    for (i, j), value in np.ndenumerate(np.vstack([matrix.values, matrix.averages])):
        x, y, share = j, i if i < size else size + 0.25, min(value / bound, 1.0)
        fill_of = (*FILL, 0.05 + 0.95 * share)
        axes.add_patch(Rectangle((x + 0.02, y + 0.02), 0.96, 0.96, facecolor=fill_of, linewidth=0))
        text = "–" if i == j else "0" if value == 0 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
        look_of: dict[str, Any] = {"size": 9.5 if size < 8 else 8, "color": "#ffffff" if share > 0.7 else INK}
        axes.text(x + 0.5, y + 0.52, text, ha="center", va="center", **look_of)
    axes.set(xlim=(0, size), ylim=(size + 1.25, 0))
    turned: dict[str, Any] = {"rotation": 90} if upright else {"rotation": 40, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(np.arange(size) + 0.5, matrix.strategies, **turned)
    axes.set_yticks([*(np.arange(size) + 0.5), size + 0.75], [*matrix.strategies, "average"])
    axes.tick_params(length=0, labeltop=True, labelbottom=False, top=False, bottom=False)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    figure.text(0.1 / WIDTH, 1 - 0.08 / figure.get_figheight(), drawing.title, va="top", size=10.5)
    return figure


def _draw_dots(drawing: Dots) -> Figure:
    """Per strategy one row: a faint dot per setting, the median with its interval; a count of those not reached."""
    rows = len(drawing.strategies)
    names = [_short(name, 15) for name in drawing.strategies]
    left = 0.2 + 0.082 * max(map(len, names), default=1)
    figure, axes = _figure(0.36 * max(rows, 1) + 0.1, top=0.34, bottom=0.5, left=left, right=1.05)
    finite = [r for ratios in drawing.ratios for r in ratios if math.isfinite(r)]
    finite += [edge for entry in drawing.medians for edge in entry if math.isfinite(edge)]
    low, high = min([*finite, 1.0]) / 1.1, max([*finite, 1.0]) * 1.1
    axes.set_xscale("log")
    axes.axvline(1.0, color=INK, linewidth=0.8, alpha=0.6)
    for i, (name, ratios, entry) in enumerate(zip(drawing.strategies, drawing.ratios, drawing.medians, strict=True)):
        style = look(name)
        reached = sorted(r for r in ratios if math.isfinite(r))
        offsets = 0.24 * (np.arange(len(reached)) % 5 - 2) / 2  # spread by rank: no randomness in a figure
        axes.plot(reached, i + offsets, "o", color=style.colour, alpha=0.6, markersize=3.5, markeredgewidth=0)
        median, least, most = (min(value, high) if not math.isnan(value) else math.nan for value in entry)
        axes.plot([least, most], [i, i], color=style.colour, linewidth=2.4, solid_capstyle="butt")
        axes.plot([median], [i], style.marker, color=style.colour, markersize=7, markeredgecolor=INK)
        missed = len(ratios) - len(reached)
        text = f"{entry[0]:.2f}" if math.isfinite(entry[0]) else "never"
        text += f"  ({missed} never)" if missed and math.isfinite(entry[0]) else ""
        beside: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(text, (1.0, i), (6, 0), va="center", size=9.5, **beside)
    axes.set(xlim=(low, high), ylim=(rows - 0.45, -0.55))
    axes.set_yticks(range(rows), names)
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xticks([], minor=True)
    _set_title(axes, drawing.title)
    axes.set_xlabel(drawing.x_label)
    return figure


def _set_title(axes: Axes, title: str) -> None:
    """A title that fits: smaller, then cut, where the name of the data set is long."""
    text = _short(title, 60)  # y: matplotlib need not measure what else is at the top
    axes.set_title(text, loc="left", y=1.0, pad=7, size=min(10.5, 10.5 * 42 / len(text)))


def _short(text: str, length: int) -> str:
    """At most `length` characters, cut in the middle.

    >>> _short("package.module:function", 11)
    'packa…ction'
    """
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"
