"""Who beats whom: the penalty matrix over all settings, by batch size and by model."""

from typing import Any

from badge.report.drawings import Heat, slug
from badge.report.section import Section, Study, Table
from badge.stats import Matrix, group_by

WORDS = """
<p>Each cell says in how many settings the row's strategy beats the column's (paired two-sided t-test over the repeats at
level 0.05, a share of 1/n for each of a setting's n label budgets). The number in brackets counts the settings, and bounds
every entry. The last row is the average of the column over all strategies, as in the authors' script:
<strong>lower is better</strong>.</p>
{% if figures %}
{{ figures }}
{% else %}
<p>No strategy beats another at any label budget: every entry is 0.</p>
{% endif %}
"""


def section(study: Study) -> Section:
    penalty = study.statistics.penalty
    overall = penalty.overall
    heats = [Heat("penalty-all", f"All settings ({overall.settings})", overall)]
    tables = [Table("penalty_matrix", ["strategy", *penalty.strategies], _rows(overall), latex=True)]
    for by, title in (("batch_size", "Batch size {:,}"), ("model", "Model {}")):
        groups = group_by(penalty, by)
        for group, matrix in groups.items() if len(groups) > 1 else ():  # one group would repeat the whole
            heats.append(Heat(slug("penalty", by, group), f"{title.format(group)} ({matrix.settings})", matrix))
        rows = [[group, *row] for group, matrix in groups.items() for row in _rows(matrix)]
        tables.append(Table(f"penalty_matrix_by_{by}", [by, "strategy", *penalty.strategies], rows, latex=True))
    compared = overall.settings > 0 and len(overall.strategies) > 1
    figures = [heats] if compared and overall.values.any() else []
    return Section("penalty", "Who beats whom", WORDS, {}, figures, tables, shown=compared)


def _rows(matrix: Matrix) -> list[list[Any]]:
    rows = [[name, *values] for name, values in zip(matrix.strategies, matrix.values.tolist(), strict=True)]
    return [*rows, ["average", *matrix.averages.tolist()]]
