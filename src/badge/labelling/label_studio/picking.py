"""Picks for a project. Each round makes a new learner from the labels that the project has now."""

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from badge.core.progress import bar
from badge.core.writing import cache_folder, folder_for, replacing
from badge.labelling.images import ENDINGS, ImageFiles
from badge.labelling.label_studio.client import Client
from badge.labelling.label_studio.layout import Project
from badge.labelling.label_studio.rounds import Picks
from badge.labelling.models import trainer_of
from badge.learner import ActiveLearner


def picks_for(client: Client, strategy: str, seed: int, encoder: str | None = None, model: str | None = None) -> Picks:
    """Picks by a strategy and a new model. The pool leaves out tasks that people skipped or disagree about."""

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


def _name(server: str, address: Any) -> str:
    """A file name for an address. It keeps the ending of an image; other addresses get .png."""
    ending = PurePosixPath(urlsplit(address).path).suffix.lower()
    return hashlib.sha256(f"{server}\n{address}".encode()).hexdigest()[:32] + (ending if ending in ENDINGS else ".png")
