"""Tables as plain text, for terminals."""

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns with two spaces between them; columns of numbers are aligned to the right.

    >>> print(text_table(["who", "labels"], [["badge", "350"], ["rand", "1,000"]]))
    who    labels
    badge     350
    rand    1,000
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [rows and all(cell[:1].isdigit() or cell[:1] in "-–" for cell in column[1:]) for column in columns]
    signs = [f"{'>' if numbers else '<'}{width}" for numbers, width in zip(right, widths, strict=True)]
    lines = (zip(line, signs, strict=True) for line in [header, *rows])
    return "\n".join("  ".join(f"{cell:{sign}}" for cell, sign in line).rstrip() for line in lines)
