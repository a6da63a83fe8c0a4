"""From the table to docs/results.md, its figures and the README's part: the same to the last digit, without torch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from badge import stats
from badge.core.catalog import PAPER_STRATEGIES, REFERENCE
from badge.errors import DataError
from badge.report import Statistics, evaluate
from badge.report.drawings import Heat, Lines, accuracy_lines
from badge.report.figures import draw
from badge.report.saving import save
from badge.report.sections.saved import interval, saved_dots
from badge.stats import Results, Saving, Setting
from results import ABOUT, ABOUT_FROZEN, ABOUT_TIMES, FROZEN, TABLE, TIMES, VARIANTS
from results.budgets import SHARES, labels_needed
from results.claims import claims
from results.claims_of_samplers import by_seed
from results.frozen import table, tables
from results.panels import headline, panels
from results.variants import BATCH, SAMPLERS, Variant, read_variants
from results.verdicts import Claim
from results.verdicts import __doc__ as rules

__all__ = ["Timed", "evaluated", "page_text", "pictured", "readme_part", "timings", "write_page"]

#: The settings in the picture. One without runs of all strategies is replaced by the next with the most runs.
SHOWN = (
    Setting("mnist", "mlp", 100),
    Setting("letter", "mlp", 1000),
    Setting("svhn", "resnet18", 1000),
    Setting("banking77", "mlp", 100),
)
#: The setting of the README's picture, in words: one that is near the median of what badge saves.
HEADLINE = Setting("svhn", "mlp", 100)
HEADLINE_WORDS = "Digits on houses (svhn), a small network, 100 labels a round"
NOTHING = "No setting has two seeds of all seven strategies yet: nothing to compare."
#: What the table of variants says about the claims.
WHY = (
    "- **Furthest-first.** On gradients it has the most diverse batch with the longest gradients on every model:",
    "  a gradient that is far from all others is a long one. On penultimate embeddings, which `coreset` uses, it has by far",
    "  the smallest determinant and norm. So the captions of figures 2 and 24 fit furthest-first on penultimate embeddings.",
    "  They do not fit furthest-first on gradients, which they name. A comment in the paper's TeX source says gradients too,",
    "  so we cannot tell why the figure differs. Our furthest-first picks the same examples as a plain greedy loop",
    "  (`tests/samplers/test_kcenter.py`). Furthest-first on gradients also has the longest gradients of all, so conf does",
    "  not.",
    "- **The k-DPP.** With few labels its batches are more diverse than those of k-means++. Our curves end there, at 1,500",
    "  labels. With 5,000 labels and more on mnist the paper's pattern appears: smaller determinants and norms. On letter",
    "  the two become level. With ten times the steps the pattern disappears. So its cause is not the k-DPP: in a pool with",
    "  few informative points the chain has not mixed after ⌊5 k ln k⌋ steps from a uniform set.",
    "- **conf at −∞.** 1,855 of letter's 18,000 training rows equal another row. The model has the same outputs for equal",
    "  rows, so conf picks them together, and their Gram matrix is singular. In a run to 700 labels the five batches at −∞",
    "  held such copies. The sixth batch held none.",
)
#: What the cells on frozen encoders are.
FROZEN_SETUP = (
    "A pretrained encoder is frozen: it stays as it is, and only a linear head is trained on its embeddings. The encoders",
    "are MiniLM (texts: trec, banking77) and EfficientNet-Lite2 (images: 10,000 of cifar10 and of svhn). Two sets have no",
    "encoder: letter's 16 columns and mnist's pixels are used as they are. A run has twenty batches, and a batch has as",
    "many examples as there are classes. *Low* budgets are the three batches after the first, *middle* budgets the next",
    "seven, *high* budgets the last nine. In the `rare` sets the rarest class has one example for every 100 of the most",
    "frequent class. A run is compared with the run of `rand` that has the same first batch, data set and seed. With fewer",
    "than three seeds no interval is shown. The weights of the image encoder come without a stated licence. badge ships",
    "neither encoder. [Which strategy?](which-strategy.md) draws conclusions.",
)
FROZEN_SECTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "budgets": ("Accuracy above rand by budget", ()),
    "encoders": ("The same on the sets with an encoder", ()),
    "data": (
        "By data set",
        (
            "A cell has the points above `rand`: the mean over seeds ± the half-width of a paired 95 % t interval. The best",
            "of a column is in bold.",
        ),
    ),
    "saved": (
        "Share of the labels that are needed",
        (
            "How many labels a strategy needs for `rand`'s final accuracy, as a share of the labels that `rand` needs. In",
            "the median, *not reached* counts as more than any number.",
        ),
    ),
    "cold": (
        "The first batch",
        (
            "The column `rand` has the accuracy after a uniform first batch. The other columns have the points that another",
            "first batch adds. The number of seeds is in brackets.",
        ),
    ),
    "firsts": (
        "What the first batch is worth later",
        (
            "`uherding` picks all batches after the first. A cell has the points above `uherding` after a uniform first",
            "batch. The number of seeds is in brackets.",
        ),
    ),
    "rare": ("Rare classes", ("Cells have points above `rand`; the best recall is first.",)),
    "batches": (
        "Batch size",
        (
            "These runs go from 100 to 1,100 labels in batches of B. A cell has the points above `rand`, averaged over the",
            "whole curve; – means that the strategy was not run.",
        ),
    ),
    "rule": ("A rule, fixed in advance and tested on other sets", ()),
    "published": (
        "Published numbers beside ours",
        ("Points of accuracy above BADGE. Ours are means over the sets with an encoder.",),
    ),
    "seconds": (
        "Seconds of a selection",
        (
            "Medians. Other work ran on the two cores at the same time, so only orders of magnitude count. `uherding`,",
            "`maxherding` and `probcover` are missing: the grid keeps products of pairs of rows for them, so their times",
            "would mislead. [The benchmarks](benchmarks.md) compare them.",
        ),
    ),
}
PART = re.compile(r"(<!-- results -->\n).*?(<!-- /results -->\n)", re.DOTALL)
#: A table of frozen encoders in a page that is written by hand.
FROZEN_PART = re.compile(r"(<!-- frozen: (\w+) -->\n)(.*?)(<!-- /frozen -->\n)", re.DOTALL)


def write_page(to: Path, table: Path = TABLE, about: Path = ABOUT) -> None:
    """Write docs/results.md and docs/images/results-*, and the README's part if there is a README."""
    if not table.exists():
        raise DataError(f"there is no {table}: python -m results collect runs/ makes it from journals")
    results, said = stats.load(table), json.loads(about.read_text(encoding="utf-8"))
    times = timings(table.with_name(TIMES.name), about.with_name(ABOUT_TIMES.name))
    variants = read_variants(table.with_name(VARIANTS.name))
    statistics = evaluated(results)
    images = to / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    curves = [_curves(results, setting) for setting in pictured(results)]
    save(panels(curves), images / "results-curves.png")
    typical = _curves(results, HEADLINE)._replace(title=HEADLINE_WORDS) if HEADLINE in results.settings else curves[0]
    if {"badge", REFERENCE} <= {line.strategy for line in typical.lines}:
        save(headline(typical), images / "results-headline.png")
    if statistics is not None:
        overall = statistics.penalty.overall
        save(draw(Heat("penalty-all", f"All settings ({overall.settings})", overall)), images / "results-penalty.png")
        save(draw(saved_dots(statistics.saved)), images / "results-saved.png")
    frozen = frozen_tables(table.with_name(FROZEN.name), about.with_name(ABOUT_FROZEN.name))
    page = page_text(results, statistics, said, times, variants, frozen)
    (to / "docs" / "results.md").write_text(page, encoding="utf-8")
    part = readme_part(results, statistics, said)
    for path in (to / "README.md", to / "docs" / "which-strategy.md"):
        if path.exists():
            text = path.read_text(encoding="utf-8")
            text = FROZEN_PART.sub(lambda found: found[1] + "\n".join(["", *frozen[found[2]], "", ""]) + found[4], text)
            path.write_text(PART.sub(lambda found: found[1] + part + found[2], text), encoding="utf-8")


def frozen_tables(runs: Path = FROZEN, about: Path = ABOUT_FROZEN) -> dict[str, list[str]]:
    """The tables of strategies on frozen encoders, by name; none if there are no runs."""
    if not runs.exists():
        return {}
    results, said = stats.load(runs), json.loads(about.read_text(encoding="utf-8"))
    done, planned = _cells(results, said)
    where = "[`grids/frozen.toml`](../grids/frozen.toml)"
    return {
        **tables(results),
        "cells": [
            f"{done:,} of {planned:,} planned runs ({where}) are done. A run is one data set,",
            "one first batch, one strategy and one seed. [What was run](results.md#what-was-run) lists the commits.",
        ],
        "made": [
            f"The runs on frozen encoders were made with these commits; version of the picks: {', '.join(said['picks'])}.",
            "",
            *table(["setting", "commits"], [[setting, ", ".join(of)] for setting, of in said["by_setting"].items()]),
        ],
    }


class Timed(NamedTuple):
    """Runs whose seconds of selection count, and what is known about them."""

    results: Results
    about: dict[str, Any]


def timings(table: Path = TIMES, about: Path = ABOUT_TIMES) -> Timed | None:
    """The runs that had the machine to themselves, if there are any."""
    return Timed(stats.load(table), json.loads(about.read_text(encoding="utf-8"))) if table.exists() else None


def evaluated(results: Results) -> Statistics | None:
    """The statistics of the settings and seeds that all seven strategies have; None if no setting has two seeds of all."""
    paired = results.paired(PAPER_STRATEGIES)
    statistics = None if paired is None else evaluate(paired, PAPER_STRATEGIES)
    return statistics if statistics is not None and statistics.penalty.overall.settings else None


def pictured(results: Results) -> list[Setting]:
    """Four settings: those of `SHOWN` that have runs of all strategies, then those with the most runs."""

    def count(setting: Setting) -> int:
        return sum(len(results.by_strategy.get((setting, name), ())) for name in PAPER_STRATEGIES)

    whole = [s for s in SHOWN if all((s, name) in results.by_strategy for name in PAPER_STRATEGIES)]
    others = sorted((s for s in results.settings if s not in whole), key=lambda s: (-count(s), s))
    return [*whole, *others][:4]


def _curves(results: Results, setting: Setting) -> Lines:
    """The curves of a setting over the seeds that all its strategies share: else they would be of different seeds."""
    names = [name for name in PAPER_STRATEGIES if (setting, name) in results.by_strategy]
    return accuracy_lines(results.paired(names, least=1) or results, setting, names)


# -- the page ----------------------------------------------------------------------------------------------------------


def page_text(
    results: Results,
    statistics: Statistics | None,
    about: dict[str, Any],
    times: Timed | None = None,
    variants: Sequence[Variant] = (),
    frozen: dict[str, list[str]] | None = None,
) -> str:
    """docs/results.md."""
    found = claims(results, times and times.results)
    return "\n".join(
        [
            "# Results",
            "",
            "<!-- written by `make results` from results/*.csv.gz: change results/page.py, not this page -->",
            "",
            *_summary(results, statistics, found, bool(frozen)),
            "",
            *_frozen(frozen or {}),
            "## The paper's claims in our hands",
            "",
            *_opening(results, about, found),
            "",
            "## Learning curves",
            "",
            "![Learning curves of four settings](images/results-curves.png)",
            "",
            "Lines are means over the seeds that all strategies of a setting share. Bands are ± one standard error.",
            "",
            "## Who beats whom",
            "",
            *_matrix(statistics),
            "",
            "## Labels saved",
            "",
            *_saved(statistics),
            "",
            "## The paper's claims",
            "",
            *_claims(found),
            "",
            "## Why the claims about batches do not all hold",
            "",
            *_why(variants),
            "",
            "## What selecting takes",
            "",
            *_times(times),
            "",
            "## How a verdict comes about",
            "",
            *(rules or "").strip().split("\n")[2:],
            "",
            "## What was run",
            "",
            *_coverage(results, about),
            "",
            f"They were made with {_commits(about)}.",
            *_by_setting(about),
            *(["", *frozen["made"]] if frozen else []),
            "",
            "## What to keep in mind",
            "",
            *_notes(results),
            "",
            "## Going on",
            "",
            *_going_on(about),
            "",
        ]
    )


def _summary(results: Results, statistics: Statistics | None, found: Sequence[Claim], frozen: bool) -> list[str]:
    """What a reader who has a minute takes away."""
    lines = [
        "How many labels active learning saved in our own runs, for every strategy. There are two cases:",
        "",
    ]
    if frozen:
        lines += [
            "- **A frozen pretrained network and few labels** (most people label this way today):",
            "  [accuracy above random labels](#accuracy-above-rand-by-budget). [Which strategy?](which-strategy.md) draws",
            "  conclusions.",
        ]
    lines += ["- **A network trained as a whole, as in the paper behind badge**: [labels saved](#labels-saved),"]
    holds = sum(claim.verdict == "holds" for claim in found)
    lines += [
        f"  [who beats whom](#who-beats-whom), and [the paper's {len(found)} claims](#the-papers-claims);",
        f"  {holds} of them hold here.",
    ]
    return [
        *lines,
        "",
        "Everything is compared with `rand`, labels at random. [Every strategy](strategies.md) describes the others.",
    ]


def _frozen(found: dict[str, list[str]]) -> list[str]:
    """The half about frozen encoders."""
    if not found:
        return []
    lines = ["## Frozen encoders, small budgets", "", *found["cells"], "", *FROZEN_SETUP]
    for name, (title, words) in FROZEN_SECTIONS.items():
        lines += ["", f"### {title}", "", *([*words, ""] if words else []), *found[name]]
    return [*lines, ""]


def _cells(results: Results, about: dict[str, Any]) -> tuple[int, int]:
    return len(results.runs), sum(sum(entry["seeds"].values()) for entry in about["planned"])


def _opening(results: Results, about: dict[str, Any], found: Sequence[Claim]) -> list[str]:
    done, planned = _cells(results, about)
    counts = {
        verdict: sum(claim.verdict == verdict for claim in found)
        for verdict in ("holds", "does not hold", "cannot be told")
    }
    state = (
        "All cells are done."
        if done == planned
        else "The other cells are still to run; this page is made again when they are done."
    )
    return [
        f"**{done} of {planned} planned cells** ({', '.join(f'[`{grid}`](../{grid})' for grid in about['grids'])}), in "
        f"{len(results.settings)} of {len(about['planned'])} settings. {state}",
        f"Of {len(found)} claims {counts['holds']} hold, {counts['does not hold']} do not, and "
        f"{counts['cannot be told']} cannot be told from these runs.",
        "",
        "The numbers and figures of this part come from [`results/runs.csv.gz`](../results/runs.csv.gz) by",
        "`make results`. Two tables come from other runs: the [batches of samplers]"
        "(#why-the-claims-about-batches-do-not-all-hold) and the [seconds of a selection](#what-selecting-takes).",
        "A *cell* is one run: a data set, a network, a batch size (B), a strategy and a seed. A *setting* is a data set, a",
        "network and a batch size.",
    ]


def _by_setting(about: dict[str, Any]) -> list[str]:
    """Which settings are of which commits, as far as it was recorded."""
    known = about.get("by_setting", {})
    parts = [
        f"{setting} was made with {', '.join(f'`{commit}`' for commit in commits)}"
        for setting, commits in known.items()
    ]
    return [f"{'; '.join(parts)}. For older cells the commit was not recorded one by one."] if parts else []


def _commits(about: dict[str, Any]) -> str:
    return ", ".join(f"`{commit}`" for commit in about["commits"])


def _matrix(statistics: Statistics | None) -> list[str]:
    if statistics is None:
        return [NOTHING]
    overall = statistics.penalty.overall
    lines = [
        f"![Penalty matrix over {overall.settings} settings](images/results-penalty.png)",
        "",
        "A cell says in how many settings the row's strategy beats the column's, by paired t-tests at the label budgets of",
        "the paper. A strategy that wins at half of a setting's budgets gets 0.5 for it. The last row has the average of",
        "each column; lower is better. The next tables have these averages by batch size and by network.",
    ]
    for title, by in (("batch size", "batch_size"), ("network", "model")):
        groups = {**stats.group_by(statistics.penalty, by), "all": overall}
        rows = [
            [
                f"{group:,}" if isinstance(group, int) else group,
                str(matrix.settings),
                *(f"{v:.2f}" for v in matrix.averages.tolist()),
            ]
            for group, matrix in groups.items()
        ]
        lines += ["", *table([title, "settings", *overall.strategies], rows)]
    return lines


def _saved(statistics: Statistics | None) -> list[str]:
    if statistics is None:
        return [NOTHING]
    saved = statistics.saved
    lines = [
        "![Labels needed for rand's final accuracy, as a share of rand's](images/results-saved.png)",
        "",
        "A cell has the labels that a strategy needs for `rand`'s final accuracy, divided by the labels that `rand` needs.",
        "In brackets is the 95 % interval: Student's t on the logarithms, over five paired seeds (three with ResNet, VGG and",
        "B = 10,000). The interval of the median is a bootstrap over the data sets. `tests/stats/test_intervals.py`",
        "simulates the coverage.",
        "",
    ]
    names = [entry.strategy for entry in saved.medians]
    settings = sorted({entry.setting for entry in saved.savings if entry.setting is not None})
    of = {(entry.setting, entry.strategy): entry for entry in saved.savings}
    rows = [[str(s), *(_ratio(of.get((s, name))) for name in names)] for s in settings]
    rows.append(["median", *(_ratio(entry) for entry in saved.medians)])
    return lines + table(["setting", *names], rows)


def _ratio(entry: Saving | None) -> str:
    if entry is None:
        return "–"
    if math.isinf(entry.ratio) and math.isinf(entry.low):
        return interval(entry)  # in no draw of the seeds either
    shown = f"{entry.ratio:.2f}" if math.isfinite(entry.ratio) else "not reached"
    return f"{shown} ({interval(entry)})" if not math.isnan(entry.low) else f"{shown} (one seed)"


def _claims(found: Sequence[Claim]) -> list[str]:
    rows = [
        [f"“{c.quote}”" if '"' not in c.quote else c.quote, c.where, f"*{c.test}.* {c.measured}", f"**{c.verdict}**"]
        for c in found
    ]
    return table(["the paper says", "where", "what is tested, and our number", "verdict"], rows)


def _why(variants: Sequence[Variant]) -> list[str]:
    """What the claims about batches of samplers rest on, measured on models with more labels than the curves have."""
    if not variants:
        return ["Not measured yet: `python -m results variants`."]
    by: dict[tuple[str, int, str], list[Variant]] = {}
    for row in variants:
        by.setdefault((row.data, row.labels, row.sampler), []).append(row)
    models = sorted({key[:2] for key in by})
    rows = []
    for model in models:
        cells = []
        for sampler in SAMPLERS:
            found = by.get((*model, sampler), [])
            cells.append(
                f"{_mean([v.log_det for v in found])} · {_mean([v.mean_norm for v in found])}" if found else "–"
            )
        rows.append([f"{model[0]}, {model[1]:,}", *cells])
    seeds = len({row.seed for row in variants})
    return [
        f"A row is one MLP, trained on uniformly drawn labels. Each sampler picks a batch of {BATCH} from it. A cell has the",
        f"log-determinant of the batch's Gram matrix and its mean gradient norm: mean ± standard error over {seeds} seeds",
        "([`results/variants.csv`](../results/variants.csv), by `python -m results variants`).",
        "",
        *table(["data, labels", *SAMPLERS], rows),
        "",
        *WHY,
    ]


def _mean(values: Sequence[float]) -> str:
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    digits = 0 if abs(fmean(values)) >= 100 else 1
    return f"{fmean(values):.{digits}f} ± {error:.{digits}f}"


def _times(times: Timed | None) -> list[str]:
    if times is None:
        return ["There are no runs by themselves yet: the runs of the big table shared the machine with other work."]
    rows, names = [], times.results.strategies
    for setting in times.results.settings:
        of = [by_seed(times.results, setting, name, "select_seconds") for name in names]
        rows.append([str(setting), *(f"{median(seconds.values()):.3g}" if seconds else "–" for seconds in of)])
    return [
        "Seconds to select a batch: the mean over the rounds of a run, then the median over the seeds. These runs",
        f"([`results/times.csv.gz`](../results/times.csv.gz), by [`grids/timing.toml`](../grids/timing.toml) with "
        f"{_commits(times.about)}) had the",
        "machine to themselves, with one worker of one thread. The runs of the big table shared the machine with other work,",
        "so their seconds are not used here.",
        "",
        *table(["setting", *names], rows),
    ]


def _coverage(results: Results, about: dict[str, Any]) -> list[str]:
    rows = []
    for entry in about["planned"]:
        setting = Setting(entry["data"], entry["model"], entry["batch_size"])
        there = [len(results.by_strategy.get((setting, name), ())) for name in entry["seeds"]]
        width = f", width {entry['width']}" if entry["width"] else ""
        used = results.completeness.get(setting.data, "")
        rows.append(
            [f"{setting}{width}", used, f"{entry['labels']:,}", f"{sum(there)} of {sum(entry['seeds'].values())}"]
        )
    return table(["setting", "rows of the data set", "labels at the end", "cells"], rows)


def _notes(results: Results) -> list[str]:
    wanted = (
        "data sets used in part",
        "rounds that ended at 99 % training accuracy or less",
        "settings without label budgets",
    )
    lines = [
        "- Two cores can do only a part of the paper's grid (`grids/paper.toml`). Curves end early, networks other than the",
        "  MLP are narrow, and batch size 10,000 was run on mnist only.",
        "- The paper names an 11-layer VGG; `run.py` in the authors' repository builds VGG-16. Ours is VGG-11.",
        "- Cells were made with several commits (above). A newer commit is no reason to make a cell again.",
        "- The paper has no texts (`trec`, `banking77`).",
    ]
    notes = evaluate(results, [name for name in PAPER_STRATEGIES if name in results.strategies]).notes
    for topic in wanted:
        found = [note.text for note in notes if note.topic == topic]
        if found:
            lines += [f"- {topic.capitalize()}: {'; '.join(found)}."]
    return lines


def _going_on(about: dict[str, Any]) -> list[str]:
    return [
        "The first command runs the cells that are not in the table, seed by seed. The second adds the finished cells to the",
        "table. The third makes this page, its figures and the README's part.",
        "",
        "```sh",
        f"badge grid {' '.join(about['grids'])} --out runs/ --skip results/runs.csv.gz",
        f"python -m results collect runs/ --grid {' '.join(about['grids'])}",
        "make results",
        "```",
    ]


def readme_part(results: Results, statistics: Statistics | None, about: dict[str, Any]) -> str:
    """The README's table of labels saved; before there is anything to compare, the demo's picture."""
    done, planned = _cells(results, about)
    state = f"all {planned} planned runs" if done == planned else f"{done} of {planned} planned runs"
    if statistics is None:
        return "\n".join(
            [
                "![Learning curves of seven strategies on digits](docs/images/demo.png)",
                "",
                f"Digits, three seeds (`make demo`). Our own runs of the paper's experiments have begun: {state}, too few to",
                "compare strategies. [Every claim of the paper, with our number and a verdict](docs/results.md), comes from",
                "a table in this repository by `make results`.",
                "",
            ]
        )
    paired = results.paired(PAPER_STRATEGIES)
    assert paired is not None  # there are statistics
    columns = [labels_needed(paired, PAPER_STRATEGIES, share) for share in SHARES.values()]
    rows = [
        [f"`{name}`", *("not reached" if math.isinf(column[name]) else f"{column[name]:.2f}" for column in columns)]
        for name in PAPER_STRATEGIES
    ]
    saved = next(entry for entry in statistics.saved.medians if entry.strategy == "badge")
    lines = [
        "How many labels each strategy needs to be as good as labels at random (`rand`): at 0.80, 80 picked labels do the",
        "work of 100 random ones. This is shown at three points of a run: when `rand` has used a quarter, half and all of",
        "its labels.",
        "",
        *table(["strategy", *(f"{name} of the budget" for name in SHARES)], rows),
        "",
        f"Medians over {statistics.penalty.overall.settings} settings of our own runs, each of a data set, a network and a",
        f'batch size ({state}). "Not reached" means that the strategy ended below the accuracy of random labels. At',
        f"the end the 95 % interval of `badge` is {interval(saved)}. [Results](docs/results.md) has learning curves, which",
        "strategy beats which, and every claim of the paper beside our number. `make results` makes it from a table in",
        "this repository.",
        "",
    ]
    return "\n".join(lines)
