"""Data and settings: which part of each data set was used, and the label budgets of each setting."""

from typing import Any

from badge.report.section import SETTING, Section, Study, Table
from badge.stats import Results

WORDS = """
<div class="scroll"><table>
<tr><th>data</th><th>rows used</th><th>models</th><th>batch sizes</th></tr>
{% for row in data %}
<tr><td>{{ row.name }}</td><td>{{ row.rows }}{{ " (in part)" if row.partial }}</td><td>{{ row.models }}</td><td>{{ row.batch_sizes }}</td></tr>
{% endfor %}
</table></div>
<h3>Label budgets</h3>
<p>M is the setting's smallest number of labels, n₀ the smallest at which rand's mean accuracy reaches 99 % of its final value.</p>
<div class="scroll"><table>
<tr><th>setting</th><th class="number">M</th><th class="number">n₀</th><th>budgets L</th></tr>
{% for entry in budgets %}
<tr><td>{{ entry.setting }}</td><td class="number">{{ "{:,}".format(entry.smallest) }}</td>
<td class="number">{{ "{:,}".format(entry.saturated) if entry.saturated is not none else "–" }}</td>
<td>{% for value in entry.values %}{{ "{:,}".format(value) }}{{ " · " if not loop.last }}{% else %}<em>none: {{ entry.why_empty }}; not counted</em>{% endfor %}</td></tr>
{% endfor %}
</table></div>
"""  # noqa: E501


def section(study: Study) -> Section:
    budgets = study.statistics.budgets
    rows = [(*b.setting, b.smallest, b.saturated, " ".join(map(str, b.values)), b.why_empty) for b in budgets]
    table = Table("budgets", [*SETTING, "smallest_labels", "n0", "budgets", "why_empty"], rows, latex=True)
    values = {"data": data_rows(study.results), "budgets": budgets}
    return Section("settings", "Data and settings", WORDS, values, tables=[table])


def data_rows(results: Results) -> list[dict[str, Any]]:
    """The rows of the table of data sets."""
    rows = []
    for name in sorted({setting.data for setting in results.settings}):
        here = [setting for setting in results.settings if setting.data == name]
        said = results.completeness.get(name, "")
        used, _, whole = said.partition(" of ")
        models = ", ".join(sorted({setting.model for setting in here}))
        sizes = ", ".join(f"{size:,}" for size in sorted({setting.batch_size for setting in here}))
        row = {"name": name, "rows": said or "not said", "partial": bool(said) and used != whole}
        rows.append({**row, "models": models, "batch_sizes": sizes})
    return rows
