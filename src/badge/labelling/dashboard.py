"""The page of a team: who labelled how much and how fast, how far people agree, how good the model is."""

from collections import Counter
from statistics import median
from typing import Any

from badge.labelling.agreeing import agreement_of
from badge.labelling.board import tested
from badge.labelling.people import People
from badge.learner import ActiveLearner

#: hours that the table shows: the last in which somebody labelled
HOURS = 6


def dashboard(learner: ActiveLearner, people: People) -> dict[str, Any]:
    """Labels per person and hour, seconds per item (median), agreement, the learning curve."""
    told = learner.team.times()
    hours = sorted({tell.at[:13] for tell in told if tell.at}, reverse=True)[:HOURS]
    agreement = agreement_of(learner.votes)
    links = {person.name: person for person in people.named}
    rows = []
    for name in {**dict.fromkeys(links), **dict.fromkeys(str(tell.by) for tell in told)}:
        mine = [tell for tell in told if tell.by == name]
        times = [tell.seconds for tell in mine if tell.seconds is not None]
        per_hour = Counter((tell.at or "")[:13] for tell in mine)
        kappas = [pair["kappa"] for pair in agreement["pairs"] if name in (pair["one"], pair["other"])]
        known = [kappa for kappa in kappas if kappa is not None]
        person = links.get(name)
        rows.append(
            {
                "name": name,
                "role": person.role if person else None,
                "link": person.token is not None if person else None,
                "labels": len(mine),
                "hours": [per_hour[hour] for hour in hours],
                "seconds": median(times) if times else None,
                "kappa": sum(known) / len(known) if known else None,
            }
        )
    return {
        "hours": [hour + ":00:00Z" for hour in hours],
        "people": rows,
        **agreement,
        "test": tested(learner.team),
        "links": bool(links),
    }
