"""What a section of the report is: plain data, made by one module of `badge.report.sections`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from badge.report.drawings import Drawing
from badge.report.statistics import Statistics
from badge.report.tables import Table
from badge.stats import Results


class Study(NamedTuple):
    """What a section is made from: the results, their statistics, and the names of the figures above it on the page."""

    results: Results
    statistics: Statistics
    drawn: tuple[str, ...] = ()


class Section(NamedTuple):
    """One section of the page. `words` is a jinja2 template of `values`, and of `figures` where those stand."""

    name: str  # its anchor
    title: str
    words: str
    values: Mapping[str, Any] = {}
    figures: Sequence[Sequence[Drawing]] = ()  # each group begins a new row on a wide screen
    tables: Sequence[Table] = ()
    shown: bool = True  # a section that is not shown still writes its tables


#: Every module in `badge.report.sections` has one function `section` of this type.
Make = Callable[[Study], Section]
