"""The history of a loop: every label that was given, with what the model had predicted and how often it was right so far."""

import html
from collections import UserList
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from badge.core.importing import needs
from badge.journal import events as e
from badge.journal.events import Id

#: rows of the table in a notebook
SHOWN = 20


@dataclass(frozen=True)
class Given:
    event: int  #: number of the event, and line of the journal
    at: str | None  #: when, UTC
    kind: str  #: initial, tell, unasked, import, relabel or decide
    id: Id
    label: Any
    by: str | None
    round: int | None  #: the round of the ask that it answers
    predicted: Any  #: the prediction of the model that picked it; None: no model picked it
    correct: bool | None  #: whether the prediction is the label
    prequential: float | None  #: share of right predictions so far


class History(UserList[Given]):
    """A table of all labels given, in order: iterable, `len`, `[i]`, `to_pandas()`, and HTML in a notebook."""

    @property
    def rows(self) -> list[Given]:
        return self.data

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, one row per label."""
        with needs("to_pandas()", "pandas", "hf"):
            import pandas
        return pandas.DataFrame([asdict(row) for row in self.rows], columns=COLUMNS)

    def _repr_html_(self) -> str:
        def cells(values: Iterable[Any], tag: str) -> str:
            texts = ("" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in values)
            return "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)

        body = "".join(f"<tr>{cells(asdict(row).values(), 'td')}</tr>" for row in self.rows[-SHOWN:])
        shown = f"the last {SHOWN} of {len(self):,} labels" if len(self) > SHOWN else f"{len(self):,} labels"
        return f"<table><caption>{shown}</caption><tr>{cells(COLUMNS, 'th')}</tr>{body}</table>"

    def __repr__(self) -> str:
        last = f", the last by {self.rows[-1].by} at {self.rows[-1].at}" if self.rows and self.rows[-1].at else ""
        return f"History({len(self):,} labels{last})"


COLUMNS = [field.name for field in fields(Given)]


class Story:
    """Reads a journal's events, a few at a time; `read` gives the `History` so far.

    >>> told = e.Tell(ids=[3], labels=["cat"], by="ann")
    >>> [(row.id, row.label, row.by) for row in Story().read([told])]
    [(3, 'cat', 'ann')]
    """

    def __init__(self) -> None:
        self.events = 0  # that were read
        self._rows: list[Given] = []
        self._predicted: dict[Id, Any] = {}
        self._rounds: dict[Id, int] = {}
        self._right = self._seen = 0

    def read(self, records: Iterable[e.Record]) -> History:
        """Read on with the events that follow."""
        for record in records:
            self.events += 1
            match record:
                case e.Header():
                    self._add(record, "initial", record.initial.ids, record.initial.labels)
                case e.Ask():
                    self._rounds.update(dict.fromkeys(record.ids, record.round))
                    self._predicted.update(zip(record.ids, record.predicted or (), strict=False))
                case e.Tell():
                    way = "import" if record.source is not None else "unasked" if record.unasked else "tell"
                    self._add(record, way, record.ids, record.labels, record.by)
                case e.Decide():
                    self._add(record, "decide", record.ids, record.labels, record.by)
                case e.Relabel():
                    self._add(record, "relabel", [record.id], [record.label], record.by)
        return History(self._rows)

    def _add(self, record: e.Record, kind: str, ids: list[Id], labels: list[Any], by: str | None = None) -> None:
        for id, label in zip(ids, labels, strict=True):
            said = self._predicted.get(id) if kind == "tell" else None
            correct = None if said is None else said == label
            self._seen, self._right = self._seen + (correct is not None), self._right + bool(correct)
            share = self._right / self._seen if self._seen else None
            asked = self._rounds.get(id) if kind in ("tell", "relabel") else None
            self._rows.append(Given(self.events, record.at, kind, id, label, by, asked, said, correct, share))


def history(records: Iterable[e.Record]) -> History:
    """The labels in a journal's events."""
    return Story().read(records)
