"""The sections of the report. `SECTIONS` is their order on the page; each module makes one, from numbers to words."""

from badge.report.section import Make
from badge.report.sections import cdf, curves, diversity, notes, paper, penalty, samplers, saved, settings

__all__ = ["SECTIONS"]

SECTIONS: tuple[Make, ...] = (
    curves.section,
    penalty.section,
    cdf.section,
    saved.section,
    diversity.section,
    samplers.section,
    settings.section,
    paper.section,
    notes.section,
)
