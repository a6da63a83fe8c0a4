"""Normalised errors: their distribution over all settings, by batch size and by model."""

from typing import Any

import numpy as np

from badge.report.drawings import Line, Lines, slug
from badge.report.section import Section, Study, Table
from badge.stats import Cdf, error_cdf

WORDS = """
<p>Share of the settings' weight in which a strategy's mean error, divided by rand's, is at most x:
<strong>higher is better</strong>. Every setting weighs the same.</p>
{{ figures }}
"""


def section(study: Study) -> Section:
    errors = study.statistics.errors
    groups: list[tuple[str, Any, str, bool]] = [("all", "all", "All settings", True)]
    for by, title in (("batch_size", "Batch size {:,}"), ("model", "Model {}")):
        found = sorted({getattr(setting, by) for setting in errors.settings})
        groups += [(by, group, title.format(group), len(found) > 1) for group in found]  # one would repeat the whole
    figures, rows = [], []
    for by, group, title, drawn in groups:
        table = errors if by == "all" else errors.where(**{by: group})
        cdfs = {name: error_cdf(table, name) for name in table.strategies}
        if drawn:
            name = slug("cdf", *([group] if by == "all" else [by, group]))
            figures.append(_lines(name, f"{title} ({len(set(table.settings))})", cdfs))
        for strategy, cdf in cdfs.items():
            rows += [[by, group, strategy, *point] for point in zip(*(column.tolist() for column in cdf), strict=True)]
    header = ["group_by", "group", "strategy", "normalized_error", "weight", "cdf"]
    several = len(set(errors.settings)) > 1  # one setting has no distribution
    shown = [drawing for drawing in figures if drawing.lines and several]
    return Section("cdf", "Normalised errors", WORDS, {}, [shown], [Table("cdf", header, rows)], shown=bool(shown))


def _lines(name: str, title: str, cdfs: dict[str, Cdf]) -> Lines:
    """Weighted CDFs as step curves from 0 to 1."""
    cdfs = {strategy: cdf for strategy, cdf in cdfs.items() if len(cdf.errors)}
    low = min((float(cdf.errors[0]) for cdf in cdfs.values()), default=0.0)
    high = max((float(cdf.errors[-1]) for cdf in cdfs.values()), default=1.0)
    margin = 0.04 * max(high - low, 0.1)
    low, high = low - margin, high + margin
    ends = {name: (np.r_[low, cdf.errors, high], np.r_[0.0, cdf.share, 1.0]) for name, cdf in cdfs.items()}
    lines = tuple(Line(strategy, x, y) for strategy, (x, y) in ends.items())
    axes = "error ÷ error of rand", "share of settings"
    return Lines(name, title, *axes, lines, (low, high, -0.02, 1.03), steps=True)
