"""The state of a project. Each round reads it again from the server, so that nothing has to be kept here.

The next round sees whatever changed: relabelled, deleted and skipped tasks, new annotators, annotations that came
while a model trained.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from badge.labelling.label_studio.layout import Layout


@dataclass(frozen=True)
class Project:
    """Tasks that have the field of the question, and the answers of people."""

    layout: Layout
    items: dict[int, str]  #: task id -> its text, or the address of its image
    given: dict[int, dict[str, str]]  #: task id -> who -> class
    skipped: frozenset[int]  #: tasks that somebody skipped and nobody labelled
    odd: tuple[str, ...] = ()  #: notes about what was left out

    @property
    def labels(self) -> dict[int, str]:
        """Task id -> the class that most annotators gave. A tie is no label."""
        found = {task: majority(by.values()) for task, by in self.given.items()}
        return {task: label for task, label in found.items() if label is not None}

    @property
    def open(self) -> list[int]:
        """Tasks that nobody has annotated: those that can be picked."""
        return [task for task in self.items if task not in self.given and task not in self.skipped]

    @property
    def annotations(self) -> int:
        return sum(map(len, self.given.values()))

    def digest(self, *settings: object) -> str:
        """A digest of everything that picks depend on. While it stays the same, no new picks are needed."""
        state = (self.layout, list(self.items), sorted(self.labels.items()), sorted(self.open), settings)
        return hashlib.sha256(repr(state).encode()).hexdigest()[:12]


def read(layout: Layout, tasks: Iterable[Mapping[str, Any]], people: Mapping[int, str]) -> Project:
    """The state of a project from its tasks."""
    items: dict[int, str] = {}
    given: dict[int, dict[str, str]] = {}
    skipped: set[int] = set()
    without: list[int] = []
    unknown: Counter[str] = Counter()
    for task in tasks:
        shown = task["data"].get(layout.field)
        if not isinstance(shown, str) or not shown.strip():
            without.append(task["id"])
            continue
        items[task["id"]] = shown
        for annotation in sorted(
            task["annotations"], key=lambda a: a["updated_at"]
        ):  # the last answer of a person counts
            if annotation["was_cancelled"]:
                skipped.add(task["id"])
                continue
            label = layout.choice_of(annotation["result"])
            if label in layout.classes:
                given.setdefault(task["id"], {})[_who(annotation, people)] = label
            elif label is not None:
                unknown[label] += 1
            else:
                skipped.add(task["id"])  # submitted without an answer: do not put it first again
    notes = [f"{len(without)} tasks (first: {without[0]}) have no {layout.field!r} and are left out"] if without else []
    notes += [f"{n} annotations say {label!r}, which is no longer a choice" for label, n in unknown.items()]
    return Project(layout, items, given, frozenset(skipped - given.keys()), tuple(notes))


def majority(labels: Iterable[str]) -> str | None:
    """The most frequent label; None in a tie.

    >>> majority(["a", "b", "a"]), majority(["a", "b"])
    ('a', None)
    """
    (first, most), *rest = Counter(labels).most_common(2)
    return None if rest and rest[0][1] == most else first


def _who(annotation: Mapping[str, Any], people: Mapping[int, str]) -> str:
    by = annotation["completed_by"]
    number = by["id"] if isinstance(by, Mapping) else by
    return people.get(number, f"user {number}")
