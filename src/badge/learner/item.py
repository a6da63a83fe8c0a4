"""What a learner knows about one example."""

from dataclasses import dataclass
from typing import Any

from badge.learner.ledger import Ledger


@dataclass(frozen=True)
class Item:
    """What a learner knows about one example; free means that nobody was asked about it."""

    label: Any  #: None: it has none
    votes: dict[str, Any]  #: who said what, if several people are asked
    pending: bool  #: asked, no label yet
    skipped: bool

    @property
    def free(self) -> bool:
        return self.label is None and not self.pending and not self.skipped


def item_in(ledger: Ledger, id: Any) -> Item:
    (plain,) = ledger.ids.plain([id])
    decode, code = ledger.classes.decode, ledger.labels.get(plain)
    votes = {by: decode(vote) for by, vote in ledger.votes.get(plain, {}).items()}
    return Item(None if code is None else decode(code), votes, plain in ledger.pending, plain in ledger.skipped)
