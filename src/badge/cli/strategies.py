"""The option that names strategies, the same for every command that takes several."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Strategies", "names_of"]

Strategies = Annotated[
    list[str] | None,
    typer.Option("--strategy", "--strategies", help="One or more, with commas between them or the option repeated."),
]


def names_of(strategies: list[str] | None) -> list[str]:
    """Every name once, in the order given.

    >>> names_of(["badge, rand", "badge", "conf"])
    ['badge', 'rand', 'conf']
    """
    found = [name.strip() for names in strategies or [] for name in names.split(",")]
    return list(dict.fromkeys(name for name in found if name))
