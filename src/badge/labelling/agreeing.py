"""Where people disagree and how far they agree; and the page of a team: who labelled how much and how fast."""

import math
from collections import Counter
from statistics import median
from typing import Any

from badge.labelling.board import tested
from badge.labelling.people import People
from badge.labelling.sources import Items
from badge.learner import ActiveLearner
from badge.learner.advice import cohen_kappa, said_of_both

#: disagreements that one page shows
ROWS = 100
#: pairs of classes that are confused most
CONFUSED = 30
#: hours that the table of people shows: the last in which somebody labelled
HOURS = 6


def disagreements(learner: ActiveLearner, items: Items) -> dict[str, Any]:
    """Items on which people differ and nobody has decided, ties first; and how far people agree."""
    votes, ties, decided = learner.votes, set(learner.team.ties()), learner.team.decided()
    labels, skipped = learner.labels, learner.skipped
    differ = (id for id, given in votes.items() if len({_key(label) for label in given.values()}) > 1)
    split = sorted((id for id in differ if id not in decided and id not in skipped), key=lambda id: id not in ties)
    rows = []
    for id in split[:ROWS]:
        given = [{"by": by, "label": label} for by, label in votes[id].items()]
        row = {"id": str(id), "item": items.shown(id), "votes": given, "tie": id in ties, "label": labels.get(id)}
        rows.append(row)
    return {"total": len(split), "ties": len(ties), "rows": rows, **agreement_of(votes)}


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


def dashboard(learner: ActiveLearner, people: People) -> dict[str, Any]:
    """Labels per person and hour, seconds per item (median), agreement, the learning curve."""
    told = learner.team.times()
    hours = sorted({tell.at[:13] for tell in told if tell.at}, reverse=True)[:HOURS]
    agreement = agreement_of(learner.votes)
    links = {person.name: person for person in people.named}
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
    return {**shown, **agreement, "test": tested(learner.team)}
