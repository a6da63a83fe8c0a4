"""The page: one HTML file with every figure and table in it, and nothing to fetch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import badge
from badge.core.writing import replacing
from badge.report.section import Section, Study
from badge.report.sections.saved import interval, typical
from badge.report.sections.settings import data_rows
from badge.stats import LabelsSaved, Matrix

FIGURES = """
<div class="figures">
{% for group in groups %}
{% for drawing in group %}
<figure id="{{ drawing.name }}"{% if loop.first %} class="first"{% endif %}>
{{ pictures[drawing.name]|safe }}
<figcaption>figures/{{ drawing.name }}</figcaption>
</figure>
{% endfor %}
{% endfor %}
</div>
"""


def write_page(path: Path, study: Study, sections: Sequence[Section], pictures: Mapping[str, str], source: str) -> None:
    """Fill the templates: each section's own, and `templates/report.html` around them."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("badge.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    frame = environment.from_string(FIGURES)

    def body(section: Section) -> Markup:
        figures = Markup(frame.render(groups=section.figures, pictures=pictures)) if any(section.figures) else ""
        return Markup(environment.from_string(section.words).render(section.values, figures=figures))

    text = environment.get_template("report.html").render(
        version=badge.__version__,
        source=source,
        results=study.results,
        strategies=study.statistics.strategies,
        partial=[row for row in data_rows(study.results) if row.partial],
        headline=headline(study.statistics.penalty.overall, study.statistics.saved, study.statistics.ranking),
        sections=[{"name": s.name, "title": s.title, "body": body(s)} for s in sections if s.shown],
        tables=[table.name for section in sections for table in section.tables],
    )
    with replacing(path) as file:
        file.write(text)


def headline(overall: Matrix, saved: LabelsSaved, matrix: Matrix | None) -> list[str]:
    """One or two sentences: who is beaten least, and how many labels that saves.

    `matrix` is the penalty matrix over what all strategies share.

    >>> from badge.stats import example, penalty_matrix, saved_labels
    >>> overall = penalty_matrix(example()).overall
    >>> headline(overall, saved_labels(example()), overall)[0]
    'In this one setting, no strategy beats badge.'
    """
    if not overall.settings:
        return ["No setting has label budgets, so no strategies were compared: see the notes."]
    if len(overall.strategies) < 2:
        return ["There is one strategy only: nothing to compare it with."]
    if matrix is None or not matrix.settings:
        return ["No setting with label budgets has two seeds that all strategies share, so none is ranked."]
    averages = matrix.averages
    least = averages.min()
    names = [name for name, value in zip(matrix.strategies, averages.tolist(), strict=True) if value <= least + 1e-9]
    where = "In this one setting" if matrix.settings == 1 else f"In {matrix.settings} settings"
    same = matrix.settings == overall.settings and bool((matrix.values == overall.values).all())
    where += "" if same else ", with the seeds that all strategies share"
    if not averages.any():
        return [f"{where}, no strategy beats another."]
    if least == 0:
        lines = [f"{where}, no strategy beats {' or '.join(names)}."]
    else:
        who = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} beaten least"
        others = least * len(matrix.strategies) / (len(matrix.strategies) - 1)  # the column's own 0 is none of them
        rate = f": on average, another strategy wins in {others:.2g} settings" if matrix.settings > 1 else ""
        lines = [f"{where}, {who}{rate}."]
    for entry in typical(saved):
        if entry.strategy in names and math.isfinite(entry.ratio):
            share = f"{entry.ratio:.0%}".replace("%", " %")
            median = ", in the median setting" if matrix.settings > 1 else ""
            reached = f"{entry.strategy} reaches rand's final accuracy with {share} of rand's labels{median}"
            lines.append(f"{reached} ({'' if math.isnan(entry.low) else '95 % interval '}{interval(entry)}).")
    return lines
