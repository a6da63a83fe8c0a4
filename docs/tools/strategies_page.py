"""docs/strategies.md, made from the catalog: picks, source, what is read, cost, and when to use it."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from badge.core.catalog import CATALOG, Spec
from badge.strategies.protocol import Strategy
from badge.strategies.registry import REGISTRY

__all__ = ["ABOUT", "OPTIONS", "options", "page"]


class About(NamedTuple):
    """What the catalog does not say."""

    when: str
    cost: str
    paper: str = ""
    differs: str = ""  # from other methods of this name or kind


SCORES = "N·C: one look at the probabilities"
POWER = (
    "Kirsch, Farquhar, Atighehchian, Jesson, Branchaud-Charron & Gal, [Stochastic Batch Acquisition: A Simple Baseline for "
    "Deep Active Learning](https://arxiv.org/abs/2106.12059), TMLR 2023"
)
PAPER = (
    "Ash, Zhang, Krishnamurthy, Langford & Agarwal, [Deep Batch Active Learning by Diverse, Uncertain Gradient Lower "
    "Bounds](https://arxiv.org/abs/1906.03671), ICLR 2020"
)
DEEP = "Wang & Shang, A New Active Labeling Method for Deep Learning, IJCNN 2014"
#: Where advice comes from.
RUNS = "in [our runs](which-strategy.md) on frozen encoders"
GREEDY = "greedy with lazy updates: up to N²·D once, memory N"

ABOUT = {
    "badge": About(
        "The default, for networks that are trained as a whole. Small and large batches, few and many labels, nothing to "
        "tune. On a frozen pretrained encoder `uherding` is better.",
        "at most k·N·(C + D), in practice a fraction of it",
        PAPER,
    ),
    "coreset": About(
        f"You want the pool covered evenly and do not trust the model's probabilities. Below `rand` {RUNS}.",
        "at most (labels + k)·N·D",
        "Sener & Savarese, [Active Learning for Convolutional Neural Networks: A Core-Set "
        "Approach](https://arxiv.org/abs/1708.00489), ICLR 2018",
    ),
    "conf": About(
        "Your data has very rare classes, and their recall matters most. Otherwise it is a simple baseline. Large batches "
        "are full of near-duplicates.",
        SCORES,
        DEEP,
    ),
    "marg": About(
        "Of `conf`, `marg` and `entropy` it is the best in the mean over our data sets. Batches of 500 hold near-duplicates: "
        "use `power-marg` for them.",
        SCORES,
        "Roth & Small, Margin-Based Active Learning for Structured Output Spaces, ECML 2006",
    ),
    "entropy": About(
        "Your data has very rare classes, and their recall matters most. Otherwise it is a simple baseline. With many "
        "classes it follows noise in the small probabilities.",
        SCORES,
        DEEP,
    ),
    "albl": About(
        "You compare with the paper. The bandit learns which of two strategies pays off.",
        "that of coreset and conf together",
        "Hsu & Lin, Active Learning by Learning, AAAI 2015",
    ),
    "rand": About("You need a baseline: savings are measured against it. It alone gives an unbiased sample.", "k"),
    "kdpp": About(
        "You compare with the paper. Its batches are diverse by their determinant, at many times the cost of `badge`.",
        "5·k·ln k steps of k² + k·(C + D) each",
        PAPER,
    ),
    "kcenter-grad": About(
        "You compare with the paper. It is greedy where `badge` draws.", "at most k·N·(C + D)", PAPER
    ),
    "kmeanspp": About(
        "The first batch, before any label. Its picks are spread over the pool, including the edges. On no set is it "
        f"significantly better than uniform picks {RUNS}: use `typiclust`.",
        "at most k·N·D, in practice a fraction of it",
        "Arthur & Vassilvitskii, k-means++: The Advantages of Careful Seeding, SODA 2007",
    ),
    "typiclust": About(
        "The first batch, before any label: typical examples, few outliers. Also later batches, if you have no "
        "probabilities.",
        "k-means, then N²·D / k for the neighbours",
        "Hacohen, Dekel & Weinshall, [Active Learning on a Budget: Opposite Strategies Suit High and Low "
        "Budgets](https://arxiv.org/abs/2202.02794), ICML 2022",
        "badge uses the paper's formula, a mean of distances. The authors' code averages squared distances "
        "(`squared=True`) and scales embeddings to length 1 first",
    ),
    "uherding": About(
        "You want one strategy for all batches. It covers the whole pool before any label, and the uncertain part later.",
        GREEDY,
        "Bae, Oliveira & Sutherland, [Uncertainty Herding: One Active Learning Method for All Label "
        "Budgets](https://arxiv.org/abs/2412.20644), ICLR 2025",
        "badge looks at all rows, the authors' code at 35,000 random rows at most. The authors also fit a temperature to "
        "held-out labels",
    ),
    "maxherding": About(
        "You have few labels, and embeddings alone. It covers the pool; how well an example covers another falls smoothly "
        f"with their distance. Second to `uherding` at low and middle budgets {RUNS}.",
        GREEDY,
        "Bae, Noh & Sutherland, [Generalized Coverage for More Robust Low-Budget Active "
        "Learning](https://arxiv.org/abs/2407.12212), ECCV 2024",
    ),
    "probcover": About(
        f"For comparisons. It covers most of the pool with k balls. Below `maxherding` at every budget {RUNS}.",
        GREEDY,
        "Yehuda, Dekel, Hacohen & Weinshall, [Active Learning Through a Covering Lens](https://arxiv.org/abs/2205.11320), "
        "NeurIPS 2022",
        "After every row is covered, badge draws the rest uniformly. The authors' code takes the first row again and again",
    ),
    "wkmeans": About(
        "You trust the margin and want no near-duplicates. Or your batches have 100 examples or more, and the pool is too "
        "large for `uherding`.",
        "k-means of 10·k examples into k clusters",
        "Zhdanov, [Diverse Mini-Batch Active Learning](https://arxiv.org/abs/1901.05954), 2019",
        "Cluster-Margin (Citovsky et al. 2021) clusters the whole pool once, without weights, and goes round-robin through "
        "the clusters of the smallest margins. badge clusters the candidates of each batch, weighted by 1 − margin, and "
        "takes the nearest to each centre",
    ),
    "bait": About(
        "You have few classes and narrow embeddings. It picks what the last layer would learn most from. It was run on two "
        "data sets: below `uherding` on letter, a little above it on trec.",
        "grows with (C·D)², and C·D may be 4,096 at most",
        "Ash, Goel, Krishnamurthy & Kakade, [Gone Fishing: Neural Active Learning with Fisher "
        "Embeddings](https://arxiv.org/abs/2106.09675), NeurIPS 2021",
        "badge fits λ to the scale of the embeddings. In the authors' code λ is 1, and 0.01 for CIFAR",
    ),
    "bait-binary": About(
        "As `bait`, with many classes. Ahead of `badge` at low and middle budgets on three of four sets with an "
        "encoder, below it on the fourth, and at high budgets on all sets together ([our runs](which-strategy.md)).",
        "N·D² at the start, then N·D for each pick",
        "Huseljic, Hahn, Herde, Rauch & Sick, [Fast Fishing: Approximating BAIT for Efficient and Scalable Deep Active Image "
        "Classification](https://arxiv.org/abs/2404.08981), ECML-PKDD 2024",
    ),
    "badge-origin": About(
        f"As `badge`, if the pool is full of easy examples and k is small. Ahead of `badge` at middle and high "
        f"budgets {RUNS}.",
        "at most k·N·(C + D), in practice a fraction of it",
    ),
    "power-marg": About(
        "You have probabilities and no embeddings. As `marg`, but every example has some chance: a batch has fewer "
        "near-duplicates.",
        SCORES,
        POWER,
    ),
    "power-entropy": About("As `entropy`, but every example has some chance.", SCORES, POWER),
    "power-norm": About("Long gradients are likely, but every example has some chance.", "N·(C + D)", POWER),
    "bald": About(
        "The model was trained with dropout (`badge.predict(model, pool, passes=20)`), or you have an ensemble (a list of "
        f"models). With dropout on the head alone it is below `rand` {RUNS}.",
        "`passes` passes over the pool, or one for each model, then N",
        "Gal, Islam & Ghahramani, [Deep Bayesian Active Learning with Image "
        "Data](https://arxiv.org/abs/1703.02910), ICML 2017",
    ),
    "power-bald": About("As `bald`, but every example has some chance.", "as `bald`", POWER),
    "auto": About(
        "You have a frozen encoder with a linear head, and up to about 50,000 examples. It is the best in the mean of "
        "[our runs](which-strategy.md).",
        "that of typiclust for the first batch, then that of uherding",
    ),
}

BIAS = {
    "bias": "whether the gradient of the output layer's bias counts too (`badge.select(..., bias=True)` or `--bias`)"
}
STRENGTH = {"strength": "the penalty λ, as a share of the embeddings' mean squared length"}
SHARPER = {"beta": "draws in proportion to score^β"}
#: What the options of each strategy mean. Names and defaults are read from the code.
OPTIONS = {
    "badge": BIAS,
    "albl": {
        "rounds": "the number of batches that you will ask for, which sets how fast the bandit moves",
        "p_min": "the least probability of an arm (`None`: by the paper's formula)",
        "delta": "δ of the paper's formula",
    },
    "kdpp": BIAS,
    "kcenter-grad": BIAS,
    "typiclust": {"squared": "whether distances are squared before they are averaged, as in the authors' code"},
    "probcover": {"delta": "the radius δ of the balls (`None`: by the paper's rule)"},
    "wkmeans": {"beta": "the β·k smallest margins are clustered (`math.inf`: the whole pool)"},
    "bait": STRENGTH,
    "bait-binary": STRENGTH,
    "badge-origin": BIAS,
    "power-marg": SHARPER,
    "power-entropy": SHARPER,
    "power-norm": SHARPER,
    "power-bald": SHARPER,
}

TOP = """\
# Every strategy

<!-- made by `python docs/tools/picks.py` from src/badge/core/catalog.py: change these, not this page -->

This page shows what each strategy picks from one pool, in three rounds. [Which strategy?](which-strategy.md) says
which one to take.

**The pictures.** Each dot is an example. Its colour is the true class; one class is rare. Rings mark what is picked
next: five examples (three for `kdpp`). Dark dots have labels. The shaded areas show what the model predicts. A cold
start picks the first five labels itself; for the other strategies they are drawn uniformly. `bald` and `power-bald`
compare ten models, each trained with random weights on the labels.

**The words.** A model gives each class a *probability*. It is unsure if the largest probability is small, if the two
largest are close (a small *margin*), or if all are alike (a large *entropy*). An *embedding* is the vector that the
model computes just before its last layer. Similar examples have similar embeddings. A *gradient embedding* says how
the last layer would change if the model's own guess were the label. It is long if the model is unsure. *k-means++*
draws examples that are far from those drawn before. *Furthest-first* takes the example that is furthest. A *k-DPP*
prefers sets that span a large volume. In the costs, N is the size of the pool, C the number of classes, D the width
of the embeddings and k the size of the batch.

[Options and ties](#options-and-ties) come after the strategies. `badge strategies` prints the short form of this page.

"""


END = """\

## Options and ties

In Python, set options with `functools.partial`, and pass the result as `strategy`. `albl` remembers earlier batches,
so make it with `badge.strategies.ALBL(rounds=20)`.

```python
from functools import partial

import numpy as np

import badge

rng = np.random.default_rng(0)
out = badge.Outputs.from_logits(rng.normal(size=(200, 3)), rng.normal(size=(200, 8)))
wider = partial(badge.strategies.get("wkmeans"), beta=20.0)
print(badge.select_from(out, k=5, strategy=wider))
```

The same seed gives the same picks, also if rows are equal. Which of several equal rows is picked:

- `coreset`, `kcenter-grad`, `maxherding`, `uherding`, `probcover`: the row with the lowest position. In a learner
  with your own ids, this is the first id in sorted order.
- `bait`, `bait-binary`: the row with the lowest position is added first and removed first. So the later of two copies
  may stay.
- `wkmeans`: the row with the smaller margin; then the seed decides. With `beta=math.inf` it is the row with the
  lowest position.
- `typiclust`: the row of a cluster with the lowest position. Rounding can still separate equally typical rows, for
  example the last two of a cluster.
- `conf`, `marg`, `entropy`, `bald`: the seed decides. The other strategies draw at random anyway.
"""


def options(name: str) -> dict[str, Any]:
    """The options of a strategy with their defaults, from its signature; of one with memory, from its class."""
    strategy = REGISTRY[name]
    usual = () if isinstance(strategy, type) else inspect.signature(Strategy.__call__).parameters
    of = inspect.signature(strategy).parameters.values()
    return {one.name: one.default for one in of if one.name not in usual}


def reads(row: Spec) -> str:
    what = " and ".join(sorted(row.reads, reverse=True)) or "nothing: the model does not run"
    labelled = {
        "no": "",
        "if any": "; the labelled examples, if there are any",
        "required": "; the labelled examples, which it needs",
    }
    several = "" if row.multilabel else ". For data with one class per example"
    return what + labelled[row.labeled] + several


def section(row: Spec) -> str:
    about = ABOUT[row.name]
    lines = [
        f"## `{row.name}`",
        "",
        f"{row.picks[0].upper()}{row.picks[1:]}{'' if row.picks.endswith('?') else '.'}",
        "",
        f"![What {row.name} picks in three rounds](images/picks-{row.name}.svg)",
        "",
        f"- **Use it:** {about.when}",
        f"- **Reads:** {reads(row)}.",
        f"- **Cost:** {about.cost}.",
    ]
    said = [f"`{one}={default!r}`: {OPTIONS[row.name][one]}" for one, default in options(row.name).items()]
    lines += [f"- **Options:** {'; '.join(said)}."] * bool(said)
    lines += [f"- **Differs:** {about.differs}."] * bool(about.differs)
    return "\n".join(lines + [f"- **Source:** {about.paper or row.source}."] * bool(about.paper or row.source)) + "\n"


def page() -> str:
    return TOP + "\n".join(section(row) for row in CATALOG) + END
