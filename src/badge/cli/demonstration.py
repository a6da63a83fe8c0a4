"""`badge demo`: the paper's protocol on scikit-learn's digits, small enough for a first look."""

import math

from badge import stats, strategies
from badge.experiment.display import text_table
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
    better = [name for name in others if stats.beats(ends[name], ends["rand"]) == 1]
    worse = [name for name in others if stats.beats(ends[name], ends["rand"]) == -1]
    pairs = sum(bool(stats.beats(ends[a], ends[b])) for i, a in enumerate(others) for b in others[:i])
    seeds, total = len(curves["rand"].seeds), len(others) * (len(others) - 1) // 2
    above, below = (", ".join(names) or "none" for names in (better, worse))
    return (
        f"what this run shows at {last} labels ({seeds} seeds, paired t-tests at 0.05): above rand {above}; "
        f"below rand {below}; {pairs} of {total} pairs of the others differ"
    )


def table(results: stats.Results) -> str:
    """Labels that each strategy needs to reach the accuracy that `rand` has at the end, means over the seeds."""
    saved = {saving.strategy: saving for saving in stats.saved_labels(results).savings}
    target = next(iter(saved.values())).target
    rows = []
    for name in results.strategies:
        curve = stats.mean_curve(stats.learning_curve(results, results.settings[0], name))
        final = f"{curve.mean[-1]:.4f} ± {curve.error[-1]:.4f}"
        saving = saved.get(name)  # rand itself is not among them
        needed = next(iter(saved.values())).reference_labels if saving is None else saving.labels
        share = 1.0 if saving is None else saving.ratio
        shown = [f"{needed:.0f}", f"{share:.0%}"] if math.isfinite(needed) else ["–", "–"]
        rows.append([name, *shown, final])
    return (
        f"{headline(results)}\nlabels needed to reach {target:.4f}, the test accuracy of rand at {CELLS[0].labels} labels\n"
        + text_table(["strategy", "labels", "of rand's", f"accuracy at {CELLS[0].labels}"], rows)
    )
