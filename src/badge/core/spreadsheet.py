"""Cells of CSV files that a spreadsheet would take for a formula and run: with an apostrophe before them it does not."""

import re

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_MARKED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-inf")


def safe(cell: str) -> str:
    """The cell as it is written; `as_meant` takes it back.

    >>> safe("=1+1"), safe("-0.5"), safe("img.png")
    ("'=1+1", '-0.5', 'img.png')
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def as_meant(cell: str) -> str:
    """The cell before `safe` marked it.

    >>> as_meant(safe("=1+1")), as_meant(safe("'=1")), as_meant("it's")
    ('=1+1', "'=1", "it's")
    """
    return cell[1:] if _MARKED.match(cell) else cell
