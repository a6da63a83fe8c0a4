"""Options that are given once: of two, only the last would count, and nobody would be told."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from badge.errors import InputError

__all__ = ["Once"]


class Once(TyperCommand):
    """A command that refuses an option which is given twice, unless it takes several values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for option in order:
            single = option.param_type_name == "option" and not getattr(option, "multiple", False)
            if single and order.count(option) > 1:
                raise InputError(f"{max(option.opts, key=len)} is given {order.count(option)} times: give it once")
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed
