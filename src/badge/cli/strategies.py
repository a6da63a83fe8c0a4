"""`badge strategies`, and the options that several commands share."""

from typing import Annotated

from typer import Option

from badge.core import catalog

KNOWN = f"{', '.join(catalog.STRATEGIES)} or package.module:yours"
#: columns of a terminal from which on four columns of words fit side by side
WIDE = 120

_SEVERAL = f"One or more, with commas or the option repeated: {KNOWN}."
Strategies = Annotated[list[str] | None, Option("--strategy", "--strategies", help=_SEVERAL, show_default=False)]
Strategy = Annotated[str, Option("--strategy", help=f"What picks: {KNOWN}. `badge strategies` says what each does.")]


def strategies() -> None:
    """List the strategies: what each picks, what it needs, where it is from.

    Example: badge strategies
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console, table = Console(), Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    wide = console.width >= WIDE
    for name in ("picks", "needs", "source") if wide else ("picks, needs, source",):
        table.add_column(name)
    for row in catalog.CATALOG:
        cells = row.picks, needs(row), row.source
        table.add_row(row.name, *(cells if wide else ["; ".join(filter(None, cells))]))
    console.print(table)


def needs(row: catalog.Spec) -> str:
    """What a strategy needs, in words.

    >>> needs(catalog.spec("coreset")), needs(catalog.spec("rand"))
    ('embeddings, labelled examples', 'nothing')
    """
    if row.passes:
        return "probabilities of several passes or models"
    labelled = ["labelled examples"] if row.labeled == "required" else []
    return ", ".join([*sorted(row.reads, reverse=True), *labelled]) or "nothing"


def names_of(strategies: list[str] | None) -> list[str]:
    """Every name once, in the order given.

    >>> names_of(["badge, rand", "badge", "conf"])
    ['badge', 'rand', 'conf']
    """
    found = [name.strip() for names in strategies or [] for name in names.split(",")]
    return list(dict.fromkeys(name for name in found if name))


_HEADER = "Whether the first row of a csv file names the columns. (default: detected)"
Header = Annotated[bool | None, Option("--header/--no-header", help=_HEADER, show_default=False)]
_DELIMITER = "Sign between cells: , ; | or tab. (default: detected)"
Delimiter = Annotated[str | None, Option("--delimiter", metavar="SIGN", help=_DELIMITER)]
_ENCODING = "Encoding of text files, e.g. shift-jis. (default: detected)"
Encoding = Annotated[str | None, Option("--encoding", metavar="NAME", help=_ENCODING)]
