"""From results to a report: figures, tables and one page that holds them all; needs matplotlib and jinja2, not torch.

>>> import tempfile
>>> from badge.report import build
>>> from badge.stats import example
>>> with tempfile.TemporaryDirectory() as folder:
...     report = build(example(), folder)
...     report.page.name, report.figures
('report.html', 4)
"""

from badge.report.build import Report, build
from badge.report.figures import learning_curves
from badge.report.section import Statistics, evaluate

__all__ = ["Report", "Statistics", "build", "evaluate", "learning_curves"]
