"""The pages beside the one that labels: what people can change there, where they disagree, and the page of a team."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

from badge.errors import InputError
from badge.labelling.board import tested
from badge.labelling.people import People
from badge.labelling.saving import save_model
from badge.labelling.session import Refused, Reply, Session
from badge.learner.advice import cohen_kappa, said_of_both

#: most rows of the list of disagreements, and of the list of pairs of classes that people confuse
ROWS, CONFUSED = 100, 30
#: the table of people shows the last HOURS hours in which somebody labelled
HOURS = 6


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
            raise Refused("You have not labelled this item, so you cannot correct it.")
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

    def disagreements(self) -> Reply:
        """Items on which people differ and nobody has decided, ties first; and how far people agree."""
        votes, ties, decided = self.learner.votes, set(self.team.ties()), self.team.decided()
        labels, skipped = self.learner.labels, self.learner.skipped
        differ = (id for id, given in votes.items() if len({_key(label) for label in given.values()}) > 1)
        split = sorted((id for id in differ if id not in decided and id not in skipped), key=lambda id: id not in ties)
        rows = []
        for id in split[:ROWS]:
            given = [{"by": by, "label": label} for by, label in votes[id].items()]
            item = {"id": str(id), "item": self.items.shown(id), "tie": id in ties}
            rows.append({**item, "votes": given, "label": labels.get(id)})
        shown = {"total": len(split), "ties": len(ties), "rows": rows}
        return {**shown, **agreement_of(votes), **self.session.state()}

    def dashboard(self) -> Reply:
        """Labels per person and hour, seconds per item (median), agreement, the learning curve."""
        told = self.team.times()
        hours = sorted({tell.at[:13] for tell in told if tell.at}, reverse=True)[:HOURS]
        agreement = agreement_of(self.learner.votes)
        links = {person.name: person for person in self.people.named}
        rows = []
        for name in dict.fromkeys([*links, *(str(tell.by) for tell in told)]):
            mine = [tell for tell in told if tell.by == name]
            times = [tell.seconds for tell in mine if tell.seconds is not None]
            per_hour = Counter((tell.at or "")[:13] for tell in mine)
            kappas = [pair["kappa"] for pair in agreement["pairs"] if name in (pair["one"], pair["other"])]
            known = [kappa for kappa in kappas if kappa is not None]
            person = links.get(name)
            link: dict[str, Any] = {"role": person and person.role, "link": person and person.token is not None}
            row = {"name": name, **link, "labels": len(mine), "hours": [per_hour[hour] for hour in hours]}
            row |= {"seconds": median(times) if times else None, "kappa": sum(known) / len(known) if known else None}
            rows.append(row)
        shown = {"hours": [hour + ":00:00Z" for hour in hours], "people": rows, "links": bool(links)}
        return {**shown, **agreement, "test": tested(self.team), **self.session.state()}

    def _changed(self) -> Reply:
        self.session.board.changed()
        self.session.picker.wake()
        return self.session.state()


def agreement_of(votes: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """Cohen's κ of each pair of people, agreement per class, and the classes that are confused.

    The agreement on a class is the share of pairs of votes in which both say it, among those in which one does.

    >>> found = agreement_of({1: {"ann": "a", "ben": "a"}, 2: {"ann": "b", "ben": "a"}, 3: {"ann": "b", "ben": "b"}})
    >>> found["pairs"][0]["kappa"], found["classes"][0], found["confused"]
    (0.4, {'name': 'a', 'pairs': 2, 'agreement': 0.5}, [{'one': 'a', 'other': 'b', 'count': 1}])
    """
    both = said_of_both({by: _key(label) for by, label in given.items()} for given in votes.values())
    pairs = [
        {"one": one, "other": other, "items": len(said), "same": sum(a == b for a, b in said), "kappa": _kappa(said)}
        for (one, other), said in both.items()
    ]
    said = [pair for found in both.values() for pair in found]
    together = Counter(a for a, b in said if a == b)
    confused = Counter(tuple(sorted(pair, key=str)) for pair in said if pair[0] != pair[1])
    alone = Counter(name for pair in confused.elements() for name in pair)
    classes = [
        {"name": _words(name), "pairs": (n := together[name] + alone[name]), "agreement": together[name] / n}
        for name in sorted({*together, *alone}, key=str)
    ]
    most = [{"one": _words(a), "other": _words(b), "count": n} for (a, b), n in confused.most_common(CONFUSED)]
    return {"pairs": pairs, "classes": sorted(classes, key=lambda row: row["agreement"]), "confused": most}


def _kappa(said: list[tuple[Any, Any]]) -> float | None:
    """Cohen's κ; None: both gave one label only."""
    value = cohen_kappa(*zip(*said, strict=True))
    return None if math.isnan(value) else round(value, 4)


def _key(label: Any) -> Any:
    return tuple(label) if isinstance(label, list) else label


def _words(label: Any) -> str:
    return ", ".join(map(str, label)) or "none" if isinstance(label, tuple) else str(label)
