"""The command line: `badge --help`. Commands import what they need when they run, so that help is instant."""

from __future__ import annotations

import sys

import typer

from badge.cli.report import export, report
from badge.cli.run import demo, grid, run
from badge.cli.select import select
from badge.errors import BadgeError

__all__ = ["app", "main"]

app = typer.Typer(
    name="badge",
    help="Which examples to label next: deep batch active learning by diverse gradient embeddings (BADGE).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(show: bool) -> None:
    if show:
        from badge import __version__

        typer.echo(f"badge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


app.command("demo")(demo)
app.command("run")(run)
app.command("grid")(grid)
app.command("export")(export)
app.command("report")(report)
app.command("select")(select)


def main() -> None:
    """Run the command line; an error that badge raises on purpose is one line and exit code 2."""
    try:
        app()
    except BadgeError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
