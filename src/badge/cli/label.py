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

DEFAULT = "auto for up to 20,000 texts, or images with --encoder; else badge"


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


def label_studio(
    url: Annotated[str, Option(help="Address of the server.", show_default=False)],
    project: Annotated[int, Option(help="The project's number, as in the address of its page.", show_default=False)],
    token_env: Annotated[str, Option(metavar="NAME", help="The variable that holds your access token.")] = "LS_TOKEN",
    watch: Annotated[bool, Option("--watch", help="Keep running: pick again when there are new annotations.")] = False,
    batch_size: Annotated[int, Option(min=1, help="Tasks to put first.")] = 20,
    again_after: Annotated[int | None, Option(min=1, help="Labels to the next round. (default: half a batch)")] = None,
    strategy: Strategy = "badge",
    encoder: Annotated[str | None, Option(metavar="hf:NAME", help="A pretrained encoder: a folder or a name.")] = None,
    model: Annotated[str | None, Option(metavar="MODULE:MAKE", help="Your own trainer: package.module:make.")] = None,
    control: Annotated[str | None, Option(metavar="NAME", help="The <Choices> to pick for, if several.")] = None,
    show_guess: Annotated[bool, Option("--show-guess", help="Fill in the model's guess: faster, but biased.")] = False,
    seed: Annotated[int, Option(min=0, help="The same seed and labels give the same picks.")] = 0,
) -> None:
    """Put the tasks that are worth labelling next first, in a project of Label Studio.

    The project's tasks are the pool (texts or images), its annotations the labels. The picks get predictions with scores that
    rise in pick order, and the project's sampling is set to "Uncertainty sampling". Nothing else in it is touched.

    [bold]Examples[/bold]

    Once, with the token of your account settings:
        LS_TOKEN=… badge label-studio --url http://127.0.0.1:8080 --project 7

    For as long as people annotate:
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
        say("stopped; the picks stay first, and the same command goes on")
        raise typer.Exit(130) from None
    finally:
        client.close()
    typer.echo("\n".join(map(str, done.picks)))
