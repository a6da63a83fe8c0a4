"""`python -m benchmarks` (or `make bench`): ours, the plain loop, the peers and the bare matrix product, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from badge.errors import BadgeError

__all__ = ["bench"]


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="The bars and the profile: about half an hour. The default.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Also the whole grid of N, k and shapes, and 5 million rows on disk: hours.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="One section (may be repeated); a wrong name lists them.")
    ] = None,
    threads: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Threads; may be repeated.  [default: 1]")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Alternating repeats; slow contenders have fewer, and it says so.")] = 5,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Results are kept and merged here.")] = Path("bench"),
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables into this page, between its bench marks.")
    ] = None,
) -> None:
    """Measure the speed and memory of the selection on this machine.

    Everything from outputs to positions is inside the timer; contenders alternate within one process.
    Peers that are not installed are listed as such: pip install 'badge-learn\\[bench]'.

    [bold]Examples[/bold]

    The bars on one thread:
        python -m benchmarks --quick

    One section, on one and on two threads:
        python -m benchmarks --only skewed --threads 1 --threads 2

    Everything, and the tables into a page:
        python -m benchmarks --full --markdown docs/benchmarks.md
    """
    from benchmarks.command import run

    run(full=full and not quick, only=only or [], threads=threads or [1], repeats=repeats, out=out, page=markdown)


if __name__ == "__main__":
    try:
        typer.run(bench)
    except BadgeError as error:
        raise SystemExit(f"error: {error}") from None
