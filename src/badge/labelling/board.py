"""What is known so far, for the page: progress, labels per class, accuracy as it goes; the labels as a list and as files."""

import csv
import io
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from badge.core.spreadsheet import safe
from badge.journal.events import Id
from badge.labelling.sources import Items
from badge.learner import ActiveLearner
from badge.learner.advice import wilson
from badge.learner.history import Given
from badge.learner.team import Team, TestPoint

#: rows of the list of labels on one page
ROWS = 50
#: characters of a text in it
MOST_SHOWN = 1000
#: points of the line of accuracies, and predictions that each is taken over
POINTS, WINDOW = 60, 50
#: at most this share of the time goes into making overviews, however many labels there are
SHARE = 0.1
#: an overview that takes at most this many seconds is made at once
NO_COST = 0.01
#: columns of labels.csv, before the text
COLUMNS = ["id", "label", "by", "at", "votes", "seconds", "predicted", "test", "flagged", "comments"]
#: class -> its description, key and colour, if given
About = dict[str, dict[str, str]]


class Board:
    """Looks at a learner; nothing here changes it."""

    def __init__(self, learner: ActiveLearner, items: Items, per_item: int, about: About | None) -> None:
        self.learner, self.items, self.per_item, self.about = learner, items, per_item, about or {}
        self._lock = threading.Lock()
        self._overview: dict[str, Any] = {}
        self._stale, self._made, self._cost = True, 0.0, 0.0
        self._refresh()

    def changed(self) -> None:
        self._stale = True

    def overview(self) -> dict[str, Any]:
        """Progress, classes, accuracy and advice; with very many labels it may be a moment behind."""
        if self._stale and self._cost <= NO_COST:
            self._refresh()
        elif self._stale and time.monotonic() - self._made >= self._cost / SHARE and not self._lock.locked():
            threading.Thread(target=self._refresh, name="badge-board", daemon=True).start()  # nobody waits for it
        return self._overview

    def _refresh(self) -> None:
        with self._lock:
            if not self._stale:  # another thread was faster
                return
            self._stale = False
            started = time.thread_time()  # not the clock: waiting costs nobody anything
            self._overview = self._look()
            self._made, self._cost = time.monotonic(), time.thread_time() - started

    def _look(self) -> dict[str, Any]:
        labels, skipped = self.learner.labels, self.learner.skipped
        counts = Counter(one for label in labels.values() for one in _listed(label))
        advice = self.learner.advice()
        given = self.learner.history.rows
        return {
            "labelled": len(labels),
            "skipped": len(skipped),
            "size": len(self.items.source),
            "several": self.learner.team.multilabel,
            "of": self.per_item,
            "ties": len(self.learner.team.ties()) if self.per_item > 1 else 0,
            "classes": [{"name": n, "count": counts[n], **self.about.get(str(n), {})} for n in self.learner.classes],
            "people": Counter(row.by for row in given if row.by and row.kind != "relabel"),
            "curve": _curve([bool(row.correct) for row in given if row.correct is not None]),
            **{name: getattr(advice, name) for name in ("accuracy", "interval", "predictions", "stop", "changed")},
            "advice": advice.text,
            "test": tested(self.learner.team),
        }

    def _last(self) -> tuple[dict[Id, Given], dict[Id, Any]]:
        """By id: the last label that was given, and what the model had predicted."""
        rows = self.learner.history.rows
        return {row.id: row for row in rows}, {row.id: row.predicted for row in rows if row.predicted is not None}

    def find(self, **wanted: str) -> dict[str, Any]:
        """One page of all labels, the newest first, or of what was skipped.

        It may be of a class or person, with a text, flagged, or where the model was wrong.
        """
        labels, votes, flagged = self.learner.labels, self.learner.votes, self.learner.team.flagged
        last, predicted = self._last()
        rows: list[dict[str, Any]] = [
            {"id": id, "label": labels[id], "by": last[id].by, "at": last[id].at}
            | {"predicted": predicted.get(id), "flagged": id in flagged}
            for id in sorted(labels, key=lambda id: last[id].event, reverse=True)
        ]
        match wanted.get("show"):
            case "skipped":
                rows = [{"id": id, "reason": reason} for id, reason in reversed(self.learner.skipped.items())]
            case "flagged":
                rows = [row for row in rows if row["flagged"]]
            case "surprises":
                rows = [row for row in rows if row["predicted"] not in (None, row["label"])]
        if label := wanted.get("label"):
            rows = [row for row in rows if label in map(str, _listed(row.get("label")))]
        if by := wanted.get("by"):
            rows = [row for row in rows if row.get("by") == by or by in votes.get(row["id"], {})]
        if text := wanted.get("text", "").casefold():
            rows = [row for row in rows if text in f"{row['id']} {self.items.summary(row['id'])}".casefold()]
        asked = wanted.get("page", "")
        page = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
        shown = rows[page * ROWS : (page + 1) * ROWS]
        for row in shown:
            if own := wanted.get("own"):  # what this person said of an item
                alone = row.get("label") if row.get("by") == own else None
                row["own"] = votes.get(row["id"], {own: alone}).get(own)
            row |= {"id": str(row["id"]), "item": self.items.shown(row["id"])}
            if len(row["item"].get("text", "")) > MOST_SHOWN:
                row["item"]["text"] = row["item"]["text"][:MOST_SHOWN] + " …"
        return {"total": len(rows), "page": page, "pages": -(-len(rows) // ROWS), "rows": shown}

    def exported(self) -> list[dict[str, Any]]:
        """Every label in the order given. `by` names all who gave it; `votes` is empty if one person is asked."""
        learner, team = self.learner, self.learner.team
        votes, seconds, test = learner.votes, team.seconds(), team.test
        last, predicted = self._last()
        found = []
        for id, label in learner.labels.items():
            row = last[id]
            agreed = [name for name, vote in votes.get(id, {}).items() if vote == label]
            remarks, flagged = team.remarks(id)
            by = ", ".join(agreed) if agreed and row.kind not in ("relabel", "decide") else row.by
            said = {"id": id, "label": label, "by": by, "at": row.at, "votes": votes.get(id, {})}
            said |= {"seconds": seconds.get(id), "predicted": predicted.get(id), "test": id in test}
            found.append(said | {"flagged": flagged, "comments": [f"{by}: {text}" for by, text in remarks]})
        return found

    def as_csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        text = self.items.source.kind == "text"
        writer.writerow(COLUMNS + ["text"] * text)
        for row in self.exported():
            more = [self.items.summary(row["id"])] if text else []
            writer.writerow([safe(_cell(value)) for value in (*row.values(), *more)])
        return file.getvalue()

    def as_jsonl(self) -> str:
        lines = []
        for row in self.exported():
            item = self.items.shown(row["id"])
            more = {"text": item["text"]} if item["kind"] == "text" else dict(item.get("fields", []))
            lines.append(json.dumps({**more, **row}, ensure_ascii=False))
        return "\n".join(lines) + "\n" if lines else ""


def _listed(label: Any) -> list[Any]:
    return label if isinstance(label, list) else [label]


def tested(team: Team) -> dict[str, Any] | None:
    """The model on the test sample: accuracy with its interval, from batch to batch; None: there is no sample."""
    if not team.test:
        return None
    points = [point for point in team.curve() if point.known]
    shown = [{"labels": p.labels, "accuracy": p.right / p.known, "interval": wilson(p.right, p.known)} for p in points]
    last = shown[-1] if shown else dict.fromkeys(("accuracy", "interval"))
    now = {"labelled": team.tested(), "accuracy": last["accuracy"], "interval": last["interval"]}
    return {"size": len(team.test), **now, "curve": shown, "text": _slope(points)}


def _slope(points: Sequence[TestPoint]) -> str:
    """How far the curve is from flat: what the last half of the labels brought."""
    if not points:
        return "The first model is measured when a batch is picked."
    last = points[-1]
    if points[0].labels == last.labels:
        return "Whether it still rises is known after the next batch."
    half = min(points, key=lambda point: abs(point.labels - last.labels / 2))
    gain = 100 * (last.right / last.known - half.right / half.known)
    low, high = wilson(last.right, last.known)
    noise = 100 * (high - low) / 2
    verdict = "still rising" if gain > 0 else "falling"
    verdict = "flat as far as this sample can tell" if abs(gain) < noise / 2 else verdict
    return f"The last {last.labels - half.labels:,} labels changed it by {gain:+.1f} points: {verdict}."


def _curve(right: list[bool]) -> list[float]:
    """Share of right predictions over the last WINDOW of them, at some points along the way.

    >>> _curve([True, False])
    [1.0, 0.5]
    """
    sums = list(accumulate(right, initial=0))
    step = max(1, -(-len(right) // POINTS))
    ends = range(len(right) - (len(right) - 1) // step * step, len(right) + 1, step) if right else []
    return [round((sums[end] - sums[max(0, end - WINDOW)]) / min(end, WINDOW), 4) for end in ends]


def _cell(value: Any) -> str:
    """A value as one cell: nothing, a text, or JSON."""
    if value in (None, {}, [], False):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
