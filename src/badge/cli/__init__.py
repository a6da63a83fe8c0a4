"""The command line: `badge --help`. Commands import what they need when they run, so that help is instant."""

import os
import sys
from contextlib import nullcontext

import typer

from badge.cli.journal import app as journal
from badge.cli.label import label, label_studio
from badge.cli.options import Once, strategies
from badge.cli.report import export, report
from badge.cli.run import demo, grid, run
from badge.cli.select import select
from badge.core.writing import standard_output
from badge.errors import BadgeError, NoCandidatesError

__all__ = ["app", "main"]

HELP = "Choose the examples to label next: deep batch active learning with BADGE and other strategies."
app = typer.Typer(
    name="badge", help=HELP, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


def _version(show: bool) -> None:
    if show:
        from badge import __version__
        from badge.core.rng import PICKS_VERSION

        typer.echo(f"badge {__version__}, picks version {PICKS_VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


for command in (demo, run, grid, export, report, select, strategies, label, label_studio):
    app.command(command.__name__.replace("_", "-"), cls=Once)(command)
app.add_typer(journal)


def main() -> None:
    """Run the command line; an error that badge raises on purpose is one line and exit code 2 (3: no candidates)."""
    try:
        # what is printed gets out, or an error says why not
        with standard_output() if sys.stdout is not None else nullcontext():
            app()
    except BadgeError as error:
        print(f"error: {error.plain}", file=sys.stderr)
        _forget_standard_output()
        raise SystemExit(3 if isinstance(error, NoCandidatesError) else 2) from None
    except BrokenPipeError:
        _forget_standard_output()
        raise SystemExit(1) from None
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


def _forget_standard_output() -> None:
    """Drop what could not be written: the interpreter would try again at its end, and complain."""
    try:
        sys.stdout.flush()
    except (AttributeError, OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
