"""Batch diversity: log-determinant and mean norm of the batches that each strategy chose."""

from badge.core.catalog import names as names_of
from badge.report.drawings import Lines, mean_lines, slug
from badge.report.section import SETTING, Section, Study, Table, by_strategy
from badge.stats import batch_diversity

WORDS = """
<p>Log-determinant of the Gram matrix of the batch's gradient embeddings, and their mean norm, by the number of labels of the
model that chose the batch. A gap means −∞: the batch of at least one repeat was linearly dependent.</p>
{{ figures }}
"""
#: The paper's ablations: not compared in its matrices, but shown in its figures of batch diversity.
ABLATIONS = names_of(lambda row: row.paper == "ablation")
LABELS = {"log_det": "log det of the batch's Gram matrix", "mean_norm": "mean gradient norm in the batch"}
HEADER = ("labels", "repeats", "log_det", "log_det_standard_error", "mean_norm", "mean_norm_standard_error")


def section(study: Study) -> Section:
    results, names = study.results, study.statistics.strategies
    names = (*names, *(name for name in ABLATIONS if name in results.strategies and name not in names))
    groups = []
    for setting in results.settings:
        found = {name: batch_diversity(results, setting, name) for name in names}
        pair = []
        for what, label in LABELS.items():
            lines = mean_lines({name: getattr(diversity, what) for name, diversity in found.items()})
            pair += [Lines(slug(what, *setting), str(setting), "number of labels", label, lines)] if lines else []
        groups.append(pair)
    table = Table("diversity", [*SETTING, "strategy", *HEADER], by_strategy(results, batch_diversity))
    return Section("diversity", "Batch diversity", WORDS, {}, groups, [table], shown=any(groups))
