"""Labels out of the page, as CSV and JSON lines: with every vote, times, predictions, comments."""

import csv
import io
import json
from typing import Any

from badge.core.spreadsheet import safe
from badge.labelling.items import Items
from badge.learner import ActiveLearner

COLUMNS = ("id", "label", "by", "at", "votes", "seconds", "predicted", "test", "flagged", "comments")


class Exports:
    """Looks at a learner; nothing here changes it."""

    def __init__(self, learner: ActiveLearner, items: Items) -> None:
        self.learner, self.items = learner, items

    def rows(self) -> list[dict[str, Any]]:
        """Every label in the order given. `by` names all who gave it; `votes` is empty where one person is asked."""
        learner, team = self.learner, self.learner.team
        votes, seconds = learner.votes, team.seconds()
        last = {row.id: row for row in learner.history.rows}
        predicted = {row.id: row.predicted for row in last.values() if row.predicted is not None}
        found = []
        for id, label in learner.labels.items():
            row = last.get(id)
            agreed = [name for name, vote in votes.get(id, {}).items() if vote == label]
            remarks, flagged = team.remarks(id)
            decided = row is not None and row.kind in ("relabel", "decide")
            found.append(
                {
                    "id": id,
                    "label": label,
                    "by": ", ".join(agreed) if agreed and not decided else row.by if row else None,
                    "at": row.at if row else None,
                    "votes": votes.get(id, {}),
                    "seconds": seconds.get(id),
                    "predicted": predicted.get(id),
                    "test": id in team.test,
                    "flagged": flagged,
                    "comments": [f"{by}: {text}" for by, text in remarks],
                }
            )
        return found

    def as_csv(self) -> str:
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        text = self.items.source.kind == "text"
        writer.writerow([*COLUMNS, *(["text"] if text else [])])
        for row in self.rows():
            more = [self.items.source.pool[self.items.position(row["id"])]] if text else []
            writer.writerow([safe(_cell(value)) for value in (*row.values(), *more)])
        return file.getvalue()

    def as_jsonl(self) -> str:
        lines = []
        for row in self.rows():
            item = self.items.shown(row["id"])
            more = {"text": item["text"]} if item["kind"] == "text" else dict(item.get("fields", []))
            lines.append(json.dumps({**more, **row}, ensure_ascii=False))
        return "\n".join(lines) + "\n" if lines else ""


def _cell(value: Any) -> str:
    """A value as one cell: nothing, a text, or JSON."""
    if value in (None, {}, [], False):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
