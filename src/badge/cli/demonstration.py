"""`badge demo`: the paper's protocol on scikit-learn's digits, small enough for a first look."""

import math

from badge import stats, strategies
from badge.core.text_table import text_table
from badge.experiment.grid import Cell

#: seven strategies, three seeds, to 400 of 1,437 labels
CELLS = [
    Cell("digits", "mlp", strategy, batch_size=50, initial=50, labels=400, seed=seed)
    for seed in range(3)
    for strategy in strategies.PAPER
]


def headline(results: stats.Results) -> str:
    """What the run shows at its last number of labels, by paired t-tests over the seeds: no more than that."""
    setting = results.settings[0]
    curves = {name: stats.learning_curve(results, setting, name) for name in results.strategies}
    last = min(int(curve.labels[-1]) for curve in curves.values())
    ends = {name: curve.at(last) for name, curve in curves.items()}
    others = [name for name in ends if name != "rand"]
    against = {name: stats.beats(ends[name], ends["rand"]) for name in others}
    above, below = (", ".join(name for name in others if against[name] == sign) or "none" for sign in (1, -1))
    pairs = sum(bool(stats.beats(ends[a], ends[b])) for i, a in enumerate(others) for b in others[:i])
    seeds, total = len(curves["rand"].seeds), len(others) * (len(others) - 1) // 2
    return (
        f"what this run shows at {last} labels ({seeds} seeds, paired t-tests at 0.05): above rand {above}; "
        f"below rand {below}; {pairs} of {total} pairs of the others differ"
    )


def table(results: stats.Results) -> str:
    """Labels that each strategy needs to reach the accuracy that `rand` has at the end, means over the seeds."""
    saved = {saving.strategy: saving for saving in stats.saved_labels(results).savings}
    of_rand = next(iter(saved.values()))  # which is not among them
    rows = []
    for name in results.strategies:
        curve = stats.mean_curve(stats.learning_curve(results, results.settings[0], name))
        labels, share = (saved[name].labels, saved[name].ratio) if name in saved else (of_rand.reference_labels, 1.0)
        shown = [f"{labels:.0f}", f"{share:.0%}"] if math.isfinite(labels) else ["–", "–"]
        rows.append([name, *shown, f"{curve.mean[-1]:.4f} ± {curve.error[-1]:.4f}"])
    end = CELLS[0].labels
    needed = f"labels needed to reach {of_rand.target:.4f}, the test accuracy of rand at {end} labels"
    header = ["strategy", "labels", "of rand's", f"accuracy at {end}"]
    return f"{headline(results)}\n{needed}\n{text_table(header, rows)}"
