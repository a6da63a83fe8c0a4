"""The table of strategies: one `Spec` per strategy. Registry, README, help, error messages and pictures are made from it.

It does not import torch, because statistics, report and the command line's checks work without it. A new strategy is one row
here and one function in `badge.strategies`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from badge.errors import InputError, UnknownNameError

#: Whether a strategy is given the outputs of the labelled examples: never, if there are any, or it requires them.
Labeled = Literal["no", "if any", "required"]

PROBABILITIES, EMBEDDINGS = frozenset({"probabilities"}), frozenset({"embeddings"})
BOTH, NOTHING = PROBABILITIES | EMBEDDINGS, frozenset[str]()


@dataclass(frozen=True)
class Spec:
    """What is known of a strategy before torch is loaded."""

    name: str
    picks: str  #: one line: what it picks
    source: str = ""
    #: what it looks at, of "probabilities" and "embeddings"; with neither the model does not run
    reads: frozenset[str] = BOTH
    #: it reads a pool row block by row block, so that a pool on disk stays there
    blocks: bool = True
    labeled: Labeled = "no"
    bias: bool = False  #: it can take the gradient of the output bias into account
    multilabel: bool = True
    #: "compared" in the paper's matrices and curves, its "ablation", or not in it: ""
    paper: Literal["compared", "ablation", ""] = ""
    #: for the first batch, before any label
    cold: bool = False
    #: it compares several passes or models: `badge.predict(model, pool, passes=20)`
    passes: bool = False


#: In the order in which tables and legends show them.
# fmt: off
CATALOG: tuple[Spec, ...] = (
    Spec("badge", "k-means++ on gradient embeddings", "Ash et al. 2020, algorithm 1", bias=True, paper="compared"),
    Spec("coreset", "furthest-first on embeddings, starting from the labelled examples", "Sener & Savarese 2018",
         EMBEDDINGS, labeled="required", paper="compared"),
    Spec("conf", "smallest probability of the predicted class", "Wang & Shang 2014", PROBABILITIES, paper="compared"),
    Spec("marg", "smallest margin between the two largest probabilities", "Roth & Small 2006", PROBABILITIES,
         paper="compared"),
    Spec("entropy", "largest entropy of the probabilities", "Wang & Shang 2014", PROBABILITIES, paper="compared"),
    Spec("albl", "a bandit that chooses between coreset and conf", "Hsu & Lin 2015", labeled="required", multilabel=False,
         paper="compared"),
    Spec("rand", "every example with the same probability", "", NOTHING, paper="compared"),
    Spec("kdpp", "a k-DPP on gradient embeddings", "Ash et al. 2020, section 3", bias=True, paper="ablation"),
    Spec("kcenter-grad", "furthest-first on gradient embeddings", "Ash et al. 2020, section 3", bias=True,
         paper="ablation"),
    Spec("kmeanspp", "k-means++ on embeddings: a cold start", "Arthur & Vassilvitskii 2007", EMBEDDINGS,
         labeled="if any", cold=True),
    Spec("typiclust", "a typical example of each cluster: a cold start", "Hacohen et al. 2022", EMBEDDINGS, labeled="if any",
         cold=True),
    Spec("uherding", "covers the uncertain part of the pool; before any label, the whole pool",
         "Bae, Oliveira & Sutherland 2025", labeled="if any", cold=True),
    Spec("maxherding", "covers the pool: a cold start", "Bae, Noh & Sutherland 2024", EMBEDDINGS, labeled="if any",
         cold=True),
    Spec("probcover", "covers the pool with balls: a cold start", "Yehuda et al. 2022", labeled="if any", cold=True),
    Spec("wkmeans", "one example from each cluster of the smallest margins", "Zhdanov 2019"),
    Spec("bait", "lowers the variance of the last layer most (Fisher information)", "Ash et al. 2021",
         labeled="if any", multilabel=False),
    Spec("bait-binary", "bait for one question: is the predicted class right?", "Huseljic et al. 2024",
         labeled="if any", multilabel=False),
    Spec("badge-origin", "badge that rarely picks what the model is sure of", "k-means++ on gradients", bias=True),
    Spec("power-marg", "drawn in proportion to 1 − margin", "Kirsch et al. 2023", PROBABILITIES),
    Spec("power-entropy", "drawn in proportion to the entropy", "Kirsch et al. 2023", PROBABILITIES),
    Spec("power-norm", "drawn in proportion to the gradient's length", "Kirsch et al. 2023"),
    Spec("bald", "several passes of the model are each sure but disagree", "Gal et al. 2017", PROBABILITIES, passes=True),
    Spec("power-bald", "drawn in proportion to bald's score", "Kirsch et al. 2023", PROBABILITIES, passes=True),
    Spec("auto", "typical examples first, then those that cover the uncertain part", "typiclust, then uherding",
         labeled="if any", cold=True),
)
# fmt: on

STRATEGIES: tuple[str, ...] = tuple(one.name for one in CATALOG)
#: Those that pick from what one pass over the pool says.
ONE_PASS: tuple[str, ...] = tuple(one.name for one in CATALOG if not one.passes)
#: The seven that the paper's matrices and curves compare.
PAPER_STRATEGIES: tuple[str, ...] = tuple(one.name for one in CATALOG if one.paper == "compared")
#: The baseline that budgets, normalised errors and saved labels refer to.
REFERENCE = "rand"

#: Names that `badge run` takes for data and models. `badge.data` and `badge.networks` say what they are; both load torch.
DATA_SETS = ("digits", "mnist", "svhn", "cifar10", "letter", "pokerhand", "randomrbf", "kropt", "banking77", "trec")
MODELS = ("mlp", "resnet18", "vgg11", "linear")

#: Other names that people type: answered with "did you mean".
ALIASES = {
    "margin": "marg", "uncertainty": "marg", "random": "rand", "uniform": "rand", "confidence": "conf",
    "least-confidence": "conf", "k-center": "coreset", "kcenter": "coreset", "k-means++": "kmeanspp",
    "kmeans++": "kmeanspp", "dpp": "kdpp",
}  # fmt: skip


def spec(name: str) -> Spec:
    """The row of a strategy.

    >>> spec("marg").source
    'Roth & Small 2006'
    """
    check_name(name)
    return next(one for one in CATALOG if one.name == name)


def names(which: Callable[[Spec], bool]) -> tuple[str, ...]:
    """The names of the rows for which `which` holds.

    >>> names(lambda one: one.labeled == "required")
    ('coreset', 'albl')
    """
    return tuple(one.name for one in CATALOG if which(one))


def without(part: str) -> str:
    """The strategies that do without "probabilities" or "embeddings", after one pass, for messages.

    >>> without("probabilities")
    'coreset, rand, kmeanspp, typiclust, maxherding'
    """
    return ", ".join(names(lambda one: part not in one.reads and not one.passes))


def check_one_pass(strategy: str | None, who: str) -> None:
    """Refuse strategies that compare several passes of a model where `who` makes one."""
    if strategy in names(lambda one: one.passes):
        raise InputError(f"{strategy} compares several passes of a model, and {who} makes one: use auto")


def check_name(strategy: str) -> None:
    """Refuse what is neither a name of the table nor of the form package.module:function.

    >>> check_name("margin")
    Traceback (most recent call last):
    badge.errors.UnknownNameError: unknown strategy 'margin': did you mean marg? Known: badge, coreset, conf, marg, ...
    """
    if strategy not in STRATEGIES and ":" not in strategy:
        raise UnknownNameError("strategy", strategy, STRATEGIES, "or your own as package.module:function", ALIASES)


def check_first(strategy: object) -> None:
    """Refuse a strategy of the table that needs a model or labels, for the first batch.

    >>> check_first("bait")
    Traceback (most recent call last):
    badge.errors.InputError: bait needs a model: the first batch is picked by kmeanspp, typiclust, ... or your own
    """
    if strategy in names(lambda one: bool(one.reads) and not one.cold):
        cold = ", ".join(names(lambda one: one.cold))
        raise InputError(f"{strategy} needs a model: the first batch is picked by {cold} or your own")


def check_bias(strategy: object, takes_bias: bool) -> None:
    """Only gradients have a part for the output bias."""
    if not takes_bias:
        on_gradients = ", ".join(names(lambda one: one.bias))
        raise InputError(f"bias is for strategies on gradients ({on_gradients}): leave it out for {strategy}")


def markdown() -> str:
    """The table as the README shows it."""
    rows = [f"| `{one.name}` | {one.picks} | {one.source} |" for one in CATALOG]
    return "\n".join(["| name | picks | source |", "| --- | --- | --- |", *rows])
