"""Why a batch: the last one that a model picked, and its explanation in the ids of the caller."""

from dataclasses import replace

from badge.errors import InputError
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner.ids import Ids
from badge.learner.ledger import Ledger
from badge.outputs import Outputs
from badge.strategies.explain import Explanation, explain


def last_pick(now: Ledger) -> tuple[int, e.Ask]:
    """The last ask, which a model must have answered, and the number of its event."""
    if not now.asks:
        raise InputError("nothing was asked yet, so there is no batch to explain")
    number, ask = now.asks[-1]
    if ask.select_seconds is None or not ask.ids:
        raise InputError("no model picked the last batch: name the ids, explain(ids) is about the model of now")
    return number, ask


def explained(outputs: Outputs, named: list[Id], ids: Ids) -> Explanation:
    """The explanation of a batch, in the ids of the caller."""
    return replace(explain(outputs, ids.positions(named)), ids=ids.array(named))
