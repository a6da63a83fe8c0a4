"""`badge label`: a page on which people label what teaches a model most."""

from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from badge.cli.strategies import KNOWN, Delimiter, Encoding, Header
from badge.errors import MissingExtraError

DEFAULT = "auto for up to 20,000 texts, else badge"


def label(
    path: Annotated[Path, Argument(help="A .csv, .tsv, .xlsx, .jsonl, .parquet or .txt file, or a folder of images.")],
    classes: Annotated[str, Option(help="Names with commas, a file, or a table with name, description, key, colour.")],
    text: Annotated[str | None, Option(help='Column with the text. (default: "text" if there is one)')] = None,
    id: Annotated[str | None, Option(help='Column with the ids. (default: "id" if there is one)')] = None,
    label_column: Annotated[str | None, Option("--label", help="Column with labels that exist already.")] = None,
    guess: Annotated[str | None, Option(help="Column with suggested labels, which Enter takes.")] = None,
    journal: Annotated[Path | None, Option(help="Where the answers go. (default: PATH with .labels.jsonl)")] = None,
    batch_size: Annotated[int, Option(min=1, help="Items that are picked at a time.")] = 50,
    encoder: Annotated[str | None, Option(help="Pretrained encoder: hf:NAME or none. (default: if installed)")] = None,
    model: Annotated[str | None, Option(help="Your own trainer: package.module:make, called with the classes.")] = None,
    strategy: Annotated[str | None, Option(help=f"What picks: {KNOWN}. (default: {DEFAULT})")] = None,
    seed: Annotated[int, Option(min=0, help="The same seed and labels give the same picks.")] = 0,
    per_item: Annotated[int, Option("--per-item", "--of", min=1, help="Number of people who label each item.")] = 1,
    adjudicator: Annotated[str | None, Option(help="Who decides ties. (default: a third person is asked)")] = None,
    people: Annotated[str | None, Option(help="One link per person: ann:admin,ben. (default role: label)")] = None,
    revoke: Annotated[str | None, Option(help="Take the link of this person back.")] = None,
    test: Annotated[int, Option(min=0, help="Set a random sample of this size aside, to measure accuracy.")] = 0,
    test_first: Annotated[bool, Option("--test-first/--test-mixed", help="Ask the sample first, or mixed in.")] = False,
    multilabel: Annotated[bool, Option("--multilabel", help="An item may have several classes, or none.")] = False,
    guidelines: Annotated[Path | None, Option(help="A text or Markdown file that the page shows.")] = None,
    save: Annotated[Path | None, Option(help="Write the model of the labels so far to this folder, and end.")] = None,
    host: Annotated[str, Option(help="Address to listen on; any other lets others in.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8600,
    public_url: Annotated[str | None, Option(help="The address of a proxy before the server: https://name.")] = None,
    header: Header = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Label with a page in the browser: one item after the other, the most instructive first.

    Every answer is on disk before the page says so. Stopped and started again, the same command goes on where it was.

    [bold]Examples[/bold]

    Reviews in a table, three classes:
        badge label reviews.csv --text review --classes good,bad,unclear

    A folder of photos with a pretrained encoder, classes in a file, a journal by name:
        badge label photos/ --classes classes.txt --encoder hf:path-or-name --journal photos.jsonl

    For a team, each item asked of two people:
        badge label reviews.csv --classes good,bad --per-item 2 --host 0.0.0.0
    """
    given = locals()
    from badge.labelling.sources import open_source
    from badge.tables import Told

    source = open_source(path, text, id, Told(header, delimiter, encoding), label_column, guess)
    if source.understood:
        typer.echo(source.understood, err=True)
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError("the labelling page", package, "label")
    from badge.labelling.command import Options, run  # what follows loads torch

    given["journal"] = journal or Path(f"{path.resolve().stem or 'pool'}.labels.jsonl")
    run(source, Options(**{field.name: given[field.name] for field in fields(Options)}))
