"""k-means++ and the k-DPP on the same gradient embeddings: accuracy and seconds."""

from badge.report.drawings import Lines, accuracy_lines, mean_lines, slug
from badge.report.section import SETTING, Section, Study, Table, by_strategy
from badge.stats import round_times

WORDS = """
<p>The two samplers on the same gradient embeddings: <code>badge</code> draws by k-means++,
<code>kdpp</code> from a k-DPP.</p>
{{ figures }}
"""
SAMPLERS = ("badge", "kdpp")
SECONDS = ("select_seconds", "predict_seconds", "train_seconds")


def section(study: Study) -> Section:
    results = study.results
    both = [s for s in results.settings if all((s, name) in results.by_strategy for name in SAMPLERS)]
    groups = []
    for setting in both:
        curves = accuracy_lines(results, setting, SAMPLERS)
        lines = mean_lines({name: round_times(results, setting, name).select for name in SAMPLERS})
        axes = "number of labels", "selection (seconds)"
        seconds = Lines(slug("seconds", *setting), str(setting), *axes, lines, log_y=True)
        pair = curves._replace(name=slug("samplers", curves.name)), seconds
        groups.append([drawing for drawing in pair if drawing.lines])
    header = [*SETTING, "strategy", "labels", "repeats", *(n for s in SECONDS for n in (s, f"{s}_standard_error"))]
    table = Table("timing", header, by_strategy(results, round_times))
    return Section("samplers", "k-means++ and k-DPP", WORDS, {}, groups, [table], shown=any(groups))
