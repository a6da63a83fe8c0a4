"""`badge label-studio`: the picks of a Label Studio project come first."""

import os
from functools import partial
from typing import Annotated

import typer
from typer import Option

from badge.cli.strategies import Strategy
from badge.core.catalog import check_one_pass
from badge.errors import InputError


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
    from badge.labelling.label_studio import Client, Settings, run_round
    from badge.labelling.label_studio import watch as watch_project
    from badge.labelling.label_studio.picking import picks_for

    say = partial(typer.echo, err=True)
    client = Client(url, project, token, lambda seconds, why: say(f"{why}; again in {seconds:g} s"), patient=watch)
    settings = Settings(
        batch_size=batch_size,
        again_after=again_after or max(1, batch_size // 2),
        control=control,
        show_guess=show_guess,
        name=f"{strategy} {seed} {encoder} {model}",
    )
    pick = picks_for(client, strategy=strategy, seed=seed, encoder=encoder, model=model)
    try:
        if watch:
            watch_project(client, pick, settings, say)
        done = run_round(client, pick, settings, say)
    except KeyboardInterrupt:
        say("stopped; the picks stay first, and the same command goes on")
        raise typer.Exit(130) from None
    finally:
        client.close()
    typer.echo("\n".join(map(str, done.picks)))
