"""Labels saved: what each strategy needs for the accuracy that rand ends with."""

from __future__ import annotations

import math

from badge.report.drawings import Dots
from badge.report.section import Section, Study
from badge.report.tables import SETTING, Table
from badge.stats import LabelsSaved, Saving, Setting

__all__ = ["interval", "saved_dots", "section"]

WORDS = """
{% macro ratio(entry) %}{{ "%.2f"|format(entry.ratio) if entry.ratio < 1e9 else "not reached" }}{% endmacro %}
<p>How many labels a strategy needs for the accuracy that rand ends with, divided by what rand needs: 0.6 means 60 % of the
labels. Intervals are 95 %, from a bootstrap over the repeats, paired by seed.</p>
{% if figures %}
{{ figures }}
<div class="scroll"><table>
<tr><th>strategy</th><th class="number">median ratio</th><th>95 % interval</th><th class="number">settings</th></tr>
{% for entry in medians %}
<tr><td>{{ entry.strategy }}</td><td class="number">{{ ratio(entry) }}</td>
<td>{{ interval(entry) }}</td><td class="number">{{ entry.repeats }}</td></tr>
{% endfor %}
</table></div>
<details><summary>By setting</summary>
<div class="scroll"><table>
<tr><th>setting</th>{% for entry in medians %}<th class="number">{{ entry.strategy }}</th>{% endfor %}</tr>
{% for setting, row in by_setting.items() %}
<tr><td>{{ setting }}</td>
{% for entry in medians %}
{% set found = row.get(entry.strategy) %}
<td class="number">{% if found is none %}–{% else %}{{ ratio(found) }}<br>
<span class="soft">{{ interval(found) }}</span>{% endif %}</td>
{% endfor %}
</tr>
{% endfor %}
</table></div></details>
{% else %}
<p>There is nothing to compare with rand. The <a href="#notes">notes</a> say why.</p>
{% endif %}
"""
HEADER = ("repeats", "rand_final_accuracy", "labels", "rand_labels", "ratio", "ratio_low", "ratio_high")


def section(study: Study) -> Section:
    saved = study.statistics.saved
    by_setting: dict[Setting, dict[str, Saving]] = {}
    for entry in saved.savings:
        assert entry.setting is not None
        by_setting.setdefault(entry.setting, {})[entry.strategy] = entry
    rows = [  # one row per setting and strategy, then the medians over all settings (`repeats`: the number of settings)
        (*(entry.setting or ("median", "", "")), *entry[1:]) for entry in (*saved.savings, *saved.medians)
    ]
    return Section(
        "saved",
        "Labels saved",
        WORDS,
        {"medians": saved.medians, "by_setting": by_setting, "interval": interval},
        [[saved_dots(saved)]] if saved.medians else [],
        [Table("labels_saved", [*SETTING, "strategy", *HEADER], rows, latex=True)],
    )


def interval(entry: Saving) -> str:
    """The bootstrap interval in words: "0.61 to 0.70", "above 0.9", "unknown with one repeat"."""
    if math.isnan(entry.low):
        return "unknown with one repeat"
    if math.isinf(entry.low):
        return "never reached"
    return f"above {entry.low:.2f}" if math.isinf(entry.high) else f"{entry.low:.2f} to {entry.high:.2f}"


def saved_dots(saved: LabelsSaved) -> Dots:
    """Ratios of labels by strategy; unreached ones are inf."""
    strategies = tuple(entry.strategy for entry in saved.medians)
    ratios = tuple(tuple(s.ratio for s in saved.savings if s.strategy == name) for name in strategies)
    medians = tuple((entry.ratio, entry.low, entry.high) for entry in saved.medians)
    title = "Labels for rand's final accuracy"
    return Dots("labels-saved", title, "labels needed ÷ labels that rand needs", strategies, ratios, medians)
