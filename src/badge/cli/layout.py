"""The options that say how text files are to be read, the same for every command that reads tables."""

from typing import Annotated

from typer import Option

Header = Annotated[
    bool | None,
    Option(
        "--header/--no-header",
        help="Whether the first row of a csv file names the columns. (default: told from the rows)",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None, Option("--delimiter", metavar="SIGN", help="Between cells: , ; | or tab. (default: told from the rows)")
]
Encoding = Annotated[
    str | None,
    Option("--encoding", metavar="NAME", help="Of text files, e.g. shift-jis. (default: told from the bytes)"),
]
