"""Who has which item: one person at a time, and it comes back after a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from badge.labelling.sources import Id

__all__ = ["Loans"]

#: seconds after which an item that nobody answers or renews goes to somebody else
LOAN_SECONDS = 600.0


@dataclass
class _Loan:
    client: str
    until: float


class Loans:
    """Items lent to clients (a client is one open page).

    >>> loans = Loans(seconds=10, clock=lambda: 0.0)
    >>> loans.lend([5, 7], "ann"), loans.lend([5, 7], "bob"), loans.lend([5, 7], "eve")
    (5, 7, None)
    """

    def __init__(self, seconds: float = LOAN_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self.clock = seconds, clock
        self._by_id: dict[Id, _Loan] = {}
        self._by_client: dict[str, Id] = {}

    def lend(self, ids: Iterable[Id], client: str) -> Id | None:
        """The first of `ids` that nobody has, now lent to `client`; None where all are out."""
        for id in ids:
            if not self.is_out(id):
                self.give_back(client)
                self._by_id[id] = _Loan(client, self.clock() + self.seconds)
                self._by_client[client] = id
                return id
        return None

    def held(self, client: str) -> Id | None:
        """What a client has; looking at it renews the loan."""
        id = self._by_client.get(client)
        loan = None if id is None else self._by_id.get(id)
        if loan is None or loan.client != client:  # it went to somebody else meanwhile
            self._by_client.pop(client, None)
            return None
        loan.until = self.clock() + self.seconds
        return id

    def is_out(self, id: Id) -> bool:
        loan = self._by_id.get(id)
        if loan is not None and loan.until < self.clock():
            del self._by_id[id]
            loan = None
        return loan is not None

    def give_back(self, client: str) -> None:
        id = self._by_client.pop(client, None)
        if id is not None and id in self._by_id and self._by_id[id].client == client:
            del self._by_id[id]

    def settle(self, id: Id) -> None:
        """The item has its answer."""
        self._by_id.pop(id, None)
