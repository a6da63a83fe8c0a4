"""Learning curves: each setting in full, and zoomed to where the strategies differ."""

from badge.report.drawings import accuracy_lines
from badge.report.section import SETTING, Section, Study, Table, by_strategy
from badge.stats import learning_curve, mean_curve

WORDS = """
<p>Mean test accuracy over the repeats; bands are one standard error. Each setting in full, and zoomed to where the strategies
differ.</p>
{{ figures }}
"""


def section(study: Study) -> Section:
    results, names = study.results, study.statistics.strategies
    groups = []
    for setting in results.settings:
        full, zoomed = (accuracy_lines(results, setting, names, zoom) for zoom in (False, True))
        groups.append([drawing for drawing in (full, zoomed) if drawing.lines and (drawing is full or drawing.window)])
    header = [*SETTING, "strategy", "labels", "repeats", "test_accuracy", "standard_error"]
    rows = by_strategy(results, lambda *where: [mean_curve(learning_curve(*where))])
    return Section("curves", "Learning curves", WORDS, figures=groups, tables=[Table("curves", header, rows)])
