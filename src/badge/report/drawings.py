"""What a figure shows, as plain data. `badge.report.figures` draws it, perhaps in another process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.stats import Matrix, Mean, Results, Setting, learning_curve, mean_curve

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
    keep = np.unique(np.concatenate([even, gaps, gaps - 1, gaps + 1]).clip(0, count - 1))
    return line.part(keep)


def mean_lines(means: Mapping[str, Mean], scale: float = 1.0) -> tuple[Line, ...]:
    """The curve of each strategy that has a mean, with its standard error; infinite means are gaps."""
    return tuple(
        Line(
            strategy,
            mean.labels.astype(np.float64),
            np.where(np.isfinite(mean.mean), mean.mean, np.nan) * scale,
            np.nan_to_num(mean.error) * scale,
        )
        for strategy, mean in means.items()
        if len(mean.labels)
    )


def accuracy_lines(results: Results, setting: Setting, strategies: Sequence[str], zoom: bool = False) -> Lines:
    """Learning curves in per cent; with `zoom`, the part where the strategies differ most."""
    means = {name: mean_curve(learning_curve(results, setting, name)) for name in strategies}
    lines = mean_lines(means, 100.0)
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
    errors = np.log(np.maximum(100.0 - heights, 0.1))
    spread = errors.max(axis=0) - errors.min(axis=0)
    padded = np.pad(spread, 2, mode="edge")
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    apart = np.flatnonzero(smooth >= smooth.max() / 2)
    first, last = max(int(apart[0]), 1), int(apart[-1])
    if last <= first:
        first, last = max(first - 1, 0), min(last + 1, len(grid) - 1)
    apart_by = heights.max(axis=0) - heights.min(axis=0)
    for start in range(first, last - 2):
        if np.ptp(heights[:, start : last + 1]) <= STEEP * np.median(apart_by[start : last + 1]):
            first = start
            break
    low, high = float(heights[:, first : last + 1].min()), float(heights[:, first : last + 1].max())
    margin = 0.05 * max(high - low, 0.1)
    return float(grid[first]), float(grid[last]), low - margin, high + margin
