"""One round: read the project, train, pick, put the picks first. `watch` runs rounds while people annotate.

Label Studio serves a project with "Uncertainty sampling" by rising prediction score, among the tasks with predictions of
the project's current model version, and at random if there are none. So each pick gets a prediction with its place as the
score, and no other task has one. The project's model version is set to theirs, and the predictions of earlier rounds go. With
several annotators Label Studio takes any of these tasks, so that two people do not get the same one.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

from badge.core.progress import bar
from badge.core.writing import cache_folder, folder_for, replacing
from badge.errors import ServerError
from badge.labelling.images import ENDINGS, ImageFiles
from badge.labelling.label_studio.client import Client
from badge.labelling.label_studio.layout import Layout, Project, layout_of, read
from badge.labelling.models import trainer_of
from badge.learner import ActiveLearner

#: Our model versions start with this. We delete no others.
PREFIX = "badge-"
SAMPLING = "Uncertainty sampling"

#: (project, k) -> the task ids to label next in pick order, and the model's guess of each (None: no model yet)
Picks = Callable[[Project, int], tuple[list[int], list[str | None]]]
Say = Callable[[str], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Settings:
    """The options of a round."""

    batch_size: int = 20
    again_after: int = 10  #: number of new or changed labels that starts another round
    every: float = 10.0  #: seconds between two looks
    control: str | None = None
    show_guess: bool = False  #: put the model's guess into the form: it saves clicks, and biases
    name: str = ""  #: describes strategy, seed and model, which the picks depend on


@dataclass(frozen=True)
class Round:
    """The project as it was read, and the model version that puts the picks first."""

    project: Project
    version: str
    picks: tuple[int, ...]

    def __str__(self) -> str:
        labels, left = len(self.project.labels), len(self.project.open)
        people = {who for by in self.project.given.values() for who in by}
        by = f" by {len(people)} people" if len(people) > 1 else ""
        return f"{labels:,} labels{by}, {left:,} tasks open; {len(self.picks)} picks come first ({self.version})"


def run_round(client: Client, pick: Picks, settings: Settings, say: Say) -> Round:
    """Read, pick and put the picks first. Does nothing if the picks of this state are first already."""
    found = client.settings()
    layout = layout_of(found["label_config"], settings.control)
    project, placed = _read(client, layout)
    for note in project.odd:
        say(note)
    version = PREFIX + project.digest(settings.batch_size, settings.name)
    if found["model_version"] == version and found["sampling"] == SAMPLING and version in placed:
        return Round(project, version, tuple(placed[version]))
    k = min(settings.batch_size, len(project.open))
    if k == 0:
        return Round(project, version, ())
    ids, guesses = pick(project, k)
    _put_first(client, layout, version, ids, guesses if settings.show_guess else [None] * len(ids))
    return Round(project, version, tuple(ids))


def watch(client: Client, pick: Picks, settings: Settings, say: Say, rounds: int | None = None) -> None:
    """Run rounds until interrupted, or `rounds` of them. Waits for a server that is away.

    A round begins when enough labels are new or changed since the last one, or when all its picks are labelled.
    """
    for number in count(1):
        last: Round = _patiently(partial(run_round, client, pick, settings, say), settings, say)
        say(str(last))
        if number == rounds:
            return
        while True:
            time.sleep(settings.every)
            now, _ = _patiently(partial(_read, client, last.project.layout), settings, say)
            changed = len(set(now.labels.items()) ^ set(last.project.labels.items()))
            if changed >= settings.again_after or (now != last.project and set(now.open).isdisjoint(last.picks)):
                break


def _read(client: Client, layout: Layout) -> tuple[Project, dict[str, list[int]]]:
    """The project, and the tasks with our predictions: by version, in the order of their scores."""
    tasks = list(client.tasks())
    placed: dict[str, list[tuple[float, int]]] = {}
    for task in tasks:
        for prediction in task["predictions"]:
            if str(prediction["model_version"]).startswith(PREFIX):
                placed.setdefault(prediction["model_version"], []).append((prediction["score"], task["id"]))
    ordered = {version: [task for _, task in sorted(scored)] for version, scored in placed.items()}
    return read(layout, tasks, client.people()), ordered


def _put_first(client: Client, layout: Layout, version: str, ids: list[int], guesses: list[str | None]) -> None:
    """Put tasks first. The order of the calls keeps the project usable if the program ends between two of them."""
    old = [name for name in client.versions() if name.startswith(PREFIX)]
    if version in old:  # a round that was cut off between its predictions and the switch
        client.delete_version(version)
    rising = [place / (len(ids) + 1) for place in range(1, len(ids) + 1)]
    client.predict(
        {"task": task, "score": score, "result": layout.result_of(guess) if guess else [], "model_version": version}
        for task, score, guess in zip(ids, rising, guesses, strict=True)
    )
    client.change(model_version=version, sampling=SAMPLING)
    for name in old:
        if name != version:
            client.delete_version(name)


def _patiently(call: Callable[[], Answer], settings: Settings, say: Say) -> Answer:
    """Repeat a call until the server is back, and say so once."""
    told = False
    while True:
        try:
            return call()
        except ServerError as error:
            if not error.passing:
                raise
            if not told:
                say(f"{error}; still trying")
                told = True
            time.sleep(settings.every)


def picks_for(client: Client, strategy: str, seed: int, encoder: str | None = None, model: str | None = None) -> Picks:
    """Picks by a strategy and a new model in each round. The pool leaves out tasks that people skipped or disagree about."""

    def pick(project: Project, k: int) -> tuple[list[int], list[str | None]]:
        labels, layout = project.labels, project.layout
        tasks = sorted([*labels, *project.open])
        shown = [project.items[task] for task in tasks]
        learner = ActiveLearner(
            ImageFiles(fetched(client, shown)) if layout.kind == "image" else shown,
            trainer_of(layout.kind, len(layout.classes), encoder, model),
            classes=list(layout.classes),
            strategy=strategy,
            seed=seed,
            initial={place: labels[task] for place, task in enumerate(tasks) if task in labels},
        )
        with learner:
            places = learner.ask(k)
            guesses: Sequence[str | None] = [None] * k
            if len(set(labels.values())) > 1:
                likeliest = learner.outputs[places].probabilities.argmax(dim=1)
                guesses = [layout.classes[int(code)] for code in likeliest]
        return [tasks[int(place)] for place in places], list(guesses)

    return pick


def fetched(client: Client, addresses: Sequence[str]) -> list[Path]:
    """The files at these addresses. Each is fetched once and kept in the user's cache."""
    folder = folder_for(cache_folder() / "label-studio")
    paths = [folder / _name(client.url, address) for address in addresses]
    missing = [(path, address) for path, address in zip(paths, addresses, strict=True) if not path.exists()]
    with bar("fetching images", len(missing), enabled=len(missing) > 10) as advance:
        for path, address in missing:
            content = client.file(address)
            with replacing(path, binary=True) as file:
                file.write(content)
            advance(1)
    return paths


def _name(server: str, address: str) -> str:
    """A file name for an address. It keeps the ending of an image; other addresses get .png."""
    ending = PurePosixPath(urlsplit(address).path).suffix.lower()
    return hashlib.sha256(f"{server}\n{address}".encode()).hexdigest()[:32] + (ending if ending in ENDINGS else ".png")
