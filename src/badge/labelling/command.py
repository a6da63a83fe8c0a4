"""What `badge label` does: open the pool and the journal, say where the page is, serve it."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import typer

from badge.errors import InputError
from badge.journal import read
from badge.labelling.guard import key_of
from badge.labelling.models import classes_of, trainer_of
from badge.labelling.server import is_local, serve
from badge.labelling.session import Session
from badge.labelling.sources import Source
from badge.learner import ActiveLearner

__all__ = ["run"]


def run(
    source: Source,
    path: Path,
    classes: str,
    journal: Path | None,
    batch_size: int,
    encoder: str | None,
    model: str | None,
    strategy: str,
    seed: int,
    of: int,
    host: str,
    port: int,
) -> None:
    """Serve the pool that was read from `path` until Ctrl-C."""
    names = classes_of(classes)
    file = journal or Path(f"{path.resolve().stem or 'pool'}.labels.jsonl")
    trainer = trainer_of(source.kind, len(names), encoder, model)
    with _listening(host, port) as listen:
        port = listen.getsockname()[1]
        known = _known_classes(file)
        more = names[len(known) :] if known and names[: len(known)] == known else []
        learner = ActiveLearner(
            source.pool,
            trainer,
            classes=known if more else names,
            ids=source.ids,
            strategy=strategy,
            seed=seed,
            journal=file,
        )
        for name in more:
            learner.add_class(name)
        key = key_of(file)
        local = is_local(host)
        labelled = len(learner.labels)
        typer.echo(f"{len(source):,} {source.kind}s, {len(names)} classes; {labelled:,} labelled in {file}")
        shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
        typer.echo(f"open   http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={key}")
        if not local:
            typer.echo(
                f"note   {host} lets others on the network in: whoever has this address can see all items and answer. The "
                "connection is not encrypted; put a proxy with TLS before it where that matters."
            )
        typer.echo("stop   Ctrl-C; nothing is lost, the same command goes on")
        serve(
            Session(learner, source, batch_size, of), key, host, port, _person() if local and of == 1 else None, listen
        )


def _known_classes(file: Path) -> list[str]:
    """The classes that a journal has so far: the command may name more at its end."""
    events = read(file) if file.exists() else []
    first = [event["classes"] for event in events if event["event"] == "learner"]
    added = [event["name"] for event in events if event["event"] == "class"]
    return [*first[0], *added] if first and isinstance(first[0], list) else []


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port that is taken is one line and not the end of a started server."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listen = socket.socket(family, socket.SOCK_STREAM)
    listen.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listen.bind((host, port))
    except OSError as error:
        listen.close()
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror}; --port 0 takes a free one") from None
    return listen


def _person() -> str:
    """The name of whoever started the server."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "me"
