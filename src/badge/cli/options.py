"""What commands share: how options are given, help that fits the terminal, common options; and `badge strategies`."""

import re
import shutil
from typing import Annotated, Any

from typer import Option
from typer.core import TyperCommand

from badge.core import catalog
from badge.errors import InputError

#: Columns of a terminal: with fewer, help is plain text, since the table of options would cut their names; from the second
#: on, four columns of words fit side by side.
NARROW, WIDE = 100, 120
KNOWN = f"{', '.join(catalog.STRATEGIES)} or package.module:yours"

_SEVERAL = f"One or more strategies, separated by commas or with the option repeated: {KNOWN}."
Strategies = Annotated[list[str] | None, Option("--strategy", "--strategies", help=_SEVERAL, show_default=False)]
Strategy = Annotated[str, Option("--strategy", help=f"Strategy: {KNOWN}. `badge strategies` describes each.")]
_HEADER = "Whether the first row of a csv file holds the names of the columns. (default: detected)"
Header = Annotated[bool | None, Option("--header/--no-header", help=_HEADER, show_default=False)]
_DELIMITER = "Delimiter of a csv file: , ; | or tab. (default: detected)"
Delimiter = Annotated[str | None, Option("--delimiter", metavar="SIGN", help=_DELIMITER)]
_ENCODING = "Encoding of text files, e.g. shift-jis. (default: detected)"
Encoding = Annotated[str | None, Option("--encoding", metavar="NAME", help=_ENCODING)]


class Once(TyperCommand):
    """A command that refuses an option which is given twice, unless it takes several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for option in order:
                single = option.param_type_name == "option" and not getattr(option, "multiple", False)
                if single and order.count(option) > 1:
                    raise InputError(f"{max(option.opts, key=len)} is given {order.count(option)} times: give it once")
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if shutil.get_terminal_size().columns < NARROW:
            self.rich_markup_mode, self.help = None, plain(self.help or "")
        super().format_help(ctx, formatter)


def plain(text: str) -> str:
    """Help without marks, its examples not wrapped.

    >>> plain("Say.\\n\\n[bold]Examples[/bold]\\n\\nOne:\\n    badge demo")
    'Say.\\n\\nExamples\\n\\n\\x08\\nOne:\\n    badge demo'
    """
    paragraphs = re.sub(r"\[/?bold\]", "", text).split("\n\n")
    return "\n\n".join(f"\b\n{p}" if "\n    " in p else p for p in paragraphs)


def strategies() -> None:
    """List the strategies: what each picks, what it needs, and its source.

    Example: badge strategies
    """
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    wide = console.width >= WIDE
    names = ("picks", "needs", "source") if wide else ("picks, needs, source",)
    table = Table(Column("name", no_wrap=True), *names, box=box.SIMPLE_HEAD, pad_edge=False)
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
    """Every name once, in the order given. Commas in brackets are part of a name.

    >>> names_of(["badge, rand", "badge", "conf"]), names_of(["rand,m:f(a=1, b=(2, 3))"])
    (['badge', 'rand', 'conf'], ['rand', 'm:f(a=1, b=(2, 3))'])
    """
    apart = r"(?:\((?:[^()]|\([^()]*\))*\)|[^,])+"
    found = [name.strip() for names in strategies or [] for name in re.findall(apart, names)]
    return list(dict.fromkeys(name for name in found if name))
