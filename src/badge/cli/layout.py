"""The options that say how text files are to be read, the same for every command that reads tables."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Delimiter", "Encoding", "Header"]

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
