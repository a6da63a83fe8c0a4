"""What is known so far, for the page: progress, labels per class, accuracy as it goes, the list of labels, exports."""

from __future__ import annotations

import csv
import io
import json
import threading
import time
from collections import Counter
from typing import Any

from badge.core.spreadsheet import safe
from badge.labelling.sources import Source
from badge.learner import ActiveLearner

__all__ = ["Board"]

#: rows of the list of labels on one page
ROWS = 50
#: characters of a text in it
MOST_SHOWN = 1000
#: points of the line of accuracies, and predictions that each is taken over
POINTS, WINDOW = 60, 50
#: an overview is made again at most this share of the time, however many labels there are
SHARE = 0.1
#: seconds of computing that are not worth waiting for
NO_COST = 0.01


class Board:
    """Looks at a learner; nothing here changes it."""

    def __init__(self, learner: ActiveLearner, source: Source) -> None:
        self.learner, self.source = learner, source
        self._lock = threading.Lock()
        self._overview: dict[str, Any] = {}
        self._stale, self._made, self._cost = True, 0.0, 0.0
        self._refresh()

    def changed(self) -> None:
        """Something was labelled, skipped or corrected."""
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
        counts, advice = Counter(labels.values()), self.learner.advice()
        given = self.learner.history.rows
        return {
            "labelled": len(labels),
            "skipped": len(skipped),
            "size": len(self.source),
            "classes": [{"name": name, "count": counts[name]} for name in self.learner.classes],
            "people": Counter(row.by for row in given if row.by and row.kind != "relabel"),
            "accuracy": advice.accuracy,
            "interval": advice.interval,
            "predictions": advice.predictions,
            "curve": _curve([bool(row.correct) for row in given if row.correct is not None]),
            "stop": advice.stop,
            "changed": advice.changed,
            "advice": advice.text,
        }

    # -- the list ------------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Every label, the newest first, with who gave it, when, and what the model had taken it for."""
        labels = self.learner.labels
        last = {row.id: row for row in self.learner.history.rows}
        predicted = {row.id: row.predicted for row in self.learner.history.rows if row.predicted is not None}
        order = sorted(labels, key=lambda id: last[id].event if id in last else 0, reverse=True)
        return [
            {
                "id": id,
                "label": labels[id],
                "by": last[id].by if id in last else None,
                "at": last[id].at if id in last else None,
                "predicted": predicted.get(id),
            }
            for id in order
        ]

    def find(self, position: Any, **wanted: str) -> dict[str, Any]:
        """One page of the list: of a class, of a person, with a text in it, where the model disagreed, or skipped ones."""
        if wanted.get("show") == "skipped":
            rows: list[dict[str, Any]] = [
                {"id": id, "reason": reason} for id, reason in reversed(self.learner.skipped.items())
            ]
        else:
            rows = self.rows()
        if wanted.get("show") == "surprises":
            rows = [row for row in rows if row["predicted"] is not None and row["predicted"] != row["label"]]
        for field in ("label", "by"):
            if wanted.get(field):
                rows = [row for row in rows if str(row.get(field)) == wanted[field]]
        if text := wanted.get("text", "").casefold():
            rows = [row for row in rows if text in f"{row['id']} {self.source.summary(position(row['id']))}".casefold()]
        page = max(0, int(wanted.get("page") or 0))
        shown = rows[page * ROWS : (page + 1) * ROWS]
        for row in shown:
            row["item"] = self.source.shown(position(row["id"]))
            if len(row["item"].get("text", "")) > MOST_SHOWN:
                row["item"]["text"] = row["item"]["text"][:MOST_SHOWN] + " …"
        return {"total": len(rows), "page": page, "pages": -(-len(rows) // ROWS), "rows": shown}

    # -- out of here ---------------------------------------------------------------------------------------------

    def as_csv(self, position: Any) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        text = self.source.kind == "text"
        writer.writerow(["id", "label", "by", "at", *(["text"] if text else [])])
        for row in self.rows():
            more = [self.source.pool[position(row["id"])]] if text else []
            cells = [row["id"], row["label"], row["by"] or "", row["at"] or "", *more]
            writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in cells])
        return file.getvalue()

    def as_jsonl(self, position: Any) -> str:
        lines = []
        for row in self.rows():
            item = self.source.shown(position(row["id"]))
            more = {"text": item["text"]} if item["kind"] == "text" else dict(item.get("fields", []))
            kept = {key: row[key] for key in ("id", "label", "by", "at")}
            lines.append(json.dumps({**kept, **{k: v for k, v in more.items() if k not in kept}}, ensure_ascii=False))
        return "\n".join(lines) + "\n" if lines else ""


def _curve(right: list[bool]) -> list[float]:
    """Share of right predictions over the last WINDOW of them, at some points along the way.

    >>> _curve([True, False])
    [1.0, 0.5]
    """
    sums = [0]
    for one in right:
        sums.append(sums[-1] + one)
    step = max(1, -(-len(right) // POINTS))
    ends = range(len(right) - (len(right) - 1) // step * step, len(right) + 1, step) if right else []
    return [round((sums[end] - sums[max(0, end - WINDOW)]) / min(end, WINDOW), 4) for end in ends]
