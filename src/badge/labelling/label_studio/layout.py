"""A project: the question that its labelling configuration asks, and the state of its tasks."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from badge.errors import InputError
from badge.labelling.sources import Kind
from badge.learner.classes import majority

KINDS: dict[str, Kind] = {"Text": "text", "HyperText": "text", "Image": "image"}


@dataclass(frozen=True)
class Layout:
    """One question: a `Choices` control, the object that it is about, and the classes."""

    control: str  #: name of the Choices tag: `from_name` of a result
    object: str  #: name of the Text or Image tag: `to_name`
    kind: Kind  #: "text" or "image"
    field: str  #: the key of a task's data that holds the text or the image's address
    classes: tuple[str, ...]

    def choice_of(self, result: Sequence[Mapping[str, Any]]) -> str | None:
        """The class in an annotation's result; None if the question was not answered."""
        for part in result:
            if part.get("from_name") == self.control and part.get("type") == "choices":
                chosen = part["value"].get("choices", [])
                return str(chosen[0]) if len(chosen) == 1 else None
        return None

    def result_of(self, choice: str) -> list[dict[str, Any]]:
        value = {"choices": [choice]}
        return [{"from_name": self.control, "to_name": self.object, "type": "choices", "value": value}]


def layout_of(config: str, control: str | None = None) -> Layout:
    """The question of a labelling configuration; `control` names one of several.

    >>> layout_of('''<View><Text name="t" value="$review"/><Choices name="c" toName="t" choice="single">
    ... <Choice value="good"/><Choice value="bad"/></Choices></View>''')
    Layout(control='c', object='t', kind='text', field='review', classes=('good', 'bad'))
    """
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise InputError(f"the project's labelling configuration is not XML: {error}") from None
    found = {str(tag.get("name")): tag for tag in root.iter("Choices")}
    if control is not None and control not in found:
        raise InputError(f"the project has no Choices named {control!r}; it has: {', '.join(found) or 'none'}")
    if control is None and len(found) != 1:
        ask = f"name one with --control: {', '.join(found)}" if found else "add <Choices> to its labelling interface"
        raise InputError(f"picks need one question, and the project has {len(found)} <Choices>: {ask}")
    name = control or next(iter(found))
    tag = found[name]
    if tag.get("choice", "single") not in ("single", "single-radio"):
        raise InputError(f"<Choices name={name!r}> lets one choose several; badge picks for one class per task")
    classes = tuple(str(choice.get("alias") or choice.get("value")) for choice in tag.iter("Choice"))
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise InputError(f"<Choices name={name!r}> has {', '.join(classes) or 'no choices'}: two or more are needed")
    about = {str(other.get("name")): other for other in root.iter() if other.get("name")}.get(str(tag.get("toName")))
    if about is None or about.tag not in KINDS or not str(about.get("value", "")).startswith("$"):
        shown = "nothing" if about is None else f"<{about.tag} value={about.get('value')!r}>"
        raise InputError(f"<Choices name={name!r}> is about {shown}: a <Text> or an <Image> with a $field is needed")
    return Layout(name, str(about.get("name")), KINDS[about.tag], str(about.get("value"))[1:], classes)


@dataclass(frozen=True)
class Project:
    """Tasks that have the field of the question, and the answers of people.

    Each round reads it again from the server: it sees tasks that were relabelled, deleted or skipped meanwhile.
    """

    layout: Layout
    items: dict[int, str]  #: task id -> its text, or the address of its image
    given: dict[int, dict[str, str]]  #: task id -> who -> class
    skipped: frozenset[int]  #: tasks that somebody skipped and nobody labelled
    odd: tuple[str, ...] = ()  #: notes about what was left out

    @property
    def labels(self) -> dict[int, str]:
        """Task id -> the class that most annotators gave. A tie gives none."""
        found = {task: majority(by.values()) for task, by in self.given.items()}
        return {task: label for task, label in found.items() if label is not None}

    @property
    def open(self) -> list[int]:
        """Tasks that nobody has annotated: those that can be picked."""
        return [task for task in self.items if task not in self.given and task not in self.skipped]

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
        for annotation in sorted(task["annotations"], key=lambda one: one["updated_at"]):  # a person's last one counts
            label = None if annotation["was_cancelled"] else layout.choice_of(annotation["result"])
            if label in layout.classes:
                by = annotation["completed_by"]
                number = by["id"] if isinstance(by, Mapping) else by
                given.setdefault(task["id"], {})[people.get(number, f"user {number}")] = label
            elif label is not None:
                unknown[label] += 1
            else:
                skipped.add(task["id"])  # also one submitted without an answer: do not put it first again
    notes = [f"{len(without)} tasks (first: {without[0]}) have no {layout.field!r} and are left out"] if without else []
    notes += [f"{n} annotations say {label!r}, which is no longer a choice" for label, n in unknown.items()]
    return Project(layout, items, given, frozenset(skipped - given.keys()), tuple(notes))
