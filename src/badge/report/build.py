"""A whole report: statistics, sections, figures, tables, and one HTML file that holds them all, with nothing to fetch."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import badge
from badge.core.names import path_of
from badge.core.progress import bar
from badge.core.writing import folder_for, replacing
from badge.errors import InputError, MissingExtraError
from badge.report.drawings import Drawing
from badge.report.saving import FORMATS, drawing_pool, save_all
from badge.report.section import Section, Statistics, Study, evaluate
from badge.report.sections import SECTIONS
from badge.report.sections.saved import interval, typical
from badge.report.sections.settings import data_rows
from badge.stats import LabelsSaved, Matrix, Results

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
        partial=[row for row in data_rows(study.results) if row["partial"]],
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


#: From this number of settings on, several processes draw. For fewer figures, starting them takes longer.
MANY = 4


class Report(NamedTuple):
    """The result of `build`: what was written, and the statistics."""

    page: Path
    figures: int
    statistics: Statistics


def build(
    results: Results,
    out: str | Path,
    strategies: Sequence[str] | None = None,
    *,
    source: str = "",
    progress: bool = False,
    workers: int | None = None,
    formats: Sequence[str] = (),
) -> Report:
    """Write a report: `report.html`, figures (SVG) and tables (CSV).

    Args:
        results: a `Results` table, from `badge.stats.load`.
        out: the folder to write to; a missing folder is made.
        strategies: names of the strategies to compare; None: the paper's and your own, or all if these are fewer than two.
        source: the origin of the results, for the page.
        progress: show a progress bar on standard error.
        workers: the number of processes that draw; None: one per core, at most four. With more than one, put the call under
            `if __name__ == "__main__":`, as always with `multiprocessing`.
        formats: "png", "pdf" or both: write every figure in these formats too. This takes longer than the rest of the
            report.

    Returns:
        A `Report`: the path of the page, its number of figures, and the statistics.

    Raises:
        InputError: a strategy is not in the results, or a format is unknown.
        WriteError: the folder cannot be written.
        MissingExtraError: scipy, matplotlib or jinja2 is not installed (extra `study`).

    >>> import tempfile
    >>> from badge import stats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build(stats.example(), folder, workers=1).page.name
    'report.html'
    """
    for package in ("scipy", "matplotlib", "jinja2"):  # before any work is done
        if find_spec(package) is None:
            raise MissingExtraError("the report", package, "study")
    if unknown := ", ".join(repr(ending) for ending in formats if ending not in FORMATS):
        raise InputError(f"no format {unknown} of figures; there are {', '.join(FORMATS)} beside SVG")
    folder = path_of(out, "the folder of a report")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out names a folder")
    folder_for(folder)
    results = results.named()
    count = min(os.cpu_count() or 1, 4) if workers is None else workers
    with drawing_pool(count if len(results.settings) >= MANY else 1) as pool:  # starts while statistics are computed
        with bar("statistics and tables", total=2, enabled=progress) as advance:
            study = Study(results, evaluate(results, strategies))
            advance(1)
            sections = make_sections(study)
            for table in (table for section in sections for table in section.tables):
                table.write(folder)
            advance(1)
        drawings = [drawing for section in sections for group in section.figures for drawing in group]
        pictures: dict[str, str] = {}
        with bar("drawing figures", total=len(drawings), enabled=progress) as advance:
            for name, svg in save_all(drawings, folder / "figures", formats, pool):
                pictures[name] = svg
                advance(1)
    page = folder / "report.html"
    write_page(page, study, sections, pictures, source)
    return Report(page, len(drawings), study.statistics)


def make_sections(study: Study) -> list[Section]:
    """Every section, from the top of the page. File names of figures differ even for data sets "a b" and "a-b"."""
    sections: list[Section] = []
    seen: Counter[str] = Counter()

    def apart(drawing: Drawing) -> Drawing:
        seen[drawing.name] += 1
        again = seen[drawing.name]
        return drawing if again == 1 else drawing._replace(name=f"{drawing.name}-{again}")

    for make in SECTIONS:
        made = make(study._replace(drawn=tuple(seen)))
        sections.append(made._replace(figures=[[apart(drawing) for drawing in group] for group in made.figures]))
    return sections
