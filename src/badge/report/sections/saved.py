"""Labels saved: what each strategy needs for the accuracy that rand ends with."""

import math

from badge.report.drawings import Dots
from badge.report.section import SETTING, Section, Study, Table
from badge.stats import LabelsSaved, Saving, Setting

WORDS = """
{% macro ratio(entry) %}{{ "%.2f"|format(entry.ratio) if entry.ratio < 1e9 else "not reached" }}{% endmacro %}
<p>How many labels a strategy needs for the accuracy that rand ends with, divided by what rand needs: 0.6 means 60 % of the
labels. Intervals are 95 %, from three repeats on: for a setting Student's t on the logarithm, over repeats paired by seed
{%- if by_setting|length > 1 %}; for the median a bootstrap over the data sets{% endif %}.</p>
{{ figures }}
{% if medians %}
<div class="scroll"><table>
<tr><th>strategy</th><th class="number">{{ "median " if by_setting|length > 1 }}ratio</th><th>95 % interval</th>
<th class="number">{{ "settings" if by_setting|length > 1 else "repeats" }}</th></tr>
{% for entry in medians %}
<tr><td>{{ entry.strategy }}</td><td class="number">{{ ratio(entry) }}</td>
<td>{{ interval(entry) }}</td><td class="number">{{ entry.repeats }}</td></tr>
{% endfor %}
</table></div>
{% else %}
<p>No setting has all strategies: there is no median to compare them by.</p>
{% endif %}
{% if by_setting|length > 1 %}
<details{{ "" if medians else " open" }}><summary>By setting</summary>
<div class="scroll"><table>
<tr><th>setting</th>{% for name in names %}<th class="number">{{ name }}</th>{% endfor %}</tr>
{% for setting, row in by_setting.items() %}
<tr><td>{{ setting }}</td>
{% for name in names %}
{% set found = row.get(name) %}
<td class="number">{% if found is none %}–{% else %}{{ ratio(found) }}<br>
<span class="soft">{{ interval(found) }}</span>{% endif %}</td>
{% endfor %}
</tr>
{% endfor %}
</table></div></details>
{% endif %}
"""
HEADER = ("repeats", "rand_final_accuracy", "labels", "rand_labels", "ratio", "ratio_low", "ratio_high")


def section(study: Study) -> Section:
    saved = study.statistics.saved
    by_setting: dict[Setting | None, dict[str, Saving]] = {}
    for entry in saved.savings:
        by_setting.setdefault(entry.setting, {})[entry.strategy] = entry
    names = list(dict.fromkeys(entry.strategy for entry in saved.savings))
    rows = [  # one row per setting and strategy, then the medians over all settings (`repeats`: the number of settings)
        (*(entry.setting or ("median", "", "")), *entry[1:]) for entry in (*saved.savings, *saved.medians)
    ]
    values = {"medians": typical(saved), "by_setting": by_setting, "interval": interval, "names": names}
    figures = [[saved_dots(saved)]] if saved.medians else []
    tables = [Table("labels_saved", [*SETTING, "strategy", *HEADER], rows, latex=True)]
    return Section("saved", "Labels saved", WORDS, values, figures, tables, shown=bool(saved.savings))


def typical(saved: LabelsSaved) -> tuple[Saving, ...]:
    """One entry per strategy: the medians over the settings, or the entries of the only setting, which have an interval."""
    return saved.medians if len({entry.setting for entry in saved.savings}) > 1 else saved.savings


def interval(entry: Saving) -> str:
    """The interval in words: "0.61 to 0.70", "above 0.90", "no interval from 2 repeats"."""
    if math.isnan(entry.low):
        what = "setting" if entry.setting is None else "repeat"
        return f"no interval from {entry.repeats} {what}{'s' * (entry.repeats != 1)}"
    if math.isinf(entry.low):
        return "never reached"
    return f"above {entry.low:.2f}" if math.isinf(entry.high) else f"{entry.low:.2f} to {entry.high:.2f}"


def saved_dots(saved: LabelsSaved) -> Dots:
    """Ratios of labels by strategy; unreached ones are inf."""
    strategies = tuple(entry.strategy for entry in saved.medians)
    ratios = tuple(tuple(s.ratio for s in saved.savings if s.strategy == name) for name in strategies)
    medians = tuple((entry.ratio, entry.low, entry.high) for entry in typical(saved))
    title = "Labels for rand's final accuracy"
    return Dots("labels-saved", title, "labels needed ÷ labels that rand needs", strategies, ratios, medians)
