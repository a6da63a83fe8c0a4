"""The form of every command: options that are given once, and help that fits the terminal."""

import re
import shutil
from typing import Any

from typer.core import TyperCommand

from badge.errors import InputError

#: Below this number of columns, help is plain text: the table of options would cut their names.
NARROW = 100


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
