"""The paper's figures: the counterpart of each among ours, or what is missing and which grid makes it."""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain
from typing import NamedTuple

from badge.core.catalog import PAPER_STRATEGIES
from badge.report.drawings import slug
from badge.report.section import Section, Study, Table
from badge.stats import Results, Setting

WORDS = """
<p>All of them come from <code>badge grid grids/paper.toml grids/paper-ablation.toml --out runs/</code> and <code>badge report runs/</code>.</p>
<details><summary>{{ summary }}</summary>
<div class="scroll"><table>
<tr><th class="number">paper</th><th>what</th><th>here</th><th>state</th></tr>
{% for row in index %}
<tr><td class="number">{{ row.number }}</td><td>{{ row.what }}</td>
<td>{% for name in row.names[:4] %}<a href="#{{ name }}">{{ name }}</a>{{ ", " if not loop.last }}{% endfor %}{{ ", … (%d)"|format(row.names|length) if row.names|length > 4 }}</td>
<td>{{ row.state }}</td></tr>
{% endfor %}
</table></div></details>
"""  # noqa: E501

MAIN, ABLATION = "grids/paper.toml", "grids/paper-ablation.toml"
SIZES = (100, 1000, 10000)
#: The data sets in the order of the paper's appendix, with the networks that each is run with.
_DATA = {
    "letter": ("OpenML #6", ("mlp",)),
    "pokerhand": ("OpenML #155", ("mlp",)),
    "randomrbf": ("OpenML #156", ("mlp",)),
    "kropt": ("OpenML #184", ("mlp",)),
    "svhn": ("SVHN", ("mlp", "resnet18", "vgg11")),
    "mnist": ("MNIST", ("mlp",)),
    "cifar10": ("CIFAR10", ("mlp", "resnet18", "vgg11")),
}
#: The two settings in which the paper looks into batches (appendix F).
_BATCHES = (Setting("letter", "mlp", 100), Setting("svhn", "resnet18", 1000))


class Figure(NamedTuple):
    """A figure of the paper, and the runs that it needs: every strategy in every setting.

    In the index `names` holds those of ours that were drawn, and `state` says what is missing.
    """

    number: int
    what: str
    names: tuple[str, ...]
    settings: tuple[Setting, ...]
    strategies: tuple[str, ...] = PAPER_STRATEGIES
    state: str = ""


def section(study: Study) -> Section:
    index = counterparts(study.results, study.drawn)
    rows = [(row.number, row.what, " ".join(row.names), row.state) for row in index]
    table = Table("paper_figures", ["paper_figure", "what", "figures", "state"], rows)
    states = Counter(row.state.split(",")[0].split(":")[0] for row in index)
    counts = ", ".join(f"{states[state]} {state}" for state in ("complete", "in part", "missing") if states[state])
    values = {"index": index, "summary": f"{len(index)} figures: {counts}"}
    return Section("paper", "The paper's figures and ours", WORDS, values, tables=[table])


def figures_of_the_paper() -> Iterator[Figure]:
    """All 31, in their order."""
    of_data = {d: tuple(Setting(d, m, size) for m in models for size in SIZES) for d, (_, models) in _DATA.items()}
    everything = tuple(chain(*of_data.values()))
    both = tuple(s for s in everything if s.model != "vgg11" and s.batch_size in SIZES[:2])
    told = "k-means++ and k-DPP: accuracy and seconds"
    yield _of_samplers(1, f"{told} (the paper does not name the settings)", both)
    batches = tuple(slug(what, *setting) for what in ("log_det", "mean_norm") for setting in _BATCHES)
    three = ("badge", "kdpp", "kcenter-grad")
    yield Figure(2, "log-determinant and norm of the batches", batches, _BATCHES, three)
    curves = tuple(slug("curves", *setting) for setting in everything)
    yield Figure(3, "learning curves, a choice; its first is svhn · resnet18 · B = 100", curves, everything)
    yield Figure(4, "penalty matrix over all settings", ("penalty-all",), everything)
    yield Figure(5, "CDF of normalised errors over all settings", ("cdf-all",), everything)
    for first, kind, ending in ((6, "full", ()), (13, "zoomed", ("zoomed",))):
        for number, (data, settings) in enumerate(of_data.items(), start=first):
            names = tuple(slug("curves", *setting, *ending) for setting in settings)
            yield Figure(number, f"learning curves of {_DATA[data][0]}, {kind}", names, settings)
    for number, kind, what in ((20, "penalty", "penalty matrices"), (22, "cdf", "CDFs of normalised errors")):
        by_size = tuple(slug(kind, "batch size", size) for size in SIZES)
        by_model = tuple(slug(kind, "model", model) for model in ("mlp", "resnet18", "vgg11"))
        yield Figure(number, f"{what} by batch size", by_size, everything)
        yield Figure(number + 1, f"{what} by network", by_model, everything)
    yield Figure(24, "log-determinant and norm of the batches, with conf", batches, _BATCHES, (*three, "conf"))
    for number, data in enumerate(_DATA, start=25):
        yield _of_samplers(number, f"{told}, {_DATA[data][0]}", tuple(s for s in both if s.data == data))


def _of_samplers(number: int, what: str, settings: tuple[Setting, ...]) -> Figure:
    names = tuple(slug(*parts, *s) for s in settings for parts in (("samplers", "curves"), ("seconds",)))
    return Figure(number, what, names, settings, ("badge", "kdpp"))


def counterparts(results: Results, drawn: Collection[str]) -> list[Figure]:
    """The index: for every figure of the paper its counterparts among `drawn`, and what is missing."""
    rows = []
    for figure in figures_of_the_paper():
        runs = [[(setting, name) in results.by_strategy for name in figure.strategies] for setting in figure.settings]
        ours = tuple(name for name in figure.names if name in drawn)
        grid = MAIN if figure.strategies == PAPER_STRATEGIES else ABLATION
        if all(map(all, runs)) and ours:
            state = "complete"
        elif not ours or not any(map(any, runs)):
            ours, state = (), f"missing: {grid} makes it"
        else:
            count = f"{sum(map(all, runs))} of {len(runs)} settings have all strategies"
            state = f"in part, {count}; {grid} makes the rest"
        rows.append(figure._replace(names=ours, state=state))
    return rows
