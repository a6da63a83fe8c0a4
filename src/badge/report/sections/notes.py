"""Notes: everything that was missing, skipped or left out."""

from badge.report.section import Section, Study, Table

WORDS = """
{% if topics %}
<p>Everything that was missing, skipped or left out.</p>
{% for topic, texts in topics.items() %}
{% if texts|length > 8 %}
<details><summary><strong>{{ topic|capitalize }}</strong> ({{ texts|length }})</summary><ul>
{% else %}
<h3>{{ topic|capitalize }}</h3><ul>
{% endif %}
{% for text in texts %}<li>{{ text }}</li>
{% endfor %}
</ul>{% if texts|length > 8 %}</details>{% endif %}

{% endfor %}
{% else %}
<p>Nothing was missing, skipped or left out.</p>
{% endif %}
"""


def section(study: Study) -> Section:
    notes = study.statistics.notes
    topics: dict[str, list[str]] = {}
    for note in notes:
        topics.setdefault(note.topic, []).append(note.text)
    return Section("notes", "Notes", WORDS, {"topics": topics}, tables=[Table("notes", ["topic", "note"], notes)])
