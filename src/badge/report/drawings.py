"""What a figure shows, as plain data, and how a strategy looks in it. `badge.report.figures` draws it, perhaps elsewhere.

A strategy has one colour and one marker in every figure, colour-blind safe, and legible on white and on black.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.catalog import STRATEGIES
from badge.stats import Matrix, Mean, Results, Setting, learning_curve, mean_curve

#: The colour of text and axes while a figure is drawn; a page replaces it by its own text colour, light or dark.
INK = "#010203"

#: matplotlib's settings for every figure: text stays text, files do not change from one run to the next.
RC: Any = {
    "axes.axisbelow": True, "axes.edgecolor": INK, "axes.facecolor": "none", "axes.grid": True, "axes.labelcolor": INK,
    "axes.labelsize": 10, "axes.linewidth": 0.7, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlecolor": INK, "axes.titlesize": 10.5,
    "font.family": ["DejaVu Sans"], "font.size": 10,
    "grid.alpha": 0.25, "grid.color": "#808080", "grid.linewidth": 0.6,
    "legend.fontsize": 9.5, "legend.frameon": False, "legend.labelcolor": INK,
    "lines.markersize": 4.5,
    "svg.fonttype": "none", "svg.hashsalt": "badge",
    "text.color": INK, "text.parse_math": False,
    "xtick.color": INK, "xtick.labelsize": 9.5, "ytick.color": INK, "ytick.labelsize": 9.5,
}  # fmt: skip


class Look(NamedTuple):
    colour: str
    marker: str
    dash: str
    width: float


# Okabe and Ito's colours, with a grey for the baseline and more hues for the strategies behind the paper's seven
_COLOURS = ("#d55e00", "#0072b2", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#8a8a8a", "#8066d9", "#a6761d",
            "#66a61e", "#1b5e6b", "#c2185b", "#ad6f8a", "#7e57c2", "#00897b", "#37474f", "#5c6bc0", "#b8860b",
            "#ef5350", "#f48fb1", "#7cb342", "#6d4c41", "#0097a7", "#2e7d32")  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "d", "p", "8", "x", "+", "2", "3", "4", "1", ".",
            "|", "_", "h", "*", "H")  # fmt: skip
_FIXED = {
    name: Look(colour, marker, "-", 2.0 if name == "badge" else 1.4)
    for name, colour, marker in zip(STRATEGIES, _COLOURS, _MARKERS, strict=True)
}
_OTHER_MARKERS = ("p", "8")


def look(strategy: str) -> Look:
    """The look of a strategy: fixed for registry names; for others it depends on the name alone, and is dashed.

    >>> look("badge")
    Look(colour='#d55e00', marker='o', dash='-', width=2.0)
    >>> look("mine") == look("mine")
    True
    """
    if strategy in _FIXED:
        return _FIXED[strategy]
    marker, colour = divmod(zlib.crc32(strategy.encode()), len(_COLOURS))
    return Look(_COLOURS[colour], _OTHER_MARKERS[marker % len(_OTHER_MARKERS)], "--", 1.4)


#: Bytes of the name of a figure's file, without its ending; systems allow 255.
LONGEST = 180
#: More points than this on one curve cannot be told apart at the figures' size.
POINTS = 150
#: A zoomed figure is at most this many times as high as the distance between its curves, if there is such a window.
STEEP = 4.0


class Line(NamedTuple):
    """One strategy's curve; NaN is a gap. `error`: half the height of the band around it."""

    strategy: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64] | None = None

    def part(self, points: slice | NDArray[np.int64]) -> Line:
        return Line(self.strategy, self.x[points], self.y[points], None if self.error is None else self.error[points])


class Lines(NamedTuple):
    """A figure of curves. `window`: (x0, x1, y0, y1) to show."""

    name: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    window: tuple[float, float, float, float] | None = None
    steps: bool = False
    log_y: bool = False


class Heat(NamedTuple):
    """A figure of a penalty matrix."""

    name: str
    title: str
    matrix: Matrix


class Dots(NamedTuple):
    """A figure of ratios: one dot per setting, the median and its interval per strategy."""

    name: str
    title: str
    x_label: str
    strategies: tuple[str, ...]
    ratios: tuple[tuple[float, ...], ...]  # per strategy, inf: not reached
    medians: tuple[tuple[float, float, float], ...]  # (median, low, high) per strategy


Drawing = Lines | Heat | Dots


def slug(*parts: object) -> str:
    """A file name of words and dashes; a long one is cut, and a digest of the whole keeps it apart from others.

    >>> slug("curves", "My data", 100)
    'curves-my-data-100'
    """
    text = "-".join(str(part) for part in parts).lower()
    name = "-".join("".join(c if c.isalnum() else " " for c in text).split())
    if len(name.encode()) <= LONGEST:
        return name
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{name.encode()[:LONGEST].decode(errors='ignore')}-{digest}"


def thinned(line: Line) -> Line:
    """About POINTS points of a curve at most, evenly chosen. Both ends and the edges of every gap stay."""
    count = len(line.x)
    if count <= POINTS:
        return line
    gaps = np.flatnonzero(~np.isfinite(line.y))
    even = np.linspace(0, count - 1, POINTS).round().astype(np.int64)
    return line.part(np.unique(np.concatenate([even, gaps, gaps - 1, gaps + 1]).clip(0, count - 1)))


def mean_lines(means: Mapping[str, Mean], scale: float = 1.0) -> tuple[Line, ...]:
    """The curve of each strategy that has a mean, with its standard error; infinite means are gaps."""
    lines = []
    for strategy, mean in means.items():
        y = np.where(np.isfinite(mean.mean), mean.mean, np.nan) * scale
        lines.append(Line(strategy, mean.labels.astype(np.float64), y, np.nan_to_num(mean.error) * scale))
    return tuple(line for line in lines if len(line.x))


def accuracy_lines(results: Results, setting: Setting, strategies: Sequence[str], zoom: bool = False) -> Lines:
    """Learning curves in per cent; with `zoom`, the part where the strategies differ most."""
    lines = mean_lines({name: mean_curve(learning_curve(results, setting, name)) for name in strategies}, 100.0)
    window = zoom_window(lines) if zoom else None
    if window is not None:  # points outside the window would only fill the file; one on each side leads the line in
        edges = [(np.searchsorted(line.x, window[0]), np.searchsorted(line.x, window[1], "right")) for line in lines]
        lines = tuple(line.part(slice(max(a - 1, 0), b + 1)) for line, (a, b) in zip(lines, edges, strict=True))
    name = slug("curves", *setting, *(["zoomed"] if zoom else []))
    title = f"{setting}{', zoomed' if zoom else ''}"
    return Lines(name, title, "number of labels", "test accuracy (%)", lines, window)


def zoom_window(lines: Sequence[Line]) -> tuple[float, float, float, float] | None:
    """(x0, x1, y0, y1) around the label counts at which the curves are at least half their largest distance apart.

    The distance is the range of the curves at a label count, as a ratio of errors (so that late differences between
    small errors count too), smoothed by a running median of five. A steep start would squeeze the rest, so the window
    begins where its height is at most STEEP times the curves' distance. None if fewer than two curves overlap.
    """
    grid = reduce(np.intersect1d, [line.x for line in lines]) if len(lines) > 1 else np.empty(0)
    if len(grid) < 3:
        return None
    heights = np.array([line.y[np.searchsorted(line.x, grid)] for line in lines])
    spread = np.ptp(np.log(np.maximum(100.0 - heights, 0.1)), axis=0)
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(spread, 2, mode="edge"), 5), axis=1)
    apart = np.flatnonzero(smooth >= smooth.max() / 2)
    first, last = max(int(apart[0]), 1), int(apart[-1])
    if last <= first:
        first, last = max(first - 1, 0), min(last + 1, len(grid) - 1)
    apart_by = np.ptp(heights, axis=0)
    for start in range(first, last - 2):
        if np.ptp(heights[:, start : last + 1]) <= STEEP * np.median(apart_by[start : last + 1]):
            first = start
            break
    low, high = float(heights[:, first : last + 1].min()), float(heights[:, first : last + 1].max())
    margin = 0.05 * max(high - low, 0.1)
    return float(grid[first]), float(grid[last]), low - margin, high + margin
