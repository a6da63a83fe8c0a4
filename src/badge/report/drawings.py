"""What each figure shows, as plain data: made from results here, drawn by `badge.report.figures`, maybe elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.stats import (
    Cdf,
    LabelsSaved,
    Matrix,
    Mean,
    Results,
    Setting,
    batch_diversity,
    learning_curve,
    mean_curve,
    round_times,
)

__all__ = [
    "Dots",
    "Heat",
    "Line",
    "Lines",
    "accuracy_lines",
    "cdf_lines",
    "diversity_lines",
    "saved_dots",
    "time_lines",
]

#: Bytes of the name of a figure's file, without its ending; systems allow 255.
LONGEST = 180
#: More points than this on one curve cannot be told apart at the figures' size.
POINTS = 150
#: A zoomed figure is at most this many times as high as the curves in it are apart (where that can be had).
STEEP = 4.0


class Line(NamedTuple):
    """One strategy's curve; NaN is a gap. `error`: half the height of the band around it."""

    strategy: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64] | None = None


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
    """At most about POINTS points of a curve, evenly chosen; both ends and the edges of every gap stay."""
    count = len(line.x)
    if count <= POINTS:
        return line
    gaps = np.flatnonzero(~np.isfinite(line.y))
    even = np.linspace(0, count - 1, POINTS).round().astype(np.int64)
    keep = np.unique(np.concatenate([even, gaps, gaps - 1, gaps + 1]).clip(0, count - 1))
    return Line(line.strategy, line.x[keep], line.y[keep], None if line.error is None else line.error[keep])


def _line(strategy: str, mean: Mean, scale: float = 1.0) -> Line:
    y = np.where(np.isfinite(mean.mean), mean.mean, np.nan) * scale
    return Line(strategy, mean.labels.astype(np.float64), y, np.nan_to_num(mean.error) * scale)


def accuracy_lines(results: Results, setting: Setting, strategies: Sequence[str], zoom: bool = False) -> Lines:
    """Learning curves in per cent; zoomed to where the strategies differ most, where that is asked for."""
    means = {name: mean_curve(learning_curve(results, setting, name)) for name in strategies}
    lines = [_line(name, mean, 100.0) for name, mean in means.items() if len(mean.labels)]
    window = zoom_window(lines) if zoom else None
    if window is not None:  # points outside the window would only fill the file; one on each side leads the line in
        x0, x1 = window[:2]
        lines = [_between(line, x0, x1) for line in lines]
    name = slug("curves", *setting, *(["zoomed"] if zoom else []))
    title = f"{setting}{', zoomed' if zoom else ''}"
    thin = tuple(thinned(line) for line in lines)
    return Lines(name, title, "number of labels", "test accuracy (%)", thin, window)


def _between(line: Line, x0: float, x1: float) -> Line:
    first = max(int(np.searchsorted(line.x, x0)) - 1, 0)
    last = int(np.searchsorted(line.x, x1, side="right")) + 1
    part = slice(first, last)
    return Line(line.strategy, line.x[part], line.y[part], None if line.error is None else line.error[part])


def zoom_window(lines: Sequence[Line]) -> tuple[float, float, float, float] | None:
    """The label counts between which the curves lie at least half as far apart as they ever do, and their heights.

    The distance is the range of the curves at a label count, as a ratio of errors (so that late differences between
    small errors count too), with a running median of five against noise. A steep start would squeeze the rest, so the
    window begins where its height is at most STEEP times the curves' distance. None where under two curves overlap.
    """
    shared = [line.x for line in lines]
    grid = shared[0] if shared else np.empty(0)
    for x in shared[1:]:
        grid = np.intersect1d(grid, x)
    if len(lines) < 2 or len(grid) < 3:
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


def diversity_lines(results: Results, setting: Setting, strategies: Sequence[str], what: str) -> Lines:
    """ "log_det" or "mean_norm" of the batches, by number of labels."""
    label = {"log_det": "log det of the batch's Gram matrix", "mean_norm": "mean gradient norm in the batch"}[what]
    means = {name: getattr(batch_diversity(results, setting, name), what) for name in strategies}
    lines = tuple(thinned(_line(name, mean)) for name, mean in means.items() if len(mean.labels))
    return Lines(slug(what, *setting), str(setting), "number of labels", label, lines)


def time_lines(results: Results, setting: Setting, strategies: Sequence[str]) -> Lines:
    """Seconds of selection, by number of labels."""
    means = {name: round_times(results, setting, name).select for name in strategies}
    lines = tuple(thinned(_line(name, mean)) for name, mean in means.items() if len(mean.labels))
    name = slug("seconds", *setting)
    return Lines(name, str(setting), "number of labels", "selection (seconds)", lines, log_y=True)


def cdf_lines(name: str, title: str, cdfs: dict[str, Cdf]) -> Lines:
    """Weighted CDFs as step curves from 0 to 1."""
    edges = [cdf.errors for cdf in cdfs.values() if len(cdf.errors)]
    low, high = (float(min(e[0] for e in edges)), float(max(e[-1] for e in edges))) if edges else (0.0, 1.0)
    margin = 0.04 * max(high - low, 0.1)
    lines = tuple(
        Line(
            strategy,
            np.concatenate([[low - margin], cdf.errors, [high + margin]]),
            np.concatenate([[0.0], cdf.share, [1.0]]),
        )
        for strategy, cdf in cdfs.items()
        if len(cdf.errors)
    )
    window = (low - margin, high + margin, -0.02, 1.03)
    return Lines(name, title, "error ÷ error of rand", "share of settings", lines, window, steps=True)


def saved_dots(saved: LabelsSaved) -> Dots:
    """Ratios of labels by strategy; unreached ones are inf."""
    strategies = tuple(entry.strategy for entry in saved.medians)
    ratios = tuple(tuple(s.ratio for s in saved.savings if s.strategy == name) for name in strategies)
    medians = tuple((entry.ratio, entry.low, entry.high) for entry in saved.medians)
    title = "Labels for rand's final accuracy"
    return Dots("labels-saved", title, "labels needed ÷ labels that rand needs", strategies, ratios, medians)
