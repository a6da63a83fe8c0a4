"""`badge label`, a page on which people label what teaches a model most; and `badge label-studio`."""

import os
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from badge.cli.options import KNOWN, Delimiter, Encoding, Header, Strategy
from badge.core.catalog import check_one_pass
from badge.errors import InputError, MissingExtraError

DEFAULT = "auto for up to 20,000 texts, or images with --encoder, if one person labels each item; else badge"


def label(
    path: Annotated[Path, Argument(help="A .csv, .tsv, .xlsx, .jsonl, .parquet or .txt file, or a folder of images.")],
    classes: Annotated[str, Option(help="Names with commas, a file with one per line, or a table (see the guide).")],
    text: Annotated[str | None, Option(help='Column of texts. (default: "text", if there is one)')] = None,
    id: Annotated[str | None, Option(help='Column of ids. (default: "id", if there is one)')] = None,
    label_column: Annotated[str | None, Option("--label", help="Column of labels that exist already.")] = None,
    guess: Annotated[str | None, Option(help="Column of suggested labels. Enter accepts the suggestion.")] = None,
    journal: Annotated[Path | None, Option(help="File for labels. (default: ./NAME.labels.jsonl for NAME.csv)")] = None,
    batch_size: Annotated[int, Option(min=1, help="Number of items per batch.")] = 50,
    encoder: Annotated[str | None, Option(help="Pretrained encoder: hf:NAME or none. (default: if installed)")] = None,
    model: Annotated[str | None, Option(help="Your trainer: package.module:make(number of classes).")] = None,
    strategy: Annotated[str | None, Option(help=f"Strategy: {KNOWN}. (default: {DEFAULT})")] = None,
    seed: Annotated[int, Option(min=0, help="The same seed and labels give the same picks.")] = 0,
    per_item: Annotated[int, Option("--per-item", "--of", min=1, help="Number of people who label each item.")] = 1,
    adjudicator: Annotated[str | None, Option(help="Who decides ties. (default: one more person labels)")] = None,
    people: Annotated[str | None, Option(help="A link each: ann:admin,ben. (default: label; the first: admin)")] = None,
    revoke: Annotated[str | None, Option(help="Revoke the link of this person.")] = None,
    test: Annotated[int, Option(min=0, help="Size of a random test sample, to measure accuracy.")] = 0,
    test_first: Annotated[bool, Option("--test-first/--test-mixed", help="Test sample first, or mixed in.")] = False,
    multilabel: Annotated[bool, Option("--multilabel", help="An item may have several classes, or none.")] = False,
    guidelines: Annotated[Path | None, Option(help="A text or Markdown file to show on the page.")] = None,
    save: Annotated[Path | None, Option(help="Save the model of the labels so far to this folder, and stop.")] = None,
    host: Annotated[str, Option(help="Address to listen on. 0.0.0.0 lets other machines connect.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port to listen on; 0: a free one.")] = 8600,
    public_url: Annotated[str | None, Option(help="Address of a proxy in front of the server: https://name.")] = None,
    header: Header = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Serve a labelling page for the browser. It asks for the items that help the model most.

    Every label is on disk before the page says "saved". To resume, run the same command again.

    [bold]Examples[/bold]

    Reviews in a table, three classes:
        badge label reviews.csv --text review --classes good,bad,unclear

    A folder of photos, with a pretrained encoder, classes in a file, and a name for the journal:
        badge label photos/ --classes classes.txt --encoder hf:path-or-name --journal photos.jsonl

    For a team, with two people per item:
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


def label_studio(
    url: Annotated[str, Option(help="Address of the Label Studio server.", show_default=False)],
    project: Annotated[int, Option(help="Number of the project, as in the address of its page.", show_default=False)],
    token_env: Annotated[str, Option(metavar="NAME", help="Environment variable with your access token.")] = "LS_TOKEN",
    watch: Annotated[bool, Option("--watch", help="Keep running: pick again when there are new annotations.")] = False,
    batch_size: Annotated[int, Option(min=1, help="Number of tasks to pick.")] = 20,
    again_after: Annotated[int | None, Option(min=1, help="New labels per round. (default: half a batch)")] = None,
    strategy: Strategy = "badge",
    encoder: Annotated[str | None, Option(metavar="hf:NAME", help="Pretrained encoder: a folder or a name.")] = None,
    model: Annotated[str | None, Option(metavar="MODULE:MAKE", help="Your own trainer: package.module:make.")] = None,
    control: Annotated[str | None, Option(metavar="NAME", help="Name of the <Choices>, if there are several.")] = None,
    show_guess: Annotated[bool, Option("--show-guess", help="Fill in the model's guess: faster, but biased.")] = False,
    seed: Annotated[int, Option(min=0, help="The same seed and labels give the same picks.")] = 0,
) -> None:
    """Put the tasks to label next first, in a project of Label Studio.

    The tasks of the project (texts or images) are the pool, and its annotations are the labels. The picks
    get predictions with ascending scores in pick order. The sampling of the project is set to
    "Uncertainty sampling". Nothing else changes.

    [bold]Examples[/bold]

    Once, with the token of your account settings:
        LS_TOKEN=… badge label-studio --url http://127.0.0.1:8080 --project 7

    Again and again, while people annotate:
        badge label-studio --url http://127.0.0.1:8080 --project 7 --watch
    """
    check_one_pass(strategy, "badge label-studio")
    token = os.environ.get(token_env, "")
    if not token.strip():
        raise InputError(f"the environment variable {token_env} is empty: put your Label Studio access token there")
    from badge.labelling.label_studio import rounds
    from badge.labelling.label_studio.client import Client

    say = partial(typer.echo, err=True)
    client = Client(url, project, token, lambda seconds, why: say(f"{why}; again in {seconds:g} s"), patient=watch)
    again, name = again_after or max(1, batch_size // 2), f"{strategy} {seed} {encoder} {model}"
    settings = rounds.Settings(batch_size, again, control=control, show_guess=show_guess, name=name)
    pick = rounds.picks_for(client, strategy, seed, encoder, model)
    try:
        if watch:
            rounds.watch(client, pick, settings, say)
        done = rounds.run_round(client, pick, settings, say)
    except KeyboardInterrupt:
        say("stopped; the picks stay first. Run the same command again to resume")
        raise typer.Exit(130) from None
    finally:
        client.close()
    typer.echo("\n".join(map(str, done.picks)))
