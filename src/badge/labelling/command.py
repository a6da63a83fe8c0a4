"""What `badge label` does: open the pool and the journal, say where the page is, serve it."""

import getpass
import os
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from badge.core import catalog
from badge.errors import InputError, JournalError
from badge.journal import events as e
from badge.journal import records_of
from badge.labelling.models import predict_rows, trainer_of
from badge.labelling.people import People, key_of
from badge.labelling.saving import save_model
from badge.labelling.session import Session
from badge.labelling.sources import Source, classes_of
from badge.learner import ActiveLearner
from badge.models import predict
from badge.tables import read_lines

#: `auto` compares all pairs of items: with more of them it would keep people waiting.
MOST_FOR_AUTO = 20_000
#: small encoders of texts that are taken without being asked for, if the cache of Hugging Face has them
KNOWN = (
    "sentence-transformers/all-MiniLM-L6-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    "BAAI/bge-small-en-v1.5",
    "intfloat/multilingual-e5-small",
)
#: texts of the largest pool for which one is taken: some minutes on one core
MOST_TO_ENCODE = 20_000


@dataclass(frozen=True)
class Options:
    """The options of `badge label`, as the command line names them."""

    classes: str
    journal: Path
    batch_size: int = 50
    encoder: str | None = None
    model: str | None = None
    strategy: str | None = None
    seed: int = 0
    per_item: int = 1
    host: str = "127.0.0.1"
    port: int = 8600
    public_url: str | None = None
    people: str | None = None
    revoke: str | None = None
    adjudicator: str | None = None
    test: int = 0
    test_first: bool = False
    multilabel: bool = False
    guidelines: Path | None = None
    save: Path | None = None


def run(source: Source, options: Options) -> None:
    """Serve a pool until Ctrl-C."""
    from badge.labelling.guard import is_local, public_origin  # these need the extra
    from badge.labelling.server import app_of, serve, shown_host

    public = None if options.public_url is None else public_origin(options.public_url)
    names, about = classes_of(options.classes)
    guidelines = "" if options.guidelines is None else "\n".join(read_lines(options.guidelines, what="--guidelines"))
    file, trainer = options.journal, trainer_of(source.kind, len(names), _encoder(source, options), options.model)
    with _listening(options.host, options.port) as listen:
        port = listen.getsockname()[1]
        learner = _learner(source, options, names, trainer)
        taken = _take_labels(learner, source)
        if options.save is not None:
            typer.echo(f"{save_model(learner, source.kind, options.save)}: the model of {len(learner.labels):,} labels")
            learner.close()
            return
        learner.team.set_aside(options.test, options.per_item)
        people = _people(options, file)
        labelled = f"{len(learner.labels):,} labelled in {file}{taken}"
        typer.echo(f"{len(source):,} {source.kind}s, {len(names)} classes; {labelled}")
        _say_links(people, key_of(file), public or f"http://{shown_host(options.host)}:{port}")
        if not is_local(options.host) and public is None:
            typer.echo(
                f"note   {options.host} lets others on the network in: everyone with a link can see and label all items. "
                "The connection is not encrypted. If that matters, use a proxy with TLS, and --public-url."
            )
        typer.echo("stop   Ctrl-C. Nothing is lost: run the same command again to resume")
        loans, who = file.with_name(file.name + ".loans"), options.adjudicator
        session = Session(learner, source, options.batch_size, options.per_item, who, options.test_first, loans, about)
        app = app_of(session, people, options.host, port, _user(), public, guidelines, file.with_suffix(".model"))
        serve(app, session, options.host, port, listen)


def _learner(source: Source, options: Options, names: list[str], trainer: Any) -> ActiveLearner:
    """The learner of the journal; the command may name more classes at the end than the journal has."""
    records = records_of(options.journal) if options.journal.exists() else []
    begun = next((record for record in records if isinstance(record, e.Header)), None)
    known: list[e.Label] = []
    if begun is not None and isinstance(begun.classes, list):
        known = [*begun.classes, *(record.name for record in records if isinstance(record, e.AddClass))]
    more = names[len(known) :] if known and names[: len(known)] == known else []
    strategy, first = _picks_by(begun, options, source)
    try:
        learner = ActiveLearner(
            source.pool,
            trainer,
            classes=known if more else names,
            ids=source.ids,
            strategy=strategy,
            seed=options.seed,
            journal=options.journal,
            predict=predict if options.multilabel else predict_rows,
            multilabel=options.multilabel,
            first=first,
        )
    except JournalError as error:
        if begun is None or not all(isinstance(record, e.Header | e.Ask | e.SetAside) for record in records):
            raise
        way_out = "it holds no labels: delete it, or give --journal another name"
        raise JournalError(f"{error.plain}; {way_out}") from None
    for name in more:
        learner.add_class(name)
    return learner


def _encoder(source: Source, options: Options) -> str | None:
    """The encoder that is asked for; else, for texts, one that is on this machine."""
    if options.encoder is not None or options.model is not None:
        return None if options.encoder == "none" else options.encoder
    found = installed_encoder(source.kind, len(source))
    if found is not None:
        typer.echo(f"model  {found}: an encoder on this machine; --encoder none turns it off")
    return found


def installed_encoder(kind: str, size: int) -> str | None:
    """The encoder for a pool of texts that BADGE_ENCODER names, or that the cache of Hugging Face holds; or none."""
    if kind != "text" or find_spec("transformers") is None:
        return None
    if named := os.environ.get("BADGE_ENCODER"):
        return named
    if size > MOST_TO_ENCODE:
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("HF_HOME") or cache / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    for name in KNOWN:
        for folder in sorted((hub / f"models--{name.replace('/', '--')}" / "snapshots").glob("*")):
            weights = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model.bin")]
            if weights and (folder / "config.json").is_file():
                return f"hf:{folder}"
    return None


def _take_labels(learner: ActiveLearner, source: Source) -> str:
    """Tell the labels of the file. Returns how many are new, for the line that the command prints."""
    if source.labels is None:
        return ""
    labels: dict[Any, Any] = {source.id(place): label for place, label in enumerate(source.labels) if label}
    if learner.team.multilabel:
        labels = {id: [part.strip() for part in label.split(";")] for id, label in labels.items()}
    return f", {learner.team.tell_existing(labels, '--label'):,} of them new from the file"


def _picks_by(begun: e.Header | None, options: Options, source: Source) -> tuple[str, str | None]:
    """The strategy, and what picks the first batch: as asked, as the journal began, or what is quick enough for the page.

    Texts, and images with an encoder: the first batch is of typical items; finding them takes seconds once there are
    embeddings. If several people label each item, nobody gets random items meanwhile: then it is drawn at random.
    """
    catalog.check_one_pass(options.strategy, "the page")
    if begun is not None:
        usual = str(begun.strategy)
        first = begun.first if isinstance(begun.first, str) else None
        return usual if options.strategy is None else options.strategy, first
    embedded = source.kind == "text" or (source.kind == "image" and options.encoder not in (None, "none"))
    ordinary = embedded and options.per_item == 1 and options.model is None
    usual = "auto" if ordinary and len(source) <= MOST_FOR_AUTO else "badge"
    first = "typiclust" if ordinary and options.strategy != "rand" else None
    return usual if options.strategy is None else options.strategy, first


def _people(options: Options, file: Path) -> People:
    """Everybody with a link, from earlier starts and from this command. The first person named is the admin."""
    people = People(key_of(file), file.with_name(file.name + ".people"))
    wanted = [one.partition(":") for one in (options.people or "").split(",") if one.strip()]
    fresh = not people.named and not any(role == "admin" for _, _, role in wanted)
    for place, (name, _, role) in enumerate(wanted):
        people.add(name, role or ("admin" if fresh and place == 0 else None))
    roles = {person.name: person.role for person in people.named}
    if options.adjudicator is not None and roles and roles.get(options.adjudicator, "label") == "label":
        people.add(options.adjudicator, "adjudicate")
    if options.revoke is not None:
        people.revoke(options.revoke)
    return people


def _say_links(people: People, key: str, home: str) -> None:
    if not people.named:
        typer.echo(f"open   {home}/?token={key}")
    for person in people.named:
        link = f"{home}/?token={person.token}" if person.token else "no link: it was revoked"
        typer.echo(f"open   {person.name} ({person.role}): {link}")


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port that is taken is one line and not the end of a started server."""
    six = ":" in host
    family = socket.AF_INET6 if six else socket.AF_INET
    try:  # it listens before the address is said: whoever opens it at once waits, and is not refused
        return socket.create_server((host, port), family=family, dualstack_ipv6=six and socket.has_dualstack_ipv6())
    except OSError as error:
        why = str(error.strerror).partition(" (while attempting")[0]
        raise InputError(f"cannot listen on {host}, port {port}: {why}; --port 0 takes a free one") from None


def _user() -> str:
    """The name of whoever started the server, offered to the first visitor."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
