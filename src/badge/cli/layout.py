"""The options that say how text files are to be read, the same for every command that reads tables."""

from __future__ import annotations

import codecs
from typing import Annotated

import typer

from badge.errors import InputError

__all__ = ["Delimiter", "Encoding", "Header", "told"]

#: What people call a tab.
TABS = ("tab", "\\t")

Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of a csv file names the columns. (default: told from the rows)",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="SIGN", help="Between cells: , ; | or tab. (default: told from the rows)"),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Of text files, e.g. shift-jis. (default: told from the bytes)"),
]


def told(
    header: bool | None, delimiter: str | None, encoding: str | None
) -> tuple[bool | None, str | None, str | None]:
    """What was said, checked.

    >>> told(None, "tab", None)
    (None, '\\t', None)
    """
    delimiter = "\t" if delimiter in TABS else delimiter
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"--delimiter {delimiter!r} is not one sign: give , ; | or tab")
    try:
        return header, delimiter, encoding and codecs.lookup(encoding).name
    except LookupError:
        raise InputError(f"--encoding {encoding!r} is not known: give a name such as utf-8 or shift-jis") from None
