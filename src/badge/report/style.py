"""One colour and one marker per strategy, in every figure. Colour-blind safe, and legible on white and on black."""

import zlib
from typing import Any, NamedTuple

from badge.core.catalog import STRATEGIES

#: The colour of text and axes while a figure is drawn; a page replaces it by its own text colour, light or dark.
INK = "#010203"

#: matplotlib's settings for every figure: text stays text, files do not change from one run to the next.
RC: Any = {
    "axes.axisbelow": True, "axes.edgecolor": INK, "axes.facecolor": "none", "axes.grid": True, "axes.labelcolor": INK,
    "axes.labelsize": 10, "axes.linewidth": 0.7, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlecolor": INK, "axes.titlesize": 10.5,
    "font.family": ["DejaVu Sans"], "font.size": 10,
    "grid.alpha": 0.25, "grid.color": "#808080", "grid.linewidth": 0.6,
    "legend.fontsize": 9.5, "legend.frameon": False, "legend.labelcolor": INK,
    "lines.markersize": 4.5,
    "svg.fonttype": "none", "svg.hashsalt": "badge",
    "text.color": INK, "text.parse_math": False,
    "xtick.color": INK, "xtick.labelsize": 9.5, "ytick.color": INK, "ytick.labelsize": 9.5,
}  # fmt: skip


class Look(NamedTuple):
    colour: str
    marker: str
    dash: str
    width: float


# Okabe and Ito's colours, with a grey for the baseline and more hues for the strategies behind the paper's seven
_COLOURS = ("#d55e00", "#0072b2", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#8a8a8a", "#8066d9", "#a6761d",
            "#66a61e", "#1b5e6b", "#c2185b", "#ad6f8a", "#7e57c2", "#00897b", "#37474f", "#5c6bc0", "#b8860b",
            "#ef5350", "#f48fb1", "#7cb342", "#6d4c41", "#0097a7", "#2e7d32")  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "d", "p", "8", "x", "+", "2", "3", "4", "1", ".",
            "|", "_", "h", "*", "H")  # fmt: skip
_FIXED = {
    name: Look(colour, marker, "-", 2.0 if name == "badge" else 1.4)
    for name, colour, marker in zip(STRATEGIES, _COLOURS, _MARKERS, strict=True)
}
_OTHER_MARKERS = ("p", "8")


def look(strategy: str) -> Look:
    """The look of a strategy: fixed for registry names; for others it depends on the name alone, and is dashed.

    >>> look("badge")
    Look(colour='#d55e00', marker='o', dash='-', width=2.0)
    >>> look("mine") == look("mine")
    True
    """
    if strategy in _FIXED:
        return _FIXED[strategy]
    code = zlib.crc32(strategy.encode())
    colour = _COLOURS[code % len(_COLOURS)]
    return Look(colour, _OTHER_MARKERS[code // len(_COLOURS) % len(_OTHER_MARKERS)], "--", 1.4)
