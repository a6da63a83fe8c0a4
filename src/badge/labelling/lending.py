"""Who has which item: one person at a time. An item comes back after a while, and a restart forgets nothing."""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from badge.journal.events import Id

#: seconds after which an item that nobody answers or renews goes to somebody else
LOAN_SECONDS = 600.0


@dataclass
class Loan:
    client: str
    id: Id
    until: float
    again: bool = False  #: the item has an answer, which its giver looks at again
    request: str | None = None  #: the request that asked to look at it again


class Loans:
    """Items lent to clients (a client is one open page). `file` keeps them for the next start.

    >>> loans = Loans(seconds=10, clock=lambda: 0.0)
    >>> loans.lend([5, 7], "ann"), loans.lend([5, 7], "bob"), loans.lend([5, 7], "eve")
    (5, 7, None)
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.time, file: Path | None = None) -> None:
        self.seconds, self.clock, self.file = seconds, clock, file
        self._by_client: dict[str, Loan] = {}
        self._by_id: dict[Id, Loan] = {}
        if file is not None and file.exists():
            with suppress(OSError, ValueError, TypeError):  # it is a convenience: without it items are lent again
                for row in json.loads(file.read_text(encoding="utf-8")):
                    self._add(Loan(**row))

    def lend(self, ids: Iterable[Id], client: str) -> Id | None:
        """The first of `ids` that nobody has, now lent to `client`; None: all are out."""
        for id in ids:
            if not self.is_out(id):
                self.give_back(client)
                self._add(Loan(client, id, self.clock() + self.seconds))
                self._keep()
                return id
        return None

    def look_again(self, id: Id, client: str, request: str) -> None:
        """Lend an item to the one who answered it."""
        self.give_back(client)
        self._by_client[client] = Loan(client, id, self.clock() + self.seconds, True, request)
        self._keep()

    def held(self, client: str) -> Loan | None:
        """What a client has; looking at it renews the loan."""
        loan = self._by_client.get(client)
        if loan is None or not (loan.again or self._by_id.get(loan.id) is loan):  # it went to somebody else meanwhile
            self._by_client.pop(client, None)
            return None
        loan.until = self.clock() + self.seconds
        return loan

    def is_out(self, id: Id) -> bool:
        loan = self._by_id.get(id)
        if loan is not None and loan.until < self.clock():
            del self._by_id[id]
            loan = None
        return loan is not None

    def give_back(self, client: str) -> None:
        loan = self._by_client.pop(client, None)
        if loan is not None and self._by_id.get(loan.id) is loan:
            del self._by_id[loan.id]

    def settle(self, id: Id, client: str) -> None:
        """The client has answered the item."""
        loan = self._by_client.get(client)
        if loan is not None and loan.id == id:
            self.give_back(client)
        self._by_id.pop(id, None)
        self._keep()

    def _add(self, loan: Loan) -> None:
        self._by_client[loan.client] = loan
        if not loan.again:
            self._by_id[loan.id] = loan

    def _keep(self) -> None:
        """Whole or not at all, for the death of the process; a power loss may lose loans, never answers."""
        if self.file is None:
            return
        new = self.file.with_name(f".{self.file.name}.new")
        with suppress(OSError):
            new.write_text(json.dumps([asdict(loan) for loan in self._by_client.values()]), encoding="utf-8")
            new.replace(self.file)
