"""A whole report: statistics, sections, figures, tables, page."""

import os
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from badge.core.names import path_of
from badge.core.progress import bar
from badge.core.writing import folder_for
from badge.errors import InputError, MissingExtraError
from badge.report.page import write_page
from badge.report.saving import FORMATS, drawing_pool, save_all
from badge.report.section import Section, Study
from badge.report.sections import SECTIONS
from badge.report.statistics import Statistics, evaluate
from badge.stats import Results

#: From this number of settings on, several processes draw. For fewer figures, starting them takes longer.
MANY = 4


class Report(NamedTuple):
    """What was written, and the numbers in it."""

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
    """Write `report.html`, `figures/` (SVG) and the CSV files into the folder `out`.

    Args:
        results: what `badge.stats.load` gave.
        out: the folder; it is made where it is missing.
        strategies: which to compare; None: the paper's, and the user's own.
        source: where the results are from, for the page.
        progress: draw a bar on standard error.
        workers: processes that draw; None: one per core, at most four. Above one, call from under
            `if __name__ == "__main__":`, as with every use of `multiprocessing`.
        formats: "png", "pdf" or both: figures in these formats too, which takes longer than all the rest.

    Returns:
        Where the page is, how many figures it has, and its statistics.

    Raises:
        InputError: a strategy is not in the results; a format is unknown.
        WriteError: the folder cannot be written.

    >>> import tempfile
    >>> from badge import stats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     build(stats.example(), folder, workers=1).page.name
    'report.html'
    """
    for package in ("scipy", "matplotlib", "jinja2"):  # before any work is done
        if find_spec(package) is None:
            raise MissingExtraError("the report", package, "study")
    if unknown := [ending for ending in formats if ending not in FORMATS]:
        there = f"there are {', '.join(FORMATS)} beside SVG"
        raise InputError(f"no format {', '.join(map(repr, unknown))} of figures; {there}")
    folder = path_of(out, "the folder of a report")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out names a folder")
    folder_for(folder)
    count = min(os.cpu_count() or 1, 4) if workers is None else workers
    results = results.named()
    several = count if len(results.settings) >= MANY else 1
    with drawing_pool(several) as pool:  # its processes start while the statistics are computed
        with bar("statistics and tables", total=2, enabled=progress) as advance:
            study = Study(results, evaluate(results, strategies))
            advance(1)
            sections = make_sections(study)
            for table in (table for section in sections for table in section.tables):
                table.write(folder)
            advance(1)
        drawings = [drawing for section in sections for group in section.figures for drawing in group]
        with bar("drawing figures", total=len(drawings), enabled=progress) as advance:
            pictures = save_all(drawings, folder / "figures", formats, pool, advance)
    page = folder / "report.html"
    write_page(page, study, sections, pictures, source)
    return Report(page, len(drawings), study.statistics)


def make_sections(study: Study) -> list[Section]:
    """Every section, from the top of the page. File names of figures differ even for data sets "a b" and "a-b"."""
    sections: list[Section] = []
    seen: Counter[str] = Counter()
    for make in SECTIONS:
        made = make(study._replace(drawn=tuple(seen)))
        groups = []
        for group in made.figures:
            seen.update(drawing.name for drawing in group)
            groups.append([d if seen[d.name] == 1 else d._replace(name=f"{d.name}-{seen[d.name]}") for d in group])
        sections.append(made._replace(figures=groups))
    return sections
