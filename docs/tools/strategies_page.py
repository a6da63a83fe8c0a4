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
        "tune. On a pretrained encoder that stays as it is, `uherding` does better.",
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
        "Very rare classes, whose recall is what counts. Else a simple baseline; large batches are full of near-duplicates.",
        SCORES,
        DEEP,
    ),
    "marg": About(
        "The strongest of the simple scores in the mean over our data sets. Batches of 500 hold near-duplicates: then rather "
        "`power-marg`.",
        SCORES,
        "Roth & Small, Margin-Based Active Learning for Structured Output Spaces, ECML 2006",
    ),
    "entropy": About(
        "Very rare classes, whose recall is what counts. Else a simple baseline; with many classes it follows noise in the "
        "small probabilities.",
        SCORES,
        DEEP,
    ),
    "albl": About(
        "To compare with the paper: a bandit that learns which of two strategies pays off.",
        "coreset and conf together",
        "Hsu & Lin, Active Learning by Learning, AAAI 2015",
    ),
    "rand": About(
        "The baseline that savings are measured against, and the only one that gives an unbiased sample.", "k"
    ),
    "kdpp": About(
        "To compare with the paper: diverse by determinants, at many times the cost of `badge`.",
        "5·k·ln k steps of k² + k·(C + D) each",
        PAPER,
    ),
    "kcenter-grad": About(
        "To compare with the paper: as `badge`, greedy instead of drawn.", "at most k·N·(C + D)", PAPER
    ),
    "kmeanspp": About(
        "First batch, before any label: spread over the pool, including its edges. On no set better than uniform "
        f"picks for certain {RUNS}: rather `typiclust`.",
        "at most k·N·D, in practice a fraction of it",
        "Arthur & Vassilvitskii, k-means++: The Advantages of Careful Seeding, SODA 2007",
    ),
    "typiclust": About(
        "First batch, before any label: typical examples, few outliers. Also for later batches, where there are no "
        "probabilities.",
        "k-means, then N²·D / k for the neighbours",
        "Hacohen, Dekel & Weinshall, [Active Learning on a Budget: Opposite Strategies Suit High and Low "
        "Budgets](https://arxiv.org/abs/2202.02794), ICML 2022",
        "this has the paper's formula, a mean of distances; its authors' code averages squared ones (`squared=True`) and "
        "scales embeddings to length 1 first",
    ),
    "uherding": About(
        "One strategy from the first label on: covers the pool first, its uncertain part later.",
        GREEDY,
        "Bae, Oliveira & Sutherland, [Uncertainty Herding: One Active Learning Method for All Label "
        "Budgets](https://arxiv.org/abs/2412.20644), ICLR 2025",
        "this looks at all rows, its authors' code at 35,000 random ones at most; they also fit a temperature to held-out "
        "labels",
    ),
    "maxherding": About(
        "Few labels and embeddings alone: covers the pool, with a soft notion of near. Second to `uherding` at low and "
        f"middle budgets {RUNS}.",
        GREEDY,
        "Bae, Noh & Sutherland, [Generalized Coverage for More Robust Low-Budget Active "
        "Learning](https://arxiv.org/abs/2407.12212), ECCV 2024",
    ),
    "probcover": About(
        f"To compare: covers most of the pool with k balls. Below `maxherding` at every budget {RUNS}.",
        GREEDY,
        "Yehuda, Dekel, Hacohen & Weinshall, [Active Learning Through a Covering Lens](https://arxiv.org/abs/2205.11320), "
        "NeurIPS 2022",
        "when all is covered this draws the rest; its authors' code takes the first row again and again",
    ),
    "wkmeans": About(
        "You trust the margin and want no near-duplicates; batches of 100 and more, where the pool is too large for "
        "`uherding`.",
        "10·k examples clustered into k",
        "Zhdanov, [Diverse Mini-Batch Active Learning](https://arxiv.org/abs/1901.05954), 2019",
        "Cluster-Margin (Citovsky et al. 2021) clusters the whole pool once, without weights, and goes round-robin through "
        "the clusters of the smallest margins; this clusters the candidates of each batch, weighted by 1 − margin, and takes "
        "the nearest to each centre",
    ),
    "bait": About(
        "Few classes and narrow embeddings: picks by what the last layer would learn. Below `uherding` on letter, a "
        "little above it on trec; it was run on these alone.",
        "grows with (C·D)², and C·D may be 4,096 at most",
        "Ash, Goel, Krishnamurthy & Kakade, [Gone Fishing: Neural Active Learning with Fisher "
        "Embeddings](https://arxiv.org/abs/2106.09675), NeurIPS 2021",
        "λ fits the scale of the embeddings; in its authors' code it is 1, and 0.01 for CIFAR",
    ),
    "bait-binary": About(
        "As `bait`, where there are many classes. Ahead of `badge` at low and middle budgets on three of four sets with an "
        "encoder, below it on the fourth, and at high budgets on all sets together ([our runs](which-strategy.md)).",
        "N·D² at the start, then N·D for each pick",
        "Huseljic, Hahn, Herde, Rauch & Sick, [Fast Fishing: Approximating BAIT for Efficient and Scalable Deep Active Image "
        "Classification](https://arxiv.org/abs/2404.08981), ECML-PKDD 2024",
    ),
    "badge-origin": About(
        f"As `badge`, where the pool is full of easy examples and k is small. Ahead of it at middle and high budgets {RUNS}.",
        "at most k·N·(C + D), in practice a fraction of it",
    ),
    "power-marg": About(
        "You have probabilities and no embeddings. As `marg`, with some chance for every example: fewer "
        "near-duplicates in a batch.",
        SCORES,
        POWER,
    ),
    "power-entropy": About("As `entropy`, with some chance for every example.", SCORES, POWER),
    "power-norm": About("Longest gradients, with some chance for every example.", "N·(C + D)", POWER),
    "bald": About(
        "The model was trained with dropout (`badge.predict(model, pool, passes=20)`), or you have an ensemble (a list of "
        f"models). With dropout on the head alone it is below `rand` {RUNS}.",
        "one pass over the pool for each answer, then N",
        "Gal, Islam & Ghahramani, [Deep Bayesian Active Learning with Image "
        "Data](https://arxiv.org/abs/1703.02910), ICML 2017",
    ),
    "power-bald": About("As `bald`, with some chance for every example.", "one pass for each answer, then N", POWER),
    "auto": About(
        "A frozen encoder with a linear head, and up to some 50,000 examples: the best in the mean of "
        "[our runs](which-strategy.md).",
        "typiclust for the first batch, then uherding",
    ),
}

BIAS = {
    "bias": "the gradient of the output layer's bias counts too; `badge.select(..., bias=True)` and `--bias` set it"
}
STRENGTH = {"strength": "the penalty λ, as a share of the embeddings' mean squared length"}
SHARPER = {"beta": "draws in proportion to score^β"}
#: What the options of each strategy mean. Names and defaults are read from the code.
OPTIONS = {
    "badge": BIAS,
    "albl": {
        "rounds": "how many batches will be asked for, which sets how fast the bandit moves",
        "p_min": "least probability of an arm, `None`: by the paper's formula",
        "delta": "δ of that formula",
    },
    "kdpp": BIAS,
    "kcenter-grad": BIAS,
    "typiclust": {"squared": "distances are squared before they are averaged, as in the authors' code"},
    "probcover": {"delta": "radius δ of the balls, `None`: by the paper's rule"},
    "wkmeans": {"beta": "the β·k smallest margins are clustered, `math.inf`: the whole pool"},
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

What each strategy picks from one pool, in three rounds of five. [Which strategy?](which-strategy.md) says which one to take.

**The pictures.** A dot is an example, its colour the true class; one class is rare. Rings are what is picked next, dark dots
have labels, shades are what the model predicts. The first five labels are drawn uniformly, except for cold starts, which
pick them. `bald` and `power-bald` ask ten models, each trained with the labels weighted at random.

**The words.** A model gives each class a *probability*. It is unsure where the largest one is small, where the two largest
are close (a small *margin*), or where all are alike (a large *entropy*). An *embedding* is what it computes just before its
last layer: similar examples have similar ones. A *gradient embedding* is how the last layer would change if the model's own
guess were the label: long where the model is unsure. *k-means++* draws examples that are far from those drawn before,
*furthest-first* takes the one that is furthest, a *k-DPP* prefers sets that span a large volume. In the costs N is the size
of the pool, C the number of classes, D the width of the embeddings and k the size of the batch.

Below the strategies: [their options and ties](#options-and-ties). `badge strategies` prints the short form of this page.

"""


END = """\

## Options and ties

In Python, `functools.partial` sets options; pass the result as `strategy`. `albl` has a memory, so make it by
`badge.strategies.ALBL(rounds=20)`.

```python
from functools import partial

import numpy as np

import badge

rng = np.random.default_rng(0)
out = badge.Outputs.from_logits(rng.normal(size=(200, 3)), rng.normal(size=(200, 8)))
wider = partial(badge.strategies.get("wkmeans"), beta=20.0)
print(badge.select_from(out, k=5, strategy=wider))
```

The same seed gives the same picks, also among equal rows:

- `coreset`, `kcenter-grad`, `maxherding`, `uherding`, `probcover`: the lowest position wins. In a learner with your own ids
  this is the first id in sorted order.
- `bait`, `bait-binary`: the lowest position is added first and removed first, so the later of two copies may stay.
- `wkmeans`: the smaller margin wins, then the seed decides. With `beta=math.inf` the lowest position wins.
- `typiclust`: the lowest position of a cluster wins, unless rounding tells equally typical rows apart, such as
  the last two of a cluster.
- `conf`, `marg`, `entropy`, `bald`: the seed decides. The others draw anyway.
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
        "if any": "; the labelled examples where there are any",
        "required": "; the labelled examples, always",
    }
    several = "" if row.multilabel else "; one class per example only"
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
