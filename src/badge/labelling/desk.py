"""What the lists of labels and of disagreements can change: labels, skips, comments, links."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from badge.errors import InputError
from badge.labelling.people import People
from badge.labelling.saving import save_model
from badge.labelling.session import Refused, Reply, Session


def once(call: Callable[..., Reply]) -> Callable[..., Reply]:
    """A call that has one effect, however often its request comes."""

    @wraps(call)
    def done(desk: Desk, request: str, name: str, *given: Any, **named: Any) -> Reply:
        return desk.session.once(request, name, None, lambda: call(desk, request, name, *given, **named))

    return done


class Desk:
    """Calls of the other pages, over one session."""

    def __init__(self, session: Session, people: People, home: str, model: Path) -> None:
        self.session, self.people, self.home, self.model = session, people, home, model
        self.items, self.team, self.learner = session.items, session.team, session.learner

    @once
    def change(self, request: str, name: str, ids: Any, labels: Any) -> Reply:
        """Set labels, many as one event, whatever people said; the reply holds the labels before."""
        if not isinstance(ids, list) or not isinstance(labels, list):
            raise InputError("“ids” and “labels” are lists")
        items = [self.items.id(id) for id in ids]
        before = [self.learner.item(item).label for item in items]
        self.team.decide(items, labels, name, request)
        return {"saved": True, "ids": ids, "before": before, **self._changed()}

    @once
    def correct(self, request: str, name: str, id: Any, label: Any) -> Reply:
        """Correct what this person said of an item."""
        item = self.items.id(id)
        if self.session.said_by(item, name) is None:
            raise Refused("This item has no label of yours, so there is none to correct.")
        self.team.relabel(item, label, name, request)
        self.session.label_twins(item, name)
        return {"saved": True, "id": id, **self._changed()}

    @once
    def take_back(self, request: str, name: str, id: Any, reason: str | None = None) -> Reply:
        """Turn a labelled item into a skipped one."""
        item = self.items.id(id)
        self.team.skip([item, *self.items.twins(item)], reason or None, name, request, labelled=True)
        return {"saved": True, "id": id, **self._changed()}

    @once
    def unskip(self, request: str, name: str, id: Any) -> Reply:
        item = self.items.id(id)
        self.team.unskip([item, *self.session.twins(item, skipped=True)], request)
        return {"saved": True, "id": id, **self._changed()}

    @once
    def remark(self, request: str, name: str, id: Any, text: str | None = None, flag: Any = None) -> Reply:
        item = self.items.id(id)
        self.team.remark(item, name, text or None, flag if isinstance(flag, bool) else None, request)
        return {"saved": True, **self.session.remarks(item)}

    def link(self, person: str, role: str | None = None) -> Reply:
        """The link of a person, made if there is none."""
        if not self.people.named:  # with the first personal link the one for everybody stops working
            raise InputError("this page has one link for everybody: start it with --people to give each person a link")
        made = self.people.add(person, role, renew=True)
        return {"saved": True, "name": made.name, "link": f"{self.home}/?token={made.token}"}

    def revoke(self, person: str) -> Reply:
        self.people.revoke(person)
        return {"saved": True, "name": person}

    def save(self) -> Reply:
        return {"saved": True, "folder": str(save_model(self.learner, self.session.source.kind, self.model).resolve())}

    def _changed(self) -> Reply:
        self.session.board.changed()
        self.session.picker.wake()
        return self.session.state()
