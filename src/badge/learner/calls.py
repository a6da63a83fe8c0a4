"""The calls of a loop, checked and turned into events; None: there is nothing to write. Nothing changes here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from badge.errors import InputError
from badge.journal import events as e
from badge.journal.events import Id
from badge.learner.classes import Code, short
from badge.learner.ids import as_list

if TYPE_CHECKING:
    from badge.learner.ledger import Ledger

#: an event that was checked, and its labels as positions of their classes
Checked = tuple[e.Record, Sequence[Code]]


def initial(ledger: Ledger, labels: Mapping[Any, Any]) -> e.Initial:
    ids = ledger.ids.plain(list(labels))
    codes = dict(zip(ids, ledger.encode(ids, list(labels.values())), strict=True))
    ordered = ledger.ids.sort(codes)  # the order of the mapping means nothing
    return e.Initial(ids=ordered, labels=[ledger.classes.decode(codes[id]) for id in ordered])


def tell(
    ledger: Ledger, ids: Any, labels: Any, by: str | None = None, unasked: bool = False, people: int = 1
) -> tuple[e.Tell, list[Code]] | None:
    """The event that tells `labels`, without those that are known already; None if all are.

    With `people` > 1 the labels are votes, also of ids that nobody was asked about.
    """
    by = _person(by)
    new: dict[Id, Code] = {}
    for id, code in zip(*_coded(ledger, ids, labels), strict=True):
        known = new.get(id, _known(ledger, id, by, people))
        if known is None:
            _check_tellable(ledger, id, unasked)
            new[id] = code
        elif known != code:
            old, told = ledger.classes.decode(known), ledger.classes.decode(code)
            again = f", by={by!r}" if id in ledger.votes else ""
            twice = f"id {id!r} is labelled {old!r} and was told again as {told!r}"
            if id in new:
                raise InputError(f"{twice}: tell it once")
            raise InputError(twice, in_python=f"relabel({id!r}, {told!r}{again}) corrects a label")
    if not new:
        return None
    codes = list(new.values())
    told = [ledger.classes.decode(code) for code in codes]
    return e.Tell(ids=list(new), labels=told, by=by, unasked=unasked, people=people), codes


def decide(ledger: Ledger, ids: Sequence[Id], labels: Sequence[Any], by: str) -> Checked:
    """The event of one person setting labels, whatever others said."""
    plain, codes = _coded(ledger, ids, labels)
    return e.Decide(ids=plain, labels=[ledger.classes.decode(code) for code in codes], by=by), codes


def relabel(ledger: Ledger, id: Any, label: Any, by: str | None = None) -> Checked | None:
    """The event of correcting a label, or one person's; None if it is that already."""
    (plain,), by = ledger.ids.plain([id]), _person(by)
    code = ledger.classes.encode(label, plain)
    votes = ledger.votes.get(plain, {})
    if votes and by is not None and by not in votes:
        raise InputError(f"{by!r} has not labelled id {plain!r}, so there is nothing to correct: tell it first")
    if plain not in ledger.labels and not votes:
        first = "tell" if plain in ledger.pending else "ask"
        raise InputError(f"id {plain!r} has no label to correct: {first} it first")
    known = votes[by] if votes and by is not None else ledger.labels.get(plain)
    return None if known == code else (e.Relabel(id=plain, label=ledger.classes.decode(code), by=by), [code])


def skip(ledger: Ledger, ids: Any, reason: str | None = None, labelled: bool = False) -> Checked | None:
    plain = ledger.ids.plain(ids)
    reason = _text(reason, "a reason is a text")
    taken = [] if labelled else [id for id in plain if id in ledger.labels]
    if taken:
        raise InputError(f"id {taken[0]!r} is labelled, so it cannot be skipped: relabel corrects a label")
    new = [id for id in dict.fromkeys(plain) if id not in ledger.skipped or ledger.skipped[id] != reason]
    return (e.Skip(ids=new, reason=reason, labelled=labelled), ()) if new else None


def unskip(ledger: Ledger, ids: Any) -> Checked | None:
    new = [id for id in dict.fromkeys(ledger.ids.plain(ids)) if id in ledger.skipped]
    return (e.Unskip(ids=new), ()) if new else None


def release(ledger: Ledger, ids: Any) -> Checked | None:
    new = [id for id in dict.fromkeys(ledger.ids.plain(ids)) if id in ledger.pending]
    return (e.Release(ids=new), ()) if new else None


def add_class(ledger: Ledger, name: Any) -> Checked:
    return e.AddClass(name=ledger.classes.checked_new(name)), ()


def _coded(ledger: Ledger, ids: Any, labels: Any) -> tuple[list[Id], list[Code]]:
    plain, given = ledger.ids.plain(ids), as_list(labels, "labels")
    if len(plain) != len(given):
        raise InputError(f"{len(plain)} ids and {len(given)} labels: one label for each id is needed")
    return plain, ledger.encode(plain, given)


def _known(ledger: Ledger, id: Id, by: str | None, people: int) -> Code | None:
    if id not in ledger.people and (people == 1 or id in ledger.labels):
        return ledger.labels.get(id)
    if by is None and not ledger.broken:
        asked = f"id {id!r} was asked of {ledger.people.get(id, people)} people"
        raise InputError(f"{asked}: say whose label it is", in_python="tell(…, by=…)")
    return ledger.votes.get(id, {}).get(by or "")


def _check_tellable(ledger: Ledger, id: Id, unasked: bool) -> None:
    if unasked or ledger.broken:
        return
    if id in ledger.skipped:
        raise InputError(f"id {id!r} is skipped: unskip it first", in_python="or tell(…, unasked=True)")
    if id not in ledger.pending and id not in ledger.people:
        way_out = "labels that exist already go into `initial`, or tell(…, unasked=True)"
        raise InputError(f"id {id!r} was not asked: {way_out}; pending are {short(list(ledger.pending))}")


def _person(by: Any) -> str | None:
    what = "by= is the name of whoever labelled, a text"
    name = _text(by, what)
    if name == "":
        raise InputError(f"{what}, not {name!r}")
    return name


def _text(value: Any, what: str) -> str | None:
    """A text for the journal, or None; half of a surrogate pair is refused."""
    if value is None:
        return None
    if not isinstance(value, str) or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise InputError(f"{what}, not {value!r:.60}")
    return str(value)  # numpy's texts too
