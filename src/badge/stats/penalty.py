"""The pairwise penalty matrix: in how many settings one strategy beats another.

The paper defines t on the differences of *errors*, e_i − e_j, and says that i beats j where t > 2.776. Taken literally,
the larger error wins. Here the lower error wins: i beats j where t > critical on e_j − e_i = accuracy_i − accuracy_j.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from badge.core.importing import needs
from badge.errors import InputError, UnknownNameError
from badge.stats.budgets import Budgets, label_budgets
from badge.stats.columns import Note
from badge.stats.curves import learning_curve
from badge.stats.results import Results, Setting, compared

#: Two-sided significance level of the paired t-test.
LEVEL = 0.05
#: Decimals that differences of accuracies are rounded to: 0.3 − (0.1 + 0.2) is a tie, not a win by 5·10⁻¹⁷.
DECIMALS = 12


class Matrix(NamedTuple):
    """A penalty matrix: entry (i, j) is the number of settings, with fractions, in which strategy i beats strategy j."""

    strategies: tuple[str, ...]
    settings: int
    values: NDArray[np.float64]  # [S, S]

    @property
    def averages(self) -> NDArray[np.float64]:
        """The mean of each column, including the 0 on the diagonal, as in the authors' script. Lower is better."""
        return np.asarray(self.values.mean(axis=0))


class Penalty(NamedTuple):
    """The penalty matrix of every setting that counts. `overall` and `group_by` sum them."""

    strategies: tuple[str, ...]
    settings: tuple[Setting, ...]
    values: NDArray[np.float64]  # [settings, S, S]; each entry between 0 and 1
    notes: tuple[Note, ...]

    @property
    def overall(self) -> Matrix:
        return Matrix(self.strategies, len(self.settings), self.values.sum(axis=0))


def critical_value(repeats: int, level: float = LEVEL) -> float:
    """The two-sided critical value of Student's t at repeats − 1 degrees of freedom.

    Args:
        repeats: the number of pairs.
        level: the significance level of the test; 0.05 leaves 2.5 % on either side.

    Returns:
        The value above which |t| is significant.

    Raises:
        MissingExtraError: scipy is not installed (extra `study`).

    >>> round(critical_value(5), 3)
    2.776
    """
    with needs("the t-test", "scipy", "study"):
        from scipy.special import stdtrit
    return float(stdtrit(repeats - 1, 1 - level / 2))


def t_score(differences: NDArray[np.float64]) -> float:
    """The t-score √R·μ̂/σ̂ of R paired differences: ±inf if only σ̂ is 0, and 0 if μ̂ and σ̂ are 0.

    Args:
        differences: one difference per seed, [R].

    Returns:
        t.

    >>> import numpy as np
    >>> round(t_score(np.array([0.1, 0.2, 0.3])), 3), t_score(np.array([0.1, 0.1])), t_score(np.zeros(3))
    (3.464, inf, 0.0)
    """
    differences = np.round(differences, DECIMALS)
    if (differences == differences[0]).all():
        return float(np.sign(differences[0]) * np.inf) if differences[0] else 0.0
    return float(np.sqrt(len(differences)) * differences.mean() / differences.std(ddof=1))


def beats(one: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """Compare the accuracies of two strategies by a paired t-test over the seeds.

    Args:
        one: the accuracies of one strategy, {seed: accuracy}.
        other: the accuracies of the other, {seed: accuracy}.

    Returns:
        1 if `one` wins, −1 if it loses, 0 for a tie; None if they share fewer than two seeds.

    Raises:
        MissingExtraError: scipy is not installed (extra `study`).

    >>> beats({0: 0.9, 1: 0.92, 2: 0.91}, {0: 0.8, 1: 0.81, 2: 0.8})
    1
    """
    seeds = sorted(one.keys() & other.keys())
    if len(seeds) < 2:
        return None
    t = t_score(np.array([one[seed] - other[seed] for seed in seeds]))
    return int(np.sign(t)) if abs(t) > critical_value(len(seeds)) else 0


def penalty_matrix(results: Results, strategies: Sequence[str] | None = None) -> Penalty:
    """Compare every pair of strategies at every label budget of every setting, by paired t-tests.

    A win counts 1/n, where n is the number of label budgets of the setting. Settings without label budgets are left out. A
    pair that shares fewer than two seeds at a budget is not compared there, and gets a note.

    Args:
        results: a `Results` table, from `badge.stats.load`.
        strategies: names of strategies, in the order to show; None: all strategies in the results.

    Returns:
        A `Penalty`: a matrix for each setting; `overall` is their sum.

    Raises:
        InputError: a strategy is named twice.

    >>> from badge.stats import example
    >>> matrix = penalty_matrix(example(), ["badge", "rand"]).overall
    >>> matrix.settings, matrix.values.tolist(), matrix.averages.tolist()
    (1, [[0.0, 1.0], [0.0, 0.0]], [0.0, 0.5])
    """
    names = compared(results, strategies)
    if len(set(names)) < len(names):
        raise InputError(f"a strategy is named twice: {', '.join(names)}")
    budgets = [entry for setting in results.settings if (entry := label_budgets(results, setting)).values]
    notes: list[Note] = []
    layers = [_setting_matrix(results, entry, names, notes) for entry in budgets]
    values = np.array(layers).reshape(len(budgets), len(names), len(names))
    return Penalty(names, tuple(entry.setting for entry in budgets), values, tuple(notes))


def _setting_matrix(results: Results, budgets: Budgets, names: Sequence[str], notes: list[Note]) -> NDArray[np.float64]:
    curves = [learning_curve(results, budgets.setting, name) for name in names]
    matrix = np.zeros((len(names), len(names)))
    skipped: dict[str, list[str]] = defaultdict(list)
    off_grid: dict[str, list[str]] = defaultdict(list)
    for labels in budgets.values:
        accuracies = [curve.at(labels) for curve in curves]
        for name, curve, found in zip(names, curves, accuracies, strict=True):
            if lacking := [str(seed) for seed in curve.seeds if seed not in found]:
                off_grid[f"{name} with seed{'s' * (len(lacking) > 1)} {', '.join(lacking)}"].append(f"{labels:,}")
        for i in range(len(names)):
            for j in range(i):
                result = beats(accuracies[i], accuracies[j])
                if result is None and curves[i].seeds and curves[j].seeds:
                    skipped[f"{names[j]} and {names[i]}"].append(f"{labels:,}")
                elif result:
                    matrix[(i, j) if result > 0 else (j, i)] += 1 / len(budgets.values)
    for who, at in off_grid.items():
        text = f"{budgets.setting}: {who} has no model with exactly {', '.join(at)} labels and is left out there"
        notes.append(Note("label budgets that a run lacks", text))
    for pair, at in skipped.items():
        text = f"{budgets.setting}: {pair} share fewer than two seeds at {', '.join(at)} labels"
        notes.append(Note("pairs not compared", text))
    return matrix


def group_by(penalty: Penalty, by: str | Callable[[Setting], Any]) -> dict[Any, Matrix]:
    """The penalty matrix of each group of settings.

    Args:
        penalty: the result of `penalty_matrix`.
        by: a field of `Setting` ("batch_size", "model" or "data"), or a function of a setting.

    Returns:
        {group: `Matrix`}, sorted by group.

    Raises:
        UnknownNameError: `Setting` has no field of this name.

    >>> from badge.stats import example
    >>> {group: matrix.settings for group, matrix in group_by(penalty_matrix(example()), "batch_size").items()}
    {100: 1}
    """
    if isinstance(by, str) and by not in Setting._fields:
        raise UnknownNameError("field of a setting", by, Setting._fields)
    keys = [getattr(setting, by) if isinstance(by, str) else by(setting) for setting in penalty.settings]
    members = {group: penalty.values[[key == group for key in keys]] for group in sorted(set(keys))}
    return {group: Matrix(penalty.strategies, len(some), some.sum(axis=0)) for group, some in members.items()}
