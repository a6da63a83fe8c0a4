"""Every label that was given: when, by whom, and what the model had predicted before."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from badge.errors import MissingExtraError
from badge.journal.events import Event, Id

__all__ = ["Given", "History", "history"]

#: rows of the table in a notebook
SHOWN = 20


@dataclass(frozen=True)
class Given:
    """One label that was given."""

    event: int  #: number of the event, and line of the journal
    at: str | None  #: when, UTC
    kind: str  #: initial, tell, unasked, import or relabel
    id: Id
    label: Any
    by: str | None
    round: int | None  #: of the ask that it answers
    predicted: Any  #: what the model that picked it took it for; None: no model picked it
    correct: bool | None  #: whether that is the label
    prequential: float | None  #: share of predictions so far that were right


class History:
    """A table of all labels given, in order: iterable, `len`, `[i]`, `to_pandas()`, and HTML in a notebook."""

    def __init__(self, rows: list[Given]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Given]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Given:
        return self.rows[index]

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, one row per label."""
        try:
            pandas: Any = importlib.import_module("pandas")
        except ImportError:
            raise MissingExtraError("to_pandas()", "pandas", "hf") from None
        return pandas.DataFrame([asdict(row) for row in self.rows], columns=COLUMNS)

    def _repr_html_(self) -> str:
        def cells(values: Iterable[Any], tag: str) -> str:
            return "".join(f"<{tag}>{'' if v is None else html.escape(_text(v))}</{tag}>" for v in values)

        body = "".join(f"<tr>{cells(asdict(row).values(), 'td')}</tr>" for row in self.rows[-SHOWN:])
        shown = f"the last {SHOWN} of {len(self):,} labels" if len(self) > SHOWN else f"{len(self):,} labels"
        return f"<table><caption>{shown}</caption><tr>{cells(COLUMNS, 'th')}</tr>{body}</table>"

    def __repr__(self) -> str:
        last = f", the last by {self.rows[-1].by} at {self.rows[-1].at}" if self.rows and self.rows[-1].at else ""
        return f"History({len(self):,} labels{last})"


COLUMNS = [field.name for field in fields(Given)]


def history(events: Iterable[Event]) -> History:
    """The labels in a journal's events.

    >>> told = {"event": "tell", "ids": [3], "labels": ["cat"], "by": "ann"}
    >>> [(row.id, row.label, row.by) for row in history([told])]
    [(3, 'cat', 'ann')]
    """
    rows: list[Given] = []
    predicted: dict[Id, Any] = {}
    rounds: dict[Id, int] = {}
    right = seen = 0

    def add(number: int, event: Event, kind: str, id: Id, label: Any) -> None:
        nonlocal right, seen
        said = predicted.get(id) if kind == "tell" else None
        correct = None if said is None else said == label
        seen, right = seen + (correct is not None), right + bool(correct)
        share = right / seen if seen else None
        asked = rounds.get(id) if kind in ("tell", "relabel") else None
        rows.append(Given(number, event.get("at"), kind, id, label, event.get("by"), asked, said, correct, share))

    for number, event in enumerate(events, start=1):
        kind = event["event"]
        if kind == "learner":
            for id, label in zip(event["initial"]["ids"], event["initial"]["labels"], strict=True):
                add(number, event, "initial", id, label)
        elif kind == "ask":
            rounds.update(dict.fromkeys(event["ids"], event["round"]))
            if event.get("predicted") is not None:
                predicted.update(zip(event["ids"], event["predicted"], strict=True))
        elif kind == "tell":
            way = "import" if "source" in event else "unasked" if event.get("unasked") else "tell"
            for id, label in zip(event["ids"], event["labels"], strict=True):
                add(number, event, way, id, label)
        elif kind == "relabel":
            add(number, event, "relabel", event["id"], event["label"])
    return History(rows)


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
