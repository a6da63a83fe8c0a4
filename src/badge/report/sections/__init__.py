"""The sections of the report. `SECTIONS` is their order on the page; each module makes one, from numbers to words."""

from badge.report.sections import cdf, curves, diversity, notes, paper, penalty, samplers, saved, settings

__all__ = ["SECTIONS"]

SECTIONS = tuple(
    module.section for module in (curves, penalty, cdf, saved, diversity, samplers, settings, paper, notes)
)
