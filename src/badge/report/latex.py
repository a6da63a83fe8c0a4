"""Tables for a paper: LaTeX with the rules of booktabs, to be put into the text as they are."""

import math
from collections.abc import Sequence
from typing import Any

_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "[": "{[}",  # else an option of the line end before it
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)  # fmt: skip


#: The headers of a paper; others, the names of strategies, stay as they are.
TITLES = {
    "data": "Data", "model": "Model", "batch_size": "Batch size", "strategy": "Strategy", "repeats": "Repeats",
    "labels": "Labels", "rand_labels": "Labels (\\texttt{rand})", "rand_final_accuracy": "Accuracy (\\texttt{rand})",
    "ratio": "Ratio", "ratio_low": "Ratio, low", "ratio_high": "Ratio, high",
    "smallest_labels": "First labels", "n0": "$n_0$", "budgets": "Budgets", "why_empty": "Remark",
}  # fmt: skip


def latex_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""A tabular of these rows; numbers to the right, with four significant digits.

    >>> print(latex_table(["strategy", "my_own"], [["badge", 0.25], ["rand", float("inf")]]))
    \begin{tabular}{lr}
    \toprule
    Strategy & my\_own \\
    \midrule
    badge & 0.25 \\
    rand & $\infty$ \\
    \bottomrule
    \end{tabular}
    <BLANKLINE>
    """
    right = ["r" if rows and all(_is_number(row[i]) for row in rows) else "l" for i in range(len(header))]
    titles = [TITLES.get(name, name.translate(_SPECIAL)) for name in header]
    lines = [titles, *([_cell(value) for value in row] for row in rows)]
    head, *body = [" & ".join(line) + r" \\" for line in lines]
    top = [rf"\begin{{tabular}}{{{''.join(right)}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*top, *body, r"\bottomrule", r"\end{tabular}", ""])


def _is_number(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "--"
    if isinstance(value, float):
        return (r"$\infty$" if value > 0 else r"$-\infty$") if math.isinf(value) else f"{value:.4g}"
    return str(value).translate(_SPECIAL)
